"""What kubectl says in the words that karmadactl is to use: its own name, and none of the ways in which kubectl's
versions differ."""

from __future__ import annotations

import re


def in_our_words(text: str) -> str:
    """What kubectl says, with our name."""
    text = text.replace("'kubectl ", "'karmadactl ").replace("Error: ", "error: ")
    text = re.sub(r"kubectl(\.\d+)*(?= get resource)", "karmadactl", text)
    text = re.sub(
        r'^E\d{4} .*"command failed" err="(.*)"$',
        lambda found: "error: " + found[1].replace('\\"', '"'),
        text,
        flags=re.MULTILINE,
    )
    text = re.sub(
        r"(?<=declared annotation\(s\): ).*",
        lambda found: "; ".join(sorted(found[0].split("; "))),  # kubectl says them in any order
        text,
    )
    text = re.sub(r" deleted from \S+ namespace", " deleted", text)
    return re.sub(r"^the server doesn't have", "error: the server doesn't have", text)

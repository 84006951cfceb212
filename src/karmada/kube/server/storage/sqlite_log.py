"""The log of revisions in SQLite: its tables, the statements on them, and a checksum in each row.

One row per revision: key, value (NULL: deleted), the revision it replaced, and a checksum over revision, key and value,
so that a value that changed on the disk is never served. Stores of format 1 have no checksums; they get the column when
they are opened for writing, and their rows the checksum with later compactions. Until then such a value must at least
be JSON, as everything was that format 1 stored. Those of formats 1 and 2 have no packed values (packing.py), those of
format 3 have one dictionary for all of them, those of format 4 have no forms (packing.py), those of format 5 no starts.

Each start of a server continues at a revision that no earlier one can have reached (`first_revision`). So the revisions
of a state that was replaced by an older copy of itself, such as a snapshot of its volume, are never given out again.
"""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import orjson

from karmada.kube.server.storage.interface import NewerFormat, Stored, StoreDamaged, prefix_end

FORMAT = 6
WITHOUT_CHECKSUMS = 1
_WITHOUT_STARTS = (2, 3, 4, 5)
LAST_KEY = chr(0x10FFFF)  # greater than any key of valid names

_STARTS = "CREATE TABLE starts (rev INTEGER PRIMARY KEY);"
_EPOCH = 1_767_225_600  # 2026 began
_REVISIONS_PER_SECOND = 10_000
"""More than a server writes over any length of time, and few enough for numbers of 53 bits to last for centuries."""
_SCHEMA = f"""
BEGIN;
{_STARTS}
CREATE TABLE log (
    rev INTEGER PRIMARY KEY, key TEXT NOT NULL, live INTEGER NOT NULL, prev INTEGER NOT NULL, value BLOB, sum INTEGER
);
CREATE INDEX log_by_key ON log (key, rev, live);
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO meta VALUES ('compacted', 0), ('swept', 0), ('legacy', 0);
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_ADD_STARTS = f"""
BEGIN;
{_STARTS}
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_UPGRADE = f"""
BEGIN;
{_STARTS}
ALTER TABLE log ADD COLUMN sum INTEGER;
INSERT INTO meta SELECT 'legacy', coalesce(max(rev), 0) FROM log;
PRAGMA user_version = {FORMAT};
COMMIT;
"""
LATEST = "SELECT rev, value, sum FROM log WHERE key = ? AND rev <= ? ORDER BY rev DESC LIMIT 1"
_LAST_REVISION = "SELECT rev * live FROM log INDEXED BY log_by_key WHERE key = %s ORDER BY rev DESC LIMIT 1"
_OF_ONE = f"SELECT coalesce(({_LAST_REVISION % '?'}), 0)"
_OF_MANY = f"SELECT one.value, coalesce(({_LAST_REVISION % 'one.value'}), 0) FROM json_each(?) AS one"
APPEND = "INSERT INTO log (rev, key, live, prev, value, sum) VALUES (?, ?, ?, ?, ?, ?)"
# max() makes SQLite take the bare column `live` from the row with the greatest revision; the index has all of it.
_NEWEST = """
SELECT max(rev) AS rev, live FROM log INDEXED BY log_by_key
WHERE key >= ? AND key < ? AND rev <= ? GROUP BY key HAVING live = 1
"""
_RANGE = f"""
SELECT log.key, log.value, log.rev, %s
FROM ({_NEWEST} ORDER BY key LIMIT ?) AS newest CROSS JOIN log ON log.rev = newest.rev
"""
_COUNT = f"SELECT count(*) FROM ({_NEWEST})"
FIRST_KEY = "SELECT key FROM log INDEXED BY log_by_key WHERE key >= ? AND key < ? ORDER BY key LIMIT 1"
COUNT_ROWS = """
SELECT count(*) FROM (SELECT 1 FROM log INDEXED BY log_by_key WHERE key >= ? AND key < ? LIMIT ?)
"""
HISTORY = """
SELECT new.key, new.value, new.rev, new.sum, old.value, new.prev, old.sum
FROM log AS new LEFT JOIN log AS old ON old.rev = new.prev
WHERE new.rev > ? AND new.rev <= ? AND new.key >= ? AND new.key < ? ORDER BY new.rev LIMIT ?
"""
# Those that are superseded by a version that is not synced yet are left out, too; they come with the next call.
OLDEST = """
SELECT key, rev, value, sum FROM log AS one
WHERE rev > ? AND rev <= ? AND key >= ? AND key < ? AND live = 1
AND NOT EXISTS (SELECT 1 FROM log INDEXED BY log_by_key WHERE key = one.key AND rev > one.rev)
ORDER BY rev LIMIT ?
"""
SWEEP = (
    "DELETE FROM log WHERE rev IN (SELECT prev FROM log WHERE rev > ? AND rev <= ?)",
    "DELETE FROM log WHERE rev > ? AND rev <= ? AND live = 0",
)
NEXT = "SELECT rev FROM log WHERE rev > ? ORDER BY rev LIMIT 1 OFFSET ?"
PREVIOUS = "SELECT rev FROM log WHERE rev <= ? ORDER BY rev DESC LIMIT 1 OFFSET ?"
EXISTS = "SELECT 1 FROM log WHERE rev = :rev UNION ALL SELECT 1 FROM starts WHERE rev = :rev"
_LAST_START = "SELECT coalesce(max(rev), 0) FROM starts"
_ADD_START = "INSERT INTO starts VALUES (?)"
_FORGET_STARTS = "DELETE FROM starts WHERE rev < ?"
SET_META = "UPDATE meta SET value = ? WHERE name = ?"
_UNSUMMED = "SELECT rev, key, value FROM log WHERE rev > ? AND rev <= ? AND sum IS NULL"
_SET_SUM = "UPDATE log SET sum = ? WHERE rev = ?"


def prepare_schema(cursor: sqlite3.Cursor, path: Path) -> None:
    """Create the tables, or bring those of an earlier format up to this one."""
    version = format_of(cursor, path)
    if version == 0:
        cursor.executescript(_SCHEMA)
    elif version == WITHOUT_CHECKSUMS:
        cursor.executescript(_UPGRADE)
    elif version in _WITHOUT_STARTS:
        cursor.executescript(_ADD_STARTS)


def format_of(cursor: sqlite3.Cursor, path: Path) -> int:
    """0: there are no tables yet."""
    version: int = cursor.execute("PRAGMA user_version").fetchone()[0]
    if version not in range(FORMAT + 1):
        raise NewerFormat(str(path), version, FORMAT)
    return version


def first_revision(latest: int, now: float) -> int:
    """Return the revision at which a store goes on whose latest one is given.

    It rises faster with the time than revisions can be used up, so it is beyond all that was given out before, even if
    this store does not know of it. A store that is empty has nothing that could be mistaken.
    """
    return max(latest, int((now - _EPOCH) * _REVISIONS_PER_SECOND)) if latest else 0


def begin(cursor: sqlite3.Cursor, compacted: int, now: float) -> int:
    """Return the revision at which this start continues; it is recorded as one that clients may have seen."""
    newest = cursor.execute("SELECT coalesce(max(rev), 0) FROM log").fetchone()[0]
    latest = max(newest, compacted, cursor.execute(_LAST_START).fetchone()[0])
    first = first_revision(latest, now)
    if first > latest:
        cursor.execute(_FORGET_STARTS, (compacted,))
        cursor.execute(_ADD_START, (first,))
    return first


def last_revisions(cursor: sqlite3.Cursor, keys: list[str]) -> dict[str, int]:
    """Return the revision of each key's newest row, synced or not; 0 for a deletion or none."""
    if len(keys) == 1:
        return {keys[0]: cursor.execute(_OF_ONE, keys).fetchone()[0]}
    return dict(cursor.execute(_OF_MANY, (orjson.dumps(keys).decode(),)).fetchall())


def checksum(revision: int, key: str, value: bytes | None) -> int:
    start = zlib.crc32(key.encode(), revision & 0xFFFFFFFF)
    return zlib.crc32(value, start) if value is not None else ~start & 0xFFFFFFFF


def intact(revision: int, key: str, value: bytes | None, total: int | None) -> bool:
    if total is not None:
        return total == checksum(revision, key, value)
    return value is None or _is_json(value)


def _is_json(value: bytes) -> bool:
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return False
    return True


def damaged_row(path: Path, revision: int, key: str) -> StoreDamaged:
    return refusal(path, [row_problem(revision, key)])


def row_problem(revision: int, key: str) -> str:
    return f"the value of {key} at revision {revision} is not what was written"


def refusal(path: Path, problems: list[str]) -> StoreDamaged:
    """Return what is wrong with which file, and what can be done about it."""
    more = f" (and {len(problems) - 3} more; karmadactl check-store lists them)" if len(problems) > 3 else ""
    return StoreDamaged(
        f"{path} is damaged: {'; '.join(problems[:3])}{more}. To restore a backup, move {path} and the files whose "
        "names begin with it away and run karmadactl restore; to go on without what is lost, start with --accept-loss"
    )


def read_range(
    cursor: sqlite3.Cursor, path: Path, prefix: str, after: str, limit: int, revision: int, *, summed: bool = True
) -> list[Stored]:
    """Return what a range holds at a revision, in key order."""
    low, end = max(prefix, after and after + "\0"), prefix_end(prefix) or LAST_KEY
    sql = _RANGE % ("log.sum" if summed else "NULL")
    items = []
    for key, value, rev, total in sorted(cursor.execute(sql, (low, end, revision, limit or -1)).fetchall()):
        if not intact(rev, key, value, total):
            raise damaged_row(path, rev, key)
        items.append(Stored(key, value, rev))
    return items


def count_range(cursor: sqlite3.Cursor, prefix: str, after: str, revision: int) -> int:
    """Return how many objects of a range come after a key."""
    end = prefix_end(prefix) or LAST_KEY
    found: int = cursor.execute(_COUNT, (after + "\0", end, revision)).fetchone()[0]
    return found


def add_checksums(cursor: sqlite3.Cursor, low: int, high: int) -> int:
    """To the rows of format 1 with low < revision <= high; one that is no JSON stays as it is, and is not served."""
    rows = [
        (checksum(rev, key, value), rev)
        for rev, key, value in cursor.execute(_UNSUMMED, (low, high)).fetchall()
        if intact(rev, key, value, None)
    ]
    cursor.executemany(_SET_SUM, rows)
    cursor.execute(SET_META, (low, "legacy"))
    return len(rows)

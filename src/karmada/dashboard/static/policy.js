// The editor of a policy: CodeMirror over the text area, which stays what is sent. Tab leaves it, as everywhere else.
"use strict";
(() => {
  const area = document.getElementById("text");
  const editor = CodeMirror.fromTextArea(area, {
    mode: "yaml", lineNumbers: true, lineWrapping: false, indentUnit: 2, tabSize: 2, inputStyle: "contenteditable",
    extraKeys: { Tab: false, "Shift-Tab": false, "Ctrl-Enter": () => document.getElementById("preview").click() },
  });
  editor.getInputField().setAttribute("aria-label", "The policy as YAML");
  editor.on("change", () => editor.save());
})();

// The editor of a policy: CodeMirror over the text area, which stays what is sent. Tab leaves it, as everywhere else.
// A text can be applied once it was shown what it would move.
"use strict";
(() => {
  const area = document.getElementById("text");
  const editor = CodeMirror.fromTextArea(area, {
    mode: "yaml", lineNumbers: true, lineWrapping: false, indentUnit: 2, tabSize: 2, inputStyle: "contenteditable",
    extraKeys: { Tab: false, "Shift-Tab": false, "Ctrl-Enter": () => document.getElementById("preview").click() },
  });
  editor.getInputField().setAttribute("aria-label", "The policy as YAML");
  const apply = document.getElementById("apply");
  let tried = null;
  let seen = null;
  const allow = () => { if (apply) apply.disabled = seen !== area.value; };
  editor.on("change", () => { editor.save(); allow(); });
  document.addEventListener("htmx:beforeRequest", (event) => { if (event.detail.target.id === "radius") tried = area.value; });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.target.id !== "radius" || !event.detail.successful) return;
    seen = tried;
    allow();
  });
})();

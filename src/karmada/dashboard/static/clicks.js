// Before the first paint: a click on what needs the page's scripts waits for them, so that none is lost.
"use strict";
(() => {
  const hold = (event) => {
    const pressed = event.target.closest("button, [hx-get], [hx-post], [hx-delete]");
    if (!pressed) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    document.addEventListener("DOMContentLoaded", () => pressed.click(), { once: true });
  };
  document.addEventListener("click", hold, { capture: true });
  document.addEventListener("DOMContentLoaded", () => document.removeEventListener("click", hold, { capture: true }));
})();

// One stream for all [data-live] parts of the page. A part names its topics; when one changes, htmx requests it again.
"use strict";
(() => {
  const indicator = document.getElementById("live");
  let source = null;
  let open = "";
  let retry = 0;

  const parts = () => [...document.querySelectorAll("[data-live]")];
  const topics = () => [...new Set(parts().flatMap((part) => part.dataset.live.split(" ").filter(Boolean)))].sort();
  const show = (state, word) => {
    indicator.hidden = false;
    indicator.dataset.state = state;
    indicator.querySelector(".word").textContent = word;
  };

  const close = () => {
    clearTimeout(retry);
    if (source) source.close();
    source = null;
    open = "";
  };

  const connect = () => {
    const wanted = topics();
    const key = wanted.join(" ");
    if (key === open && source) return;
    close();
    if (!wanted.length || document.hidden) return;
    open = key;
    source = new EventSource("/live?" + wanted.map((topic) => "topic=" + encodeURIComponent(topic)).join("&"));
    source.addEventListener("open", () => show("on", "Live"));
    source.addEventListener("changed", (event) => {
      for (const part of parts()) {
        if (part.dataset.live.split(" ").includes(event.data)) htmx.trigger(part, "live");
      }
    });
    source.addEventListener("logout", () => { location.href = "/login"; });
    source.onerror = () => {
      show("off", "Reconnecting");
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        retry = setTimeout(connect, 3000);
      }
    };
  };

  // Content is morphed, not replaced: what the viewer has opened, typed or checked stays.
  Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
    !((name === "open" && node.tagName === "DETAILS") || ((name === "value" || name === "checked") && "value" in node));

  // Requests that a change caused do not count as the viewer's, and say what the part has already.
  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, headers, triggeringEvent } = event.detail;
    if (triggeringEvent && triggeringEvent.type === "live") headers["X-Live"] = "1";
    if (elt.dataset.seen) headers["X-Seen"] = elt.dataset.seen;
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const seen = event.detail.xhr.getResponseHeader("X-Part");
    if (seen) event.detail.elt.dataset.seen = seen;
  });
  document.addEventListener("htmx:afterSettle", connect);
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : connect()));
  addEventListener("pagehide", close);
  connect();
})();

// Logs of a pod as they are written, and a terminal in it.
"use strict";
(() => {
  const base = document.getElementById("pod").dataset.url;
  const form = document.getElementById("log-form");
  const log = document.getElementById("log");
  const state = document.getElementById("log-state");
  const MOST_LINES = 5000;
  let lines = [];
  let stop = null;

  const find = () => form.elements.find.value.toLowerCase();
  const matching = (some) => { const text = find(); return text ? some.filter((line) => line.toLowerCase().includes(text)) : some; };
  const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  const redraw = () => { log.textContent = matching(lines).join(""); log.scrollTop = log.scrollHeight; };
  const add = (more) => {
    const follow = atEnd();
    lines = lines.concat(more);
    if (lines.length > MOST_LINES) { lines = lines.slice(-MOST_LINES); redraw(); return; }
    log.append(matching(more).join(""));
    if (follow) log.scrollTop = log.scrollHeight;
  };

  const read = async () => {
    if (stop) stop.abort();
    const mine = (stop = new AbortController());
    lines = [];
    log.textContent = "";
    const query = new URLSearchParams(new FormData(form));
    query.delete("find");
    state.textContent = "reading…";
    try {
      const response = await fetch(base + "/logs?" + query, { signal: mine.signal });
      if (!response.ok) {
        const text = new DOMParser().parseFromString(await response.text(), "text/html").body.textContent.trim();
        throw new Error(text || response.statusText);
      }
      state.textContent = "following";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split(/(?<=\n)/);
        rest = parts.length && !parts[parts.length - 1].endsWith("\n") ? parts.pop() : "";
        add(parts);
      }
      if (rest) add([rest]);
      state.textContent = lines.length ? "ended" : "ended without a line";
    } catch (error) {
      if (mine.signal.aborted) return;
      state.textContent = "cannot be read: " + (error.message || error);
    }
  };
  form.addEventListener("change", (event) => { if (event.target.name !== "find") read(); });
  form.addEventListener("input", (event) => { if (event.target.name === "find") redraw(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("pagehide", () => { if (stop) stop.abort(); });
  read();

  const button = document.getElementById("terminal-open");
  if (!button) return;
  const holder = document.getElementById("terminal");
  const said = document.getElementById("terminal-state");
  button.addEventListener("click", () => {
    holder.hidden = false;
    holder.textContent = "";
    button.disabled = true;
    const terminal = new Terminal({ fontSize: 13, cursorBlink: true, convertEol: false, screenReaderMode: true });
    const fit = new FitAddon.FitAddon();
    terminal.loadAddon(fit);
    terminal.open(holder);
    fit.fit();
    const socket = new WebSocket(location.origin.replace(/^http/, "ws") + base + "/terminal?container=" + encodeURIComponent(form.elements.container.value));
    socket.binaryType = "arraybuffer";
    const size = () => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ columns: terminal.cols, rows: terminal.rows })); };
    const encoder = new TextEncoder();
    const resized = new ResizeObserver(() => fit.fit());
    resized.observe(holder);
    terminal.onResize(size);
    terminal.onData((data) => { if (socket.readyState === WebSocket.OPEN) socket.send(encoder.encode(data)); });
    socket.onopen = () => { said.textContent = "open"; size(); terminal.focus(); };
    socket.onmessage = (event) => {
      if (typeof event.data === "string") said.textContent = event.data;
      else terminal.write(new Uint8Array(event.data));
    };
    socket.onclose = () => {
      if (said.textContent === "open" || !said.textContent) said.textContent = "closed";
      button.disabled = false;
      resized.disconnect();
    };
    socket.onerror = () => { said.textContent = "The terminal cannot be opened: you may not, or the container has no shell."; };
  });
})();

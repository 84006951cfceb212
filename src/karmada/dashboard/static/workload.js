// The graph of a workload: columns from template to pods, updated in place when the page's summary changes.
"use strict";
(() => {
  const holder = document.getElementById("graph");
  const panel = document.getElementById("node");
  const withheld = document.getElementById("graph-note");
  const problem = document.getElementById("graph-problem");
  const base = holder.dataset.url;
  const COLUMNS = { template: 0, policy: 0, binding: 1, work: 2, clusters: 2, object: 3, pod: 4, pods: 4 };
  const WIDTH = 250;
  const ROW = 58;
  let shown = "";
  let last = null;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const style = () => [
    { selector: "node", style: {
      shape: "round-rectangle", width: 200, height: 42, "background-color": colour("surface"), "border-width": 1,
      "border-color": colour("line-strong"), label: "data(label)", color: colour("text"), "font-size": 11,
      "font-family": "system-ui, sans-serif", "text-valign": "center", "text-wrap": "wrap", "text-max-width": 186,
    } },
    ...["good", "warn", "bad", "idle"].map((state) => ({
      selector: `node[state="${state}"]`,
      style: { "border-color": colour(state), "border-width": 2, "background-color": colour(state + "-soft") },
    })),
    { selector: "node:selected", style: { "border-color": colour("accent"), "border-width": 3 } },
    { selector: "edge", style: {
      width: 1.5, "line-color": colour("line-strong"), "target-arrow-color": colour("line-strong"),
      "target-arrow-shape": "triangle", "curve-style": "taxi", "taxi-direction": "rightward", "arrow-scale": 0.8,
      display: isNarrow() ? "none" : "element",
    } },
  ];

  const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);
  const label = (node) => cut(node.title, 30) + (node.text ? "\n" + cut(node.text, 32) : "");

  // Each cluster is a block of rows, as high as it has pods; what comes before stands in the middle of all.
  const placed = (nodes) => {
    const heights = new Map();
    for (const node of nodes) {
      if (node.sort === "pod" || node.sort === "pods") heights.set(node.cluster, (heights.get(node.cluster) || 0) + 1);
    }
    const tops = new Map();
    let row = 0;
    for (const node of nodes) {
      if (node.sort !== "object" && node.sort !== "clusters") continue;
      tops.set(node.cluster, row);
      row += Math.max(1, heights.get(node.cluster) || 0);
    }
    const middle = Math.max(0, (row - 1) / 2);
    const seen = new Map();
    const both = nodes.some((node) => node.sort === "policy") && nodes.some((node) => node.sort === "template");
    return nodes.map((node) => {
      let at = middle;
      if (node.sort === "template" && both) at = middle - 0.6;
      if (node.sort === "policy" && both) at = middle + 0.6;
      if (COLUMNS[node.sort] === 4) {
        const nth = seen.get(node.cluster) || 0;
        seen.set(node.cluster, nth + 1);
        at = tops.get(node.cluster) + nth;
      } else if (tops.has(node.cluster) && COLUMNS[node.sort] > 1) {
        at = tops.get(node.cluster) + (Math.max(1, heights.get(node.cluster) || 0) - 1) / 2;
      }
      return { x: COLUMNS[node.sort] * WIDTH, y: at * ROW };
    });
  };

  // On narrow screens: one below the other, each cluster with its Work and pods, as far to the right as it is deep.
  const INDENT = 24;
  const listed = (nodes) => {
    const order = ["template", "policy", "binding", "clusters"];
    const clusters = [...new Set(nodes.map((node) => node.cluster).filter(Boolean))];
    const rank = (node) => [node.cluster ? 1 + clusters.indexOf(node.cluster) : 0, node.cluster ? COLUMNS[node.sort] : order.indexOf(node.sort)];
    const sorted = nodes.map((node) => ({ node, rank: rank(node) }));
    sorted.sort((a, b) => a.rank[0] - b.rank[0] || a.rank[1] - b.rank[1]);
    const rows = new Map(sorted.map(({ node }, row) => [node.id, row]));
    return nodes.map((node) => ({ x: COLUMNS[node.sort] * INDENT, y: rows.get(node.id) * (ROW - 8) }));
  };
  const isNarrow = () => holder.clientWidth < 640;
  const look = (places) => {
    const bottom = Math.max(...places.map((place) => place.y));
    holder.style.height = Math.min(isNarrow() ? 900 : 560, Math.max(170, bottom + ROW + 60)) + "px";
    cy.resize();
    if (!isNarrow()) { cy.fit(undefined, 24); return; }
    const zoom = Math.min(1, (holder.clientWidth - 24) / (200 + 4 * INDENT));
    cy.viewport({ zoom, pan: { x: 12 + 100 * zoom, y: 12 + 21 * zoom } });
  };

  // The wheel scrolls the page; with Ctrl it zooms.
  holder.addEventListener("wheel", (event) => { if (!event.ctrlKey && !event.metaKey) event.stopImmediatePropagation(); }, { capture: true });
  const cy = cytoscape({ container: holder, style: style(), minZoom: 0.15, maxZoom: 2, autoungrabify: true });
  document.addEventListener("theme", () => cy.style(style()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => cy.style(style()));

  const draw = (graph) => {
    const text = JSON.stringify(graph);
    if (text === shown) return;
    const first = shown === "";
    const before = cy.nodes().length;
    shown = text;
    last = graph;
    const places = isNarrow() ? listed(graph.nodes) : placed(graph.nodes);
    const wanted = new Set([...graph.nodes, ...graph.edges].map((one) => one.id));
    cy.batch(() => {
      cy.elements().filter((one) => !wanted.has(one.id())).remove();
      graph.nodes.forEach((node, nth) => {
        const data = { ...node, label: label(node) };
        const found = cy.getElementById(node.id);
        if (found.length) found.data(data).position(places[nth]);
        else cy.add({ group: "nodes", data, position: places[nth] });
      });
      for (const edge of graph.edges) if (!cy.getElementById(edge.id).length) cy.add({ group: "edges", data: edge });
    });
    if (first || before !== graph.nodes.length) look(places);
    withheld.textContent = graph.note;
    withheld.hidden = !graph.note;
    holder.dataset.nodes = String(graph.nodes.length);
  };

  let wasNarrow = isNarrow();
  addEventListener("resize", () => {
    if (isNarrow() === wasNarrow || !last) return;
    wasNarrow = isNarrow();
    shown = "";
    cy.style(style());
    draw(last);
  });

  let busy = false;
  let again = false;
  const load = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      for (const query of shown ? ["?pods=1"] : ["", "?pods=1"]) {
        const response = await fetch(base + "/graph" + query, { headers: { "X-Live": "1" } });
        if (!response.ok) throw new Error("the graph cannot be read: " + response.status);
        draw(await response.json());
      }
      problem.hidden = true;
    } catch (error) {
      problem.textContent = String(error.message || error);
      problem.hidden = false;
    }
    busy = false;
    if (again) { again = false; load(); }
  };

  const read = (id, swap, headers) => htmx.ajax(
    "GET", base + "/nodes/" + id.split("/").map(encodeURIComponent).join("/"), { source: panel, target: panel, swap, headers },
  );
  const open = async (id) => {
    panel.hidden = false;
    panel.dataset.node = id;
    await read(id, "innerHTML", {});
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
  };
  cy.on("tap", "node", (event) => { if (event.target.id() !== "clusters") open(event.target.id()); });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-node]");
    if (button && button !== panel) open(button.dataset.node);
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target.id !== "summary") return;
    load();
    if (panel.dataset.node) read(panel.dataset.node, "morph:innerHTML show:none", { "X-Live": "1" });
  });
  load();
})();

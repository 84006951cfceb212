// What every page has: theme switch, menu on narrow screens, copy buttons, filters of lists, tokens on changes.
"use strict";
(() => {
  const root = document.documentElement;

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.querySelector("button.theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    document.dispatchEvent(new CustomEvent("theme"));
  });

  const menu = document.querySelector("button.menu");
  const setMenu = (open) => {
    menu.setAttribute("aria-expanded", String(open));
    document.body.classList.toggle("menu-open", open);
  };
  menu.addEventListener("click", () => setMenu(menu.getAttribute("aria-expanded") !== "true"));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") setMenu(false);
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1200);
  });

  // <input data-filter="#list"> hides the [data-name] elements of the list that do not contain its text.
  const filter = (input) => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of document.querySelectorAll(`${input.dataset.filter} [data-name]`)) {
      const text = item.dataset.name.toLowerCase();
      item.classList.toggle("filtered", !words.every((word) => text.includes(word)));
    }
  };
  const filterAll = () => document.querySelectorAll("input[data-filter]").forEach(filter);
  document.addEventListener("input", (event) => {
    if (event.target.matches("input[data-filter]")) filter(event.target);
  });
  document.addEventListener("htmx:afterSettle", filterAll);
  filterAll();

  // On narrow screens a row of a table is a block: each cell gets the name of its column, which the style shows.
  const narrow = matchMedia("(max-width: 640px)");
  const nameCells = () => {
    if (!narrow.matches) return;
    for (const table of document.querySelectorAll("table")) {
      const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
      for (const row of table.querySelectorAll("tbody tr")) {
        [...row.cells].forEach((cell, nth) => { cell.dataset.label = names[nth] || ""; });
      }
    }
  };
  narrow.addEventListener("change", nameCells);
  document.addEventListener("htmx:afterSettle", nameCells);
  nameCells();

  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.verb !== "get") {
      event.detail.headers["X-CSRF-Token"] = document.querySelector("meta[name=csrf]").content;
    }
  });
})();

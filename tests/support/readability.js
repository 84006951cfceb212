// What hinders reading a page, as a list: too little contrast, controls without a name, ids twice, no heading.
() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const drawing = canvas.getContext("2d", { willReadFrequently: true });
  const pixel = (colour) => {
    drawing.clearRect(0, 0, 1, 1);
    drawing.fillStyle = colour;
    drawing.fillRect(0, 0, 1, 1);
    return [...drawing.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (colour) => {
    const parts = colour.slice(0, 3).map((one) => one / 255).map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = pixel(getComputedStyle(one).backgroundColor);
      if (colour[3] > 240) return colour;
    }
    return [255, 255, 255, 255];
  };
  const shown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getBoundingClientRect().width > 2;
  const short = (text) => text.trim().slice(0, 60);
  const found = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !shown(element) || element.closest(":disabled, .xterm")) continue;
    const both = [luminance(pixel(getComputedStyle(element).color)), luminance(behind(element))].sort((a, b) => b - a);
    const contrast = (both[0] + 0.05) / (both[1] + 0.05);
    if (contrast < 4.5) found.add(`contrast ${contrast.toFixed(1)}: ${short(texts.currentNode.textContent)}`);
  }
  for (const one of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (shown(one) && !one.labels.length && !one.getAttribute("aria-label")) found.add("no label: " + short(one.outerHTML));
  }
  for (const one of document.querySelectorAll("a[href], button")) {
    if (!one.textContent.trim() && !one.getAttribute("aria-label") && !one.title) found.add("no name: " + short(one.outerHTML));
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  ids.filter((id, nth) => ids.indexOf(id) !== nth).forEach((id) => found.add("twice: #" + id));
  if (document.querySelectorAll("h1").length !== 1) found.add("no heading, or several");
  return [...found];
}

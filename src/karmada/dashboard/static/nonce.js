// Libraries (graph, terminal) add <style> elements; the content-security policy accepts those that carry this nonce.
"use strict";
(() => {
  const nonce = document.currentScript.nonce;
  const create = Document.prototype.createElement;
  Document.prototype.createElement = function (name, ...more) {
    const made = create.call(this, name, ...more);
    if (String(name).toLowerCase() === "style") made.nonce = nonce;
    return made;
  };
})();

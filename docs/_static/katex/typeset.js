// Formulas are in the page as TeX; without JavaScript they stay readable as such.
document.querySelectorAll(".math").forEach((node) =>
  katex.render(node.textContent, node, { displayMode: node.tagName === "DIV", throwOnError: false }));

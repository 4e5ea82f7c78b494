"use strict";
(() => {
  const search = document.getElementById("search");
  const count = document.getElementById("count");
  const blocks = [...document.querySelectorAll("article, main details, .note")];
  const texts = blocks.map((block) => block.textContent.toLowerCase());
  let first = null;
  const find = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    first = null;
    blocks.forEach((block, index) => {
      const matches = words.length > 0 && words.every((word) => texts[index].includes(word));
      block.classList.toggle("found", matches);
      if (matches) {
        found += 1;
        first = first || block;
        if (block.tagName === "DETAILS") { block.open = true; }
      }
    });
    document.querySelectorAll(".turn").forEach((turn) => {
      turn.classList.toggle("hidden", words.length > 0 && turn.querySelector(".found") === null);
    });
    count.textContent = words.length ? `${found} found` : "";
  };
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && first) { first.scrollIntoView({ block: "center" }); }
  });
  document.getElementById("unfold").addEventListener("click", (event) => {
    const folded = [...document.querySelectorAll("details")];
    const open = folded.some((one) => !one.open);
    folded.forEach((one) => { one.open = open; });
    event.target.textContent = open ? "Fold all" : "Unfold all";
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();

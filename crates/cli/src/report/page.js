"use strict";
const form = document.getElementById("filters");
const cards = [...document.querySelectorAll(".key")];
const filter = () => {
  const text = form.querySelector("input[type=search]").value.toLowerCase();
  const wanted = [...form.querySelectorAll("input:checked")].map((box) => box.name);
  let shown = 0;
  for (const card of cards) {
    const has = card.dataset.is.split(" ");
    card.hidden = !wanted.every((word) => has.includes(word)) || !card.textContent.toLowerCase().includes(text);
    shown += card.hidden ? 0 : 1;
  }
  form.querySelector("output").textContent = `${shown} of ${cards.length} keys`;
};
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
filter();

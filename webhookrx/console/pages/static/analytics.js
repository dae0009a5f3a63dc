// Shows the fields of the form that a choice asks for: without a script they are always there.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll("[data-when]")) {
    const choice = document.getElementById(box.dataset.when);
    const show = () => {
      box.hidden = choice.value !== box.dataset.is;
      for (const input of box.querySelectorAll("input")) input.disabled = box.hidden;
    };
    choice.addEventListener("change", show);
    show();
  }
});

// Alarms: the form shows what its kind takes, and screen readers hear when the sum of what is not ok has changed.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const kind = document.getElementById("kind");
  if (kind) {
    for (const word of document.querySelectorAll("[data-noscript]")) word.hidden = true;
    const show = () => {
      for (const part of document.querySelectorAll("[data-kinds]")) {
        part.hidden = !part.dataset.kinds.split(" ").includes(kind.value);
        for (const input of part.querySelectorAll("input")) input.disabled = part.hidden;
      }
    };
    kind.addEventListener("change", show);
    show();
  }

  const said = document.getElementById("alarm-said");
  if (!said) return;
  const sum = () => document.getElementById("alarm-sum")?.textContent ?? "";
  let last = sum();
  document.body.addEventListener("htmx:after:swap", () => {
    if (sum() !== last) said.textContent = last = sum();
  });
  // What somebody is at is not taken away from under them.
  document.body.addEventListener("htmx:before:request", (event) => {
    if (event.target.id === "alarm-states" && event.target.contains(document.activeElement)) event.preventDefault();
  });
});

// Shows the fields of the form that a choice asks for: without a script they are always there. Numbers whose time goes on
// are asked for again each minute, as long as somebody may look at them.
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
  const note = document.getElementById("goes-on");
  if (!note) return;
  note.hidden = false;
  let askedAt = Date.now();
  const ask = () => {
    if (document.hidden || Date.now() - askedAt < 59000) return;
    askedAt = Date.now();
    document.body.dispatchEvent(new Event("minute"));
  };
  setInterval(ask, 60000);
  // Numbers that somebody has opened stay so.
  const opened = new Set();
  const ofPart = ({ detail }) => detail.ctx.target?.querySelector?.("details");
  document.addEventListener("htmx:before:swap", (event) => {
    if (ofPart(event)?.open) opened.add(event.detail.ctx.target.id);
  });
  document.addEventListener("htmx:after:swap", () => {
    for (const id of opened) {
      const details = document.getElementById(id)?.querySelector("details");
      if (details) details.open = true;
    }
    opened.clear();
  });
  document.addEventListener("visibilitychange", ask);
});

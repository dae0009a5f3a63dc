// The editor of rules: which side was written in last, notes at their fields, steps by dragging. It works without.
"use strict";

(() => {
  let form;
  let changes = 0;
  let focused = null;
  let writingIn = "";
  let dragged = -1;
  const written = new Map();

  // An answer to what was there before the last key was pressed would take that key back.
  function edited(event) {
    if (!event.target.name) return;
    changes += 1;
    const side = event.target.name === "yaml" ? "yaml" : "form";
    form.elements.edited.value = side;
  }

  function placeNotes() {
    // Before the first preview, the page has them at their fields already.
    if (!document.getElementById("notes")) return;
    const notes = [...document.querySelectorAll("#notes > li")];
    for (const place of document.querySelectorAll("[data-notes]")) {
      const at = place.dataset.notes;
      const here = notes.filter((note) => note.dataset.at === at);
      place.replaceChildren(...here.map((note) => {
        const line = document.createElement("p");
        line.className = note.dataset.kind === "error" ? "error" : "hint";
        line.textContent = (note.dataset.kind === "warning" ? "Warning: " : "") + note.textContent;
        return line;
      }));
      const field = document.getElementById(at);
      if (!field || !field.matches("input, select, textarea")) continue;
      if (here.some((note) => note.dataset.kind === "error")) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
    const yaml = document.getElementById("yaml");
    if (document.querySelector("#yaml-found .error")) yaml.setAttribute("aria-invalid", "true");
    else yaml.removeAttribute("aria-invalid");
  }

  // After a row was moved, its button is somewhere else.
  function followRow(action) {
    const [verb, what, number] = action.split("-");
    const at = Number(number);
    let wanted = null;
    if (what === "step" && (verb === "up" || verb === "down")) {
      const now = verb === "up" ? at - 1 : at + 1;
      const other = verb === "up" ? "down" : "up";
      wanted = form.querySelector(`[value="${verb}-step-${now}"]:not(:disabled)`) ?? form.querySelector(`[value="${other}-step-${now}"]`);
      say(`Step ${at + 1} is step ${now + 1} now.`);
    } else if (verb === "add") {
      const rows = form.querySelectorAll({ label: "[name=label_key]", path: "[name=path]", step: "[name=step_yaml]" }[what]);
      wanted = rows[rows.length - 1];
    } else if (verb === "remove") {
      wanted = form.querySelector(`[value="remove-${what}-${at}"], [value="remove-${what}-${at - 1}"]`) ?? form.querySelector(`[value="add-${what}"]`);
      say(`${what} ${at + 1} is removed.`);
    }
    wanted?.focus();
  }

  function say(text) {
    document.getElementById("moved").textContent = text;
  }

  // What was written of another type comes back when that type is chosen again.
  function changeKind(select) {
    const step = select.closest(".rule-step");
    const text = step.querySelector("[name=step_yaml]");
    const was = step.querySelector("[name=step_was]");
    written.set(`${select.id} ${was.value}`, text.value);
    const before = written.get(`${select.id} ${select.value}`);
    if (before) {
      text.value = before;
      was.value = select.value;
    }
  }

  function toLine(link) {
    const text = document.getElementById("yaml");
    const lines = text.value.split("\n");
    const line = Math.min(Number(link.dataset.line), lines.length);
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    text.focus();
    text.setSelectionRange(start, start + lines[line - 1].length);
    text.scrollTop = Math.max(0, (line - 4) * (text.scrollHeight / lines.length));
  }

  function stepOf(target) {
    const step = target.closest?.(".rule-step");
    return step ? [...step.parentNode.children].indexOf(step) : -1;
  }

  function dragging() {
    form.addEventListener("dragstart", (event) => {
      if (!event.target.matches?.(".handle")) return;
      dragged = stepOf(event.target);
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setData("text/plain", "step");
      event.target.closest(".rule-step").classList.add("dragged");
    });
    form.addEventListener("dragover", (event) => {
      if (dragged < 0 || stepOf(event.target) < 0) return;
      event.preventDefault();
      for (const step of form.querySelectorAll(".rule-step")) step.classList.toggle("target", step.contains(event.target));
    });
    form.addEventListener("drop", (event) => {
      const to = stepOf(event.target);
      if (dragged < 0 || to < 0) return;
      event.preventDefault();
      if (to !== dragged) {
        const button = document.getElementById("drag-step");
        button.value = `move-step-${dragged}-${to}`;
        say(`Step ${dragged + 1} is step ${to + 1} now.`);
        button.click();
      }
    });
    form.addEventListener("dragend", () => {
      dragged = -1;
      for (const step of form.querySelectorAll(".rule-step")) step.classList.remove("dragged", "target");
    });
  }

  function ready(root) {
    for (const handle of root.querySelectorAll(".handle")) handle.hidden = false;
  }

  document.addEventListener("DOMContentLoaded", () => {
    form = document.getElementById("rule-form");
    if (!form) return;
    ready(form);
    for (const button of form.querySelectorAll(".check")) button.hidden = true;
    form.addEventListener("input", (event) => {
      edited(event);
      if (event.target.matches("[data-kind]")) changeKind(event.target);
    });
    form.addEventListener("click", (event) => {
      const link = event.target.closest("[data-line]");
      if (link) {
        event.preventDefault();
        toLine(link);
      }
      const button = event.target.closest("button[name=do]");
      if (!button) return;
      focused = button.value;
      written.clear();
    });
    let isSent = false;
    form.addEventListener("submit", (event) => {
      // The preview is there already: the key Enter has nothing to do.
      if (event.submitter?.matches(".unseen")) event.preventDefault();
      else isSent = true;
    });
    window.addEventListener("beforeunload", (event) => {
      if (changes && !isSent) event.preventDefault();
    });
    dragging();
    let begun = 0;
    document.addEventListener("htmx:before:request", (event) => {
      const url = String(event.detail.ctx.request.action);
      if (url.endsWith("/rules:preview")) begun = changes;
    });
    document.addEventListener("htmx:before:swap", (event) => {
      const { ctx } = event.detail;
      if (String(ctx.request.action).endsWith("/rules:preview") && begun !== changes) event.preventDefault();
      else writingIn = document.activeElement?.id ?? "";
    });
    document.addEventListener("htmx:after:swap", () => {
      ready(form);
      for (const button of form.querySelectorAll(".check")) button.hidden = true;
      placeNotes();
      if (focused) followRow(focused);
      else if (writingIn && document.activeElement === document.body) document.getElementById(writingIn)?.focus();
      focused = null;
    });
  });
})();

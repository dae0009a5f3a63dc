// What all pages do beside their own scripts: times in the reader's zone, keys, the first error. Nothing needs it.
"use strict";

(() => {
  const clock = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit" };
  const ofThisYear = new Intl.DateTimeFormat(undefined, clock);
  const ofOthers = new Intl.DateTimeFormat(undefined, { year: "numeric", ...clock });

  // The year is told where it is not the one of today.
  function shown(at) {
    return (at.getFullYear() === new Date().getFullYear() ? ofThisYear : ofOthers).format(at);
  }

  // Times come in UTC; the title keeps it.
  function localTimes(root) {
    for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) {
        time.textContent = shown(at);
        time.dataset.local = "yes";
      }
    }
  }

  function toFirstError() {
    const wrong = document.querySelector("main [aria-invalid=true], main [role=alert]");
    if (wrong) {
      if (!wrong.matches("input, select, textarea")) wrong.tabIndex = -1;
      wrong.focus();
    }
  }

  // The secret of a one-time link stands behind its #, which browsers send to no server.
  function secretOfLink() {
    const field = document.querySelector("[data-from-hash]");
    if (field && location.hash.length > 1) {
      field.value = location.hash.slice(1);
      history.replaceState(null, "", location.pathname);
    }
  }

  // With a script a choice takes effect at once.
  function themeAtOnce() {
    const choice = document.getElementById("theme");
    if (choice) {
      choice.form.querySelector("button").hidden = true;
      choice.addEventListener("change", () => choice.form.requestSubmit());
    }
  }

  // While the console does not answer, what is shown is old: parts that come by themselves ask again and again.
  function tellUnreached() {
    const note = document.createElement("p");
    note.id = "unreached";
    note.className = "notice bad";
    note.setAttribute("role", "alert");
    document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
      if (!ctx?.request || ctx.response || note.isConnected) return;
      note.textContent = `The console can't be reached since ${shown(new Date())}: what is shown here is old.`;
      document.querySelector("main").prepend(note);
    });
    document.addEventListener("htmx:after:request", () => note.remove());
  }

  function isWriting(element) {
    return element.matches("input, select, textarea, [contenteditable]");
  }

  function keys() {
    const list = document.getElementById("keys");
    if (!list) return;
    const open = document.getElementById("show-keys");
    open.hidden = false;
    open.addEventListener("click", () => list.showModal());
    let afterG = 0;
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target) || list.open) return;
      if (event.key === "?") {
        list.showModal();
      } else if (event.key === "/") {
        const query = document.getElementById("query");
        if (!query) return;
        query.focus();
      } else if (event.key === "g") {
        afterG = event.timeStamp;
        return;
      } else if (event.timeStamp - afterG < 1500) {
        const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
        if (!link) return;
        link.click();
      } else {
        return;
      }
      afterG = 0;
      event.preventDefault();
    });
  }

  // Forms that can't be taken back ask first: <form data-confirm="Delete the rule?">.
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  // What is shown once can be copied: <button type="button" data-copy="id of the element">.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const of = document.getElementById(button.dataset.copy);
    await navigator.clipboard.writeText(of.value ?? of.textContent);
    button.textContent = "Copied";
  });

  document.addEventListener("DOMContentLoaded", () => {
    localTimes(document);
    secretOfLink();
    themeAtOnce();
    tellUnreached();
    keys();
    toFirstError();
    for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
    new MutationObserver(() => localTimes(document)).observe(document.querySelector("main"), { childList: true, subtree: true });
  });
})();

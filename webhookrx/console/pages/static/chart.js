// Times at the axes of charts in the reader's zone; they come in UTC.
"use strict";

(() => {
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  function localTimes() {
    for (const text of document.querySelectorAll(".chart text[data-at]")) {
      const at = new Date(text.dataset.at);
      delete text.dataset.at;
      text.textContent = (at.getHours() || at.getMinutes() ? clock : day).format(at);
    }
    for (const hint of document.querySelectorAll(".chart-frame [data-zone]")) {
      delete hint.dataset.zone;
      hint.textContent = `Times in ${zone}.`;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    localTimes();
    // Text that is changed in its place is no change of the list of children.
    document.addEventListener("htmx:after:swap", localTimes);
    new MutationObserver(localTimes).observe(document.querySelector("main"), { childList: true, subtree: true });
  });
})();

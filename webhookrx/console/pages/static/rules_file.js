// Reads a file from the disk into the field for the rules file; without it, its text can be pasted.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const choice = document.getElementById("from-disk");
  const field = document.getElementById("file");
  if (!choice || !field) return;
  document.getElementById("choose-file").hidden = false;
  choice.addEventListener("change", async () => {
    if (choice.files.length) {
      field.value = await choice.files[0].text();
      field.focus();
    }
  });
});

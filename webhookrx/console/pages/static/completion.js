// Completes queries while they are written: fields, operators and values that the fleet has, in a list below the field.
// The field says by data-complete what it holds: selector (of routers), condition (of messages), query (data-about says
// on what), or step (YAML, in which lines with select: and condition: hold queries). Without it nothing is lost.
"use strict";

(() => {
  const ABOUT = { selector: "routers", condition: "messages", step: "messages" };
  const QUERY_LINE = /^(\s*(?:-\s+)?(?:select|condition):\s+)(\S.*|)$/;
  let lists = 0;
  let current = null; // the list that is open or was last, of the field that has the focus

  class List {
    constructor(field) {
      this.field = field;
      this.items = [];
      this.active = -1;
      this.place = null;
      this.asked = null;
      this.timer = 0;
      this.box = document.createElement("div");
      this.box.className = "complete";
      this.list = document.createElement("ul");
      this.list.id = `complete-${++lists}`;
      this.list.setAttribute("role", "listbox");
      this.list.setAttribute("aria-label", "Completions");
      this.list.hidden = true;
      this.told = document.createElement("div");
      this.told.className = "unseen";
      this.told.setAttribute("role", "status");
      this.box.append(this.list, this.told);
      field.after(this.box);
      field.setAttribute("aria-autocomplete", "list");
      field.setAttribute("aria-controls", this.list.id);
      // The role combobox is for fields of one line alone (ARIA in HTML).
      if (field.matches('input[type="text"], input:not([type])')) {
        field.setAttribute("role", "combobox");
        field.setAttribute("aria-expanded", "false");
      }
      this.list.addEventListener("mousedown", (event) => {
        event.preventDefault(); // the field keeps the focus
        const option = event.target.closest("[role=option]");
        if (option) this.accept(Number(option.dataset.index));
      });
    }

    // The part of the field that is a query, and the cursor in it; null where there is none.
    part() {
      const { value, selectionStart, selectionEnd, dataset } = this.field;
      if (selectionStart === null || selectionStart !== selectionEnd) return null;
      if (dataset.complete !== "step") return { from: 0, text: value, at: selectionStart };
      const from = value.lastIndexOf("\n", selectionStart - 1) + 1;
      const end = value.indexOf("\n", selectionStart);
      const line = QUERY_LINE.exec(value.slice(from, end < 0 ? value.length : end));
      if (!line || selectionStart < from + line[1].length) return null;
      return { from: from + line[1].length, text: line[2], at: selectionStart - from - line[1].length };
    }

    soon() {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), 120);
    }

    async ask() {
      const part = this.part();
      if (!part || part.text.length > 4000) return this.close();
      this.asked?.abort();
      const asked = (this.asked = new AbortController());
      const query = new URLSearchParams({
        about: ABOUT[this.field.dataset.complete] ?? this.field.dataset.about ?? "routers",
        text: part.text,
        at: Array.from(part.text.slice(0, part.at)).length, // code points
      });
      try {
        const response = await fetch(`/api/v1/queries:complete?${query}`, { signal: asked.signal });
        if (!response.ok) return this.close();
        const found = await response.json();
        if (asked.signal.aborted || document.activeElement !== this.field) return;
        const points = Array.from(part.text);
        const units = (count) => points.slice(0, count).join("").length;
        this.place = [part.from + units(found.start), part.from + units(found.end)];
        this.show(found);
      } catch (error) {
        if (error.name !== "AbortError") this.close();
      }
    }

    show(found) {
      const written = this.field.value.slice(...this.place);
      const items = found.items ?? [];
      // What is there as a whole already needs no list.
      this.items = items.length === 1 && items[0].text === written ? [] : items;
      this.list.replaceChildren(
        ...this.items.map((item, index) => {
          const option = document.createElement("li");
          option.id = `${this.list.id}-${index}`;
          option.dataset.index = index;
          option.setAttribute("role", "option");
          option.setAttribute("aria-selected", "false");
          const text = document.createElement("code");
          text.textContent = item.text;
          option.append(text);
          if (item.note) {
            const note = document.createElement("span");
            note.className = "quiet";
            note.textContent = item.note;
            option.append(" ", note);
          }
          return option;
        }),
      );
      this.activate(-1);
      this.list.hidden = !this.items.length;
      if (this.field.hasAttribute("aria-expanded")) this.field.setAttribute("aria-expanded", String(!this.list.hidden));
      const kind = { field: "fields", operator: "operators", value: "values" }[found.kind] ?? "words";
      this.told.textContent = this.items.length ? `${this.items.length} ${kind}; arrow keys choose one.` : "";
    }

    get isOpen() {
      return !this.list.hidden;
    }

    close() {
      clearTimeout(this.timer);
      this.asked?.abort();
      this.list.hidden = true;
      this.told.textContent = "";
      if (this.field.hasAttribute("aria-expanded")) this.field.setAttribute("aria-expanded", "false");
      this.field.removeAttribute("aria-activedescendant");
      this.active = -1;
    }

    activate(index) {
      this.list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
      this.active = index;
      const option = this.list.children[index];
      if (!option) return this.field.removeAttribute("aria-activedescendant");
      option.setAttribute("aria-selected", "true");
      option.scrollIntoView({ block: "nearest" });
      this.field.setAttribute("aria-activedescendant", option.id);
    }

    accept(index) {
      const [start, end] = this.place;
      const text = `${this.items[index].text}${this.items[index].text.endsWith("(") ? "" : " "}`;
      const isSpaced = text.endsWith(" ") && this.field.value[end] === " ";
      this.field.setRangeText(text, start, isSpaced ? end + 1 : end, "end");
      this.close();
      this.field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }

    // Returns whether a key was for the list.
    key(event) {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        if (!this.isOpen) {
          // In a field of several lines the arrows are for the cursor.
          if (this.field.matches("textarea") || event.key === "ArrowUp") return false;
          this.ask();
          return true;
        }
        const count = this.items.length;
        const step = event.key === "ArrowDown" ? 1 : -1;
        this.activate((this.active < 0 && step < 0 ? count - 1 : this.active + step + count) % count);
        return true;
      }
      if (event.key === " " && event.ctrlKey) {
        this.ask();
        return true;
      }
      if (event.key === "Escape" && this.isOpen) {
        this.close();
        return true;
      }
      if (event.key === "Enter" && this.isOpen && this.active >= 0) {
        this.accept(this.active);
        return true;
      }
      return false;
    }
  }

  function listOf(field) {
    if (current?.field !== field || !current.box.isConnected) {
      current?.close();
      current?.box.remove();
      current = new List(field);
    }
    return current;
  }

  const isOurs = (element) => element instanceof Element && element.matches("[data-complete]");

  document.addEventListener("input", (event) => {
    if (isOurs(event.target) && document.activeElement === event.target) listOf(event.target).soon();
  });
  document.addEventListener("keydown", (event) => {
    if (isOurs(event.target) && !event.isComposing && !event.altKey && !event.metaKey && listOf(event.target).key(event)) {
      event.preventDefault();
      event.stopPropagation();
    }
  });
  document.addEventListener("focusout", (event) => {
    if (current && event.target === current.field) current.close();
  });
})();

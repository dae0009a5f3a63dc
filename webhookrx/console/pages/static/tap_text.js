// What a tap shows, as text: nothing here makes HTML. Senders write what they like, so that characters which hide or
// reorder others are shown as escapes.
"use strict";

const TapText = (() => {
  const LINES = 40; // of a message that are shown at once
  const LENGTH = 300; // characters of a line
  const SUMMARY = 200; // characters of a body in a line
  const PAIRS = 250000; // of lines that are compared
  const NEAR = 2; // lines that are the same around those that are not
  const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

  function visible(text) {
    return text.replace(HIDDEN, (char) => {
      if (char === "\n" || char === "\t") return char;
      const code = char.codePointAt(0);
      return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
    });
  }

  // Numbers keep the digits that were sent, where the browser can do it.
  function parse(text) {
    return JSON.parse(text, (key, value, context) =>
      typeof value === "number" && JSON.rawJSON && context && context.source !== String(value)
        ? JSON.rawJSON(context.source)
        : value,
    );
  }

  function number(value) {
    return Number(value && typeof value === "object" ? value.rawJSON : value);
  }

  function pretty(value) {
    return visible(JSON.stringify(value, null, 2) ?? "");
  }

  // The beginning of a body, in one line.
  function summary(body) {
    if (body === undefined || body === null) return "";
    const text = visible(plain(body)).replace(/\s+/g, " ").trim();
    return text.length > SUMMARY ? `${text.slice(0, SUMMARY)}…` : text;
  }

  // The fields that are to be shown: names with dots between, and names may have dots themselves.
  function pick(value, fields) {
    if (!fields.length || !value || typeof value !== "object") return value;
    const picked = {};
    for (const field of fields) {
      const found = at(value, field.split("."));
      if (found !== undefined) picked[field] = found;
    }
    return picked;
  }

  function at(value, names) {
    if (!names.length) return value;
    if (!value || typeof value !== "object") return undefined;
    for (let count = names.length; count; count--) {
      const name = names.slice(0, count).join(".");
      if (Object.hasOwn(value, name)) {
        const found = at(value[name], names.slice(count));
        if (found !== undefined) return found;
      }
    }
    // As everywhere, what is below meta.connector has a short name.
    return names[0] === "connector" && value.meta ? at(value.meta, names) : undefined;
  }

  function masked(value) {
    if (typeof value === "string") return value.includes("***") ? 1 : 0;
    if (!value || typeof value !== "object" || "rawJSON" in value) return 0;
    return Object.values(value).reduce((sum, each) => sum + masked(each), 0);
  }

  // Lines of both as pairs of a kind and a text; those that are the same once.
  function compared(before, after) {
    // Whether another member follows is no difference.
    const [old, now] = [before, after].map((text) => text.replace(/,$/gm, "").split("\n"));
    let first = 0;
    while (first < Math.min(old.length, now.length) && old[first] === now[first]) first++;
    let last = 0;
    while (last < Math.min(old.length, now.length) - first && old.at(-1 - last) === now.at(-1 - last)) last++;
    const middle = steps(old.slice(first, old.length - last), now.slice(first, now.length - last));
    const same = (lines) => lines.map((text) => ["same", text]);
    return [...same(old.slice(0, first)), ...middle, ...same(old.slice(old.length - last))];
  }

  function steps(old, now) {
    const all = [...old.map((text) => ["removed", text]), ...now.map((text) => ["added", text])];
    if (!old.length || !now.length || old.length * now.length > PAIRS) return all;
    const width = now.length + 1;
    const best = new Uint32Array((old.length + 1) * width);
    for (let i = old.length - 1; i >= 0; i--) {
      for (let k = now.length - 1; k >= 0; k--) {
        best[i * width + k] =
          old[i] === now[k]
            ? best[(i + 1) * width + k + 1] + 1
            : Math.max(best[(i + 1) * width + k], best[i * width + k + 1]);
      }
    }
    const lines = [];
    let i = 0;
    let k = 0;
    while (i < old.length || k < now.length) {
      if (i < old.length && k < now.length && old[i] === now[k]) {
        lines.push(["same", old[i++]]);
        k++;
      } else if (k >= now.length || (i < old.length && best[(i + 1) * width + k] >= best[i * width + k + 1])) {
        lines.push(["removed", old[i++]]);
      } else {
        lines.push(["added", now[k++]]);
      }
    }
    return lines;
  }

  // Leaves out what is the same and far from any difference.
  function near(lines) {
    const shown = new Array(lines.length).fill(false);
    lines.forEach(([kind], index) => {
      if (kind !== "same") shown.fill(true, Math.max(0, index - NEAR), index + NEAR + 1);
    });
    const kept = [];
    let skipped = 0;
    lines.forEach((line, index) => {
      if (!shown[index]) {
        skipped++;
        return;
      }
      if (skipped) kept.push(["skipped", `… ${skipped} lines that are the same`]);
      skipped = 0;
      kept.push(line);
    });
    if (skipped) kept.push(["skipped", `… ${skipped} lines that are the same`]);
    return kept;
  }

  // As much of lines as is shown at once, and whether that is all.
  function cut(lines) {
    const some = lines.slice(0, LINES).map(([kind, text]) => [kind, text.length > LENGTH ? `${text.slice(0, LENGTH)}…` : text]);
    return [some, lines.length <= LINES && lines.every(([, text]) => text.length <= LENGTH)];
  }

  function size(text) {
    const bytes = new Blob([text]).size;
    return bytes < 1024 ? `${bytes} B` : `${(bytes / 1024).toFixed(1)} KiB`;
  }

  // -- a recorded request, as `webhookrx try` reads it

  // What the message was made of, as far as it is known: method, target, headers, body.
  function request(row, path) {
    if (row.row === "refused") {
      return { text: recorded(row.method, row.path, [], ""), notes: ["A tap shows no headers and no body of what was refused."] };
    }
    const point = Object.keys(row).find((name) => name.startsWith("probe:"));
    const from = row.input ?? row.output ?? row[point];
    const notes = [];
    if (masked(from)) notes.push("Values that are masked are ***: put others in their place.");
    if (row.cut) notes.push("It was cut at 64 KiB.");
    if (typeof from?.method === "string" && "headers" in from) {
      const target = from.query ? `${from.path}?${from.query}` : from.path;
      return { text: recorded(from.method, target, pairs(from.headers), from.body ?? ""), notes };
    }
    const log = from?.log ?? {};
    const attributes = log.attributes ?? {};
    if (!row.input) notes.push("It is made of the message after steps, which may have changed it.");
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("webhook.query.")) {
        for (const each of [value].flat()) query.append(name.slice("webhook.query.".length), plain(each));
      }
    }
    const headers = pairs(attributes["webhook.headers"]);
    if (!headers.length) notes.push("Its headers are not in the message; include_request_headers of the rule puts them there.");
    if (typeof log.body !== "string" && !headers.some(([name]) => name.toLowerCase() === "content-type")) {
      headers.push(["Content-Type", "application/json"]);
    }
    if (!path) notes.push("Its path is not known: write it into the first line.");
    const target = (path || "/") + (query.size ? `?${query}` : "");
    return { text: recorded("POST", target, headers, plain(log.body ?? "")), notes };
  }

  function plain(value) {
    return typeof value === "string" ? value : JSON.stringify(value);
  }

  function pairs(headers) {
    return Object.entries(headers ?? {}).flatMap(([name, values]) => [values].flat().map((value) => [name, plain(value)]));
  }

  function recorded(method, target, headers, body) {
    const safe = target.toWellFormed ? target.toWellFormed() : target;
    const encoded = safe.replace(/[^\x21-\x7e]/gu, encodeURIComponent) || "/";
    const lines = [`${/^[A-Z]+$/.test(method) ? method : "POST"} ${encoded} HTTP/1.1`];
    for (const [name, value] of headers) {
      if (/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) lines.push(`${name}: ${value.replace(/[\r\n\0]/g, " ")}`);
    }
    return `${lines.join("\n")}\n\n${body}`;
  }

  // -- queries and commands

  function quoted(text) {
    if (/^[A-Za-z0-9@._:/-]+$/.test(text) && !/^(and|or|not|exists|in|@any)$/i.test(text)) return text;
    const quote = [..."'\"`"].find((each) => !text.includes(each)) ?? "'";
    const escaped = text.replace(new RegExp(`${quote}|\\\\(?=[\\\\${quote}]|$)`, "g"), "\\$&");
    return quote + escaped + quote;
  }

  function joined(query, term) {
    const before = query.trim();
    if (!before) return term;
    return /\bor\b/i.test(before) ? `(${before}) AND ${term}` : `${before} AND ${term}`;
  }

  function shell(words) {
    return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`)).join(" ");
  }

  return { at, compared, cut, joined, masked, near, number, parse, pick, pretty, quoted, request, shell, size, summary, visible };
})();

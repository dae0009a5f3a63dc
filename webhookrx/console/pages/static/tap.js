// The page Tap: starts a tap by the API, shows its events until it ends, and ends it when the page goes. Everything
// that comes from routers and senders is put into the page as text.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const MOST_ROWS = 200;
  const A_FRAME = 8; // rows that one frame draws
  const WHY = {
    over: "its time is over",
    rights: "your session has ended, or you may not tap any more",
    routers: "it has ended at all routers",
    stopping: "the console stops",
    ended: "it was stopped",
    unread: "the page did not read it in time",
    failed: "the console failed; its log says where",
    lost: "the connection to the console was lost",
    left: "you have left the page",
  };
  const COUNTS = [["seen", "seen"], ["matched", "matched"], ["shown", "shown"], ["masked", "masked"], ["not_looked_at", "not looked at"]];
  const { number, visible } = TapText;
  const $ = (id) => document.getElementById(id);
  const form = $("tap");
  const rows = $("rows");
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" });
  const whole = new Intl.NumberFormat("en");
  const kept = []; // what the rows in the page show: {row, element}
  const waiting = []; // rows that are not in the page yet
  const rules = new Map(); // of connectors
  let lost = 0; // rows that were given up while nothing was drawn
  let isPaused = false;
  let follows = true; // the newest row is kept in sight, until somebody looks at others
  let frame = 0;
  let run = null; // the tap: {id, stream, until, point, routers, wanted, masked}

  // -- elements

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  // A text of others stands by itself: it turns nothing around that follows.
  const foreign = (text) => make("bdi", {}, visible(String(text ?? "")));
  const badge = (kind, text) => make("span", { class: `badge ${kind}` }, text);

  // -- rows

  function draw(row) {
    const at = new Date(number(row.at) / 1e6);
    const isTime = !Number.isNaN(at.getTime());
    const time = make("time", { "data-local": "yes" }, isTime ? clock.format(at) : "");
    if (isTime) time.title = `${at.toISOString()}`;
    const head = make("div", { class: "tap-head" }, time, foreign(row.router));
    const element = make("article", { class: "tap-row" }, head);
    if (row.row === "message") {
      head.append(foreign(row.source), make("code", { class: "quiet" }, foreign(row.id)));
      if (row.dropped) head.append(badge("warn", "dropped by a step"));
      if (row.cut) head.append(badge("quiet", "cut at 64 KiB"));
      element.append(contents(row));
    } else if (row.row === "refused") {
      head.append(badge("bad", `${visible(String(row.reason))} (${number(row.status)})`), foreign(row.source));
      element.append(make("p", { class: "wrap mono" }, foreign(`${row.method} ${row.path}`), " from ", foreign(row.peer)), make("p", { class: "wrap" }, foreign(row.detail)));
    } else {
      head.append(badge(/error|critical/.test(row.level) ? "bad" : "quiet", visible(String(row.level))), make("code", { class: "quiet" }, foreign(row.namespace)));
      element.append(make("p", { class: "wrap mono" }, foreign(row.text)));
    }
    if (row.row !== "service") {
      const copy = make("button", { type: "button", class: "small" }, "Copy as a request for try");
      copy.addEventListener("click", () => copyRequest(row, copy));
      head.append(copy);
    }
    return element;
  }

  function contents(row) {
    const points = Object.keys(row).filter((name) => name === "input" || name === "output" || name.startsWith("probe:"));
    const text = (point) => (row[point] === null ? "" : TapText.pretty(TapText.pick(row[point], run?.fields ?? [])));
    const both = points.includes("input") && points.includes("output") && row.input !== null && row.output !== null;
    const view = $("view").value;
    if (both && view === "diff") {
      const [input, output] = [text("input"), text("output")];
      const words = row.cut ? "As far as it is shown, output is the same as input:" : "Output is the same as input:";
      if (input === output) return make("div", {}, make("p", { class: "quiet" }, words), block("output", same(output)));
      const lines = TapText.compared(input, output);
      // What is the same is left out, so that nothing else says which message it is.
      const body = run?.fields.length ? "" : TapText.summary(row.input.log?.body ?? row.input.body);
      return make("div", {}, body ? make("p", { class: "mono wrap", title: "the body as it was received" }, body) : "", block("from input to output", TapText.near(lines), lines));
    }
    const box = make("div", { class: points.length > 1 && view !== "output" ? "halves" : "" });
    for (const point of points) {
      if (view === "output" && both && point !== "output") continue;
      const part = make("div", {}, make("h3", { class: "quiet" }, visible(point)));
      if (row[point] === null) part.append(make("p", { class: "quiet" }, row.dropped ? "none: a step has dropped it" : "it does not come by here"));
      else part.append(block(point, same(text(point))));
      box.append(part);
    }
    return box;
  }

  const same = (text) => text.split("\n").map((line) => ["same", line]);

  // Lines in a frame, at first as many as fit; `all` is what was received.
  function block(label, lines, all = lines) {
    const box = make("div", { class: "diff", dir: "ltr", role: "group", "aria-label": visible(label) });
    const [some, isAll] = TapText.cut(lines);
    fill(box, some);
    if (isAll && lines.length === all.length) return box;
    const total = all.reduce((sum, [, text]) => sum + text.length + 1, 0);
    const button = make("button", { type: "button", class: "small" }, `Show all that was received: ${whole.format(all.length)} ${all.length === 1 ? "line" : "lines"}, ${whole.format(total)} characters`);
    button.addEventListener("click", () => {
      fill(box, all);
      button.remove();
      box.tabIndex = -1;
      box.focus();
    });
    return make("div", {}, box, button);
  }

  function fill(box, lines) {
    const made = lines.map(([kind, text]) => {
      if (kind === "added") return make("ins", {}, make("span", { class: "unseen" }, "added: "), "+ ", text);
      if (kind === "removed") return make("del", {}, make("span", { class: "unseen" }, "removed: "), "- ", text);
      return make("span", { class: kind }, kind === "same" ? `  ${text}` : text);
    });
    box.replaceChildren(...made);
  }

  function take(row) {
    waiting.push({ row, element: null });
    while (waiting.length >= MOST_ROWS) {
      waiting.shift();
      lost++;
    }
    if (isPaused) tellPaused();
    else schedule();
  }

  function schedule() {
    if (!frame && waiting.length && !isPaused) frame = requestAnimationFrame(drawWaiting);
  }

  // All changes of the page of one frame at once; whoever reads further up is not moved.
  function drawWaiting() {
    frame = 0;
    const batch = waiting.splice(0, A_FRAME);
    const made = document.createDocumentFragment();
    if (lost) {
      const note = make("p", { class: "tap-row quiet" }, `${whole.format(lost)} rows were shown to this page and given up, while it drew none.`);
      made.append(note);
      kept.push({ row: null, element: note });
      lost = 0;
    }
    for (const data of batch) {
      data.element = draw(data.row);
      made.append(data.element);
      kept.push(data);
    }
    rows.append(made);
    for (const data of kept.splice(0, Math.max(0, kept.length - MOST_ROWS))) data.element.remove();
    toNewest(2);
    schedule();
  }

  // Rows get their height when they come into sight, so that the end moves for some frames.
  function toNewest(frames) {
    if (!follows) return;
    rows.scrollTop = rows.scrollHeight;
    if (frames) requestAnimationFrame(() => toNewest(frames - 1));
  }

  function follow(should) {
    follows = should;
    $("newest").hidden = should;
    toNewest(20);
  }

  function redraw() {
    for (const data of kept.filter((each) => each.row)) {
      const element = draw(data.row);
      data.element.replaceWith(element);
      data.element = element;
    }
  }

  function clear() {
    kept.length = 0;
    waiting.length = 0;
    lost = 0;
    rows.replaceChildren();
    $("tap-copied").textContent = "";
    follow(true);
    if (isPaused) tellPaused();
  }

  function tellPaused() {
    $("pause").textContent = `Resume: ${waiting.length} wait${lost ? `, ${whole.format(lost)} given up` : ""}`;
  }

  // -- requests for try

  async function copyRequest(row, button) {
    const { path, rule } = row.row === "message" ? await ruleOf(row) : {};
    const { text, notes } = TapText.request(row, path);
    $("request-text").value = text;
    $("request-about").textContent = notes.join(" ");
    try {
      await navigator.clipboard.writeText(text);
      $("tap-copied").replaceChildren(`Copied ${TapText.size(text)} as a request for webhookrx try and the editor of rules. ${notes.join(" ")} `);
      if (rule) $("tap-copied").append(make("a", { href: `/rules/${encodeURIComponent(rule)}#try` }, "Paste it at the rule ", foreign(rule)));
      button.textContent = "Copied";
    } catch {
      $("request").showModal();
    }
  }

  // A message of a connector does not say its path, its rule does.
  async function ruleOf(row) {
    const key = `${row.router}/${row.source}`;
    if (!rules.has(key)) {
      rules.set(key, {});
      try {
        const { connectors } = await (await call("GET", `/routers/${encodeURIComponent(row.router)}/connectors`)).json();
        const rule = connectors.find((each) => each.name === row.source)?.rule;
        const listed = rule ? await (await call("GET", `/rules/${encodeURIComponent(rule)}`)).json() : {};
        const paths = [listed.document?.paths ?? (listed.document ? "/events" : [])].flat();
        rules.set(key, { rule, path: paths.find((path) => /^\/[\w./~%-]*$/.test(path)) });
      } catch {
        // It is for a person to write.
      }
    }
    return rules.get(key);
  }

  // -- the tap

  function call(method, path, body, more = {}) {
    const headers = { "X-CSRF-Token": $("tap-csrf").value };
    if (body) headers["Content-Type"] = "application/json";
    return fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body), ...more });
  }

  function values() {
    const fields = Object.fromEntries(new FormData(form));
    const point = fields.point === "probe" ? `probe:${fields.probe}` : fields.point;
    return { ...fields, point };
  }

  async function start() {
    const { show, probe, ...asked } = values();
    const order = { ...asked, rate: Number(asked.rate) || 1 };
    history.replaceState(null, "", `/tap?${new URLSearchParams([...new FormData(form)].filter(([, value]) => value))}`);
    tellProblem(null);
    clear();
    run = { id: "", stream: null, ended: false, point: asked.point, counts: {}, masked: 0, over: new Set(), fields: show.split(",").map((each) => each.trim()).filter(Boolean) };
    const own = run;
    buttons();
    $("tap-shown").hidden = false;
    $("tap-empty").hidden = true;
    $("stop").focus({ preventScroll: true });
    $("tap-shown").scrollIntoView({ block: "start" });
    tellState("Asking the routers, which have five seconds to answer …");
    showCounts();
    showLeftOut([], 0);
    showRouters([]);
    let response;
    try {
      response = await call("POST", "/taps", order);
    } catch {
      end(own, null, "The console can't be reached.");
      return;
    }
    const answer = await response.json().catch(() => ({}));
    if (response.status !== 201) {
      end(own, null, "No tap runs.");
      tellProblem(answer, response.status);
      showLeftOut(answer.left_out ?? [], answer.left_out_in_all ?? 0);
      return;
    }
    if (own.ended) {
      call("DELETE", `/taps/${answer.id}`).catch(() => {});
      return;
    }
    own.id = answer.id;
    own.until = Date.now() + answer.seconds * 1000;
    own.all = answer.routers.length;
    showLeftOut(answer.left_out, answer.left_out_in_all);
    showRouters(answer.routers.map((router) => ({ router, state: "taps" })));
    tellState(`It runs at ${routersWord(own.all)}${asked.point || asked.filter ? "" : ", and shows input and output"}.`);
    const stream = new EventSource(`/api/v1/taps/${own.id}/events`);
    own.stream = stream;
    stream.addEventListener("row", (event) => {
      const row = TapText.parse(event.data);
      own.masked += TapText.masked(row);
      take(row);
    });
    stream.addEventListener("counts", (event) => {
      own.counts = JSON.parse(event.data);
      showCounts();
      showRouters(own.counts.routers);
      tellRouters(own);
    });
    stream.addEventListener("end", (event) => end(own, JSON.parse(event.data).reason));
    // A stream is read once: what comes back is another one.
    stream.addEventListener("error", () => end(own, "lost"));
  }

  function end(own, reason, sentence) {
    if (own.ended) return;
    own.ended = true;
    own.stream?.close();
    const why = own.counts.routers?.map((each) => each.ended).filter(Boolean) ?? [];
    const routers = reason === "routers" && why.length ? `The tap has ended at all routers: ${visible([...new Set(why)].slice(0, 3).join(" "))}` : "";
    tellState(sentence ?? (routers || `The tap has ended: ${WHY[reason] ?? visible(String(reason))}.`));
    buttons();
  }

  function stop(reason, more) {
    const own = run;
    if (!own || own.ended) return;
    // The last counts come before the end of the stream, which is closed when that does not come.
    if (own.id) call("DELETE", `/taps/${own.id}`, undefined, more).catch(() => {}).finally(() => setTimeout(() => end(own, reason), 1000));
    else end(own, reason);
  }

  // -- what is told beside the rows

  function buttons() {
    const runs = Boolean(run && !run.ended);
    $("start").disabled = runs;
    $("stop").textContent = runs ? "Stop" : "Start again";
  }

  function tellState(text) {
    $("tap-state").textContent = text;
  }

  function routersWord(count) {
    return count === 1 ? "1 router" : `${whole.format(count)} routers`;
  }

  function tellRouters(own) {
    for (const each of own.counts.routers) {
      if (each.ended && !own.over.has(each.router)) {
        own.over.add(each.router);
        tellState(`${visible(each.router)} takes part no more: ${visible(each.ended)}`);
      }
    }
  }

  function showCounts() {
    const counts = { ...run.counts, masked: run.masked };
    const what = { refused: "refusals", service: "lines" }[run.point] ?? "messages";
    const parts = COUNTS.flatMap(([key, word]) => [
      " · ",
      make("span", { title: key === "masked" ? "values in what is shown that routers have masked" : what }, `${word} `, make("b", {}, whole.format(counts[key] ?? 0)), key === "masked" ? " values" : ""),
    ]).slice(1);
    if (counts.dropped) parts.push(" · ", make("span", { title: "shown and then given up, as they came too fast" }, "given up ", make("b", {}, whole.format(counts.dropped))));
    const left = run.until && !run.ended ? Math.max(0, Math.round((run.until - Date.now()) / 1000)) : 0;
    if (left) parts.push(make("span", { class: "quiet" }, left >= 90 ? ` · ${Math.round(left / 60)} min left` : ` · ${left} s left`));
    $("tap-counts").replaceChildren(`${what}: `, ...parts);
  }

  function showLeftOut(leftOut, inAll) {
    const box = $("tap-left-out");
    box.hidden = !leftOut.length;
    box.open = leftOut.length > 0 && leftOut.length < 6;
    box.querySelector("summary").textContent = `${routersWord(inAll)} left out`;
    box.querySelector("ul").replaceChildren(
      ...leftOut.map((each) => {
        const item = make("li", {}, foreign(each.router), ": ", foreign(each.reason));
        if (each.paths?.length) item.append(" Missing: ", ...pathsOf(each.paths));
        return item;
      }),
    );
  }

  function pathsOf(names) {
    return names.flatMap((path, index) => [index ? ", " : "", make("code", {}, foreign(path))]);
  }

  function showRouters(routers) {
    const box = $("tap-routers");
    const taps = routers.filter((each) => !each.ended).length;
    box.hidden = !routers.length;
    box.querySelector("summary").textContent = `${routersWord(taps)} ${taps === 1 ? "takes" : "take"} part${taps < routers.length ? `, ${routers.length - taps} no more` : ""}`;
    if (!box.open && routers.every((each) => !each.ended)) return;
    box.querySelector("ul").replaceChildren(
      ...routers.map((each) => make("li", {}, foreign(each.router), each.ended ? ": no more: " : "", foreign(each.ended ?? ""), each.seen === undefined ? "" : ` (seen ${whole.format(each.seen)}, shown ${whole.format(each.shown)})`)),
    );
  }

  function tellProblem(problem, status) {
    const box = $("tap-problem");
    box.hidden = !problem;
    box.setAttribute("role", "alert");
    for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
    if (!problem) return;
    const text = problem.left_out?.length ? "Below is why." : (problem.detail ?? "");
    box.replaceChildren(make("p", {}, make("strong", {}, problem.title ?? `The console answered ${status}.`), " ", foreign(text)));
    if (problem.paths?.length) box.append(make("p", {}, "Put these files in place, then start again: ", ...pathsOf(problem.paths)));
    if (status === 401) box.append(make("p", {}, make("a", { href: `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}` }, "Sign in again")));
    const wrong = [["routers", "query of routers"], ["connectors", "query of connectors"], ["filter", "query of filter"], ["for", "for:"], ["point", "points"], ["rate", "rate"]].find(([, words]) => text.includes(words));
    const field = wrong && $(wrong[0] === "point" && $("point").value === "probe" ? "probe" : wrong[0]);
    field?.setAttribute("aria-invalid", "true");
    field?.setAttribute("aria-errormessage", box.id);
    (field || box).focus();
  }

  function showCommand() {
    const asked = values();
    const words = ["webhookrx", "tap", "--console", form.dataset.url, "--token-file", "token"];
    const options = [["routers", "--routers", ""], ["connectors", "--connector", ""], ["source", "--source", ""], ["point", "--point", ""], ["filter", "--filter", ""], ["rate", "--rate", "1"], ["for", "--for", "10m"]];
    for (const [name, option, usual] of options) if (asked[name] && asked[name] !== usual) words.push(option, asked[name]);
    $("command").textContent = TapText.shell(words);
    $("probe-field").hidden = form.elements.point.value !== "probe";
  }

  // -- filter by label

  function addLabel() {
    const label = $("label").value.trim();
    if (!label) {
      $("label").focus();
      return;
    }
    const target = $(/^(meta\.)?connector\./.test(label) ? "connectors" : "filter");
    target.value = TapText.joined(target.value, `${label} ${$("operator").value} ${TapText.quoted($("label-value").value)}`);
    $("label-value").value = "";
    showCommand();
    target.focus();
  }

  async function offerValues() {
    const label = $("label").value.trim();
    const list = $("label-values");
    list.replaceChildren();
    if (!/^(meta\.)?connector\./.test(label)) return;
    try {
      const response = await call("GET", `/analytics/top?by=${encodeURIComponent(label)}`);
      const { values: known } = await response.json();
      list.replaceChildren(...known.filter((each) => each.value).slice(0, 30).map((each) => make("option", { value: each.value })));
    } catch {
      // They are only an offer.
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!run || run.ended) start();
  });
  form.addEventListener("input", showCommand);
  $("stop").addEventListener("click", () => {
    if (run && !run.ended) stop("ended");
    else start();
  });
  $("pause").addEventListener("click", () => {
    isPaused = !isPaused;
    $("pause").textContent = "Pause";
    if (isPaused) tellPaused();
    else schedule();
  });
  $("clear").addEventListener("click", clear);
  $("newest").addEventListener("click", () => {
    follow(true);
    rows.focus();
  });
  const canScroll = () => rows.scrollHeight > rows.clientHeight;
  rows.addEventListener("wheel", (event) => event.deltaY < 0 && canScroll() && follow(false), { passive: true });
  rows.addEventListener("touchmove", () => canScroll() && follow(false), { passive: true });
  rows.addEventListener("pointerdown", (event) => event.target === rows && canScroll() && follow(false));
  rows.addEventListener("keydown", (event) => ["ArrowUp", "PageUp", "Home"].includes(event.key) && canScroll() && follow(false));
  rows.addEventListener("focusin", (event) => event.target !== rows && canScroll() && follow(false));
  rows.addEventListener("scroll", () => {
    if (!follows && rows.scrollHeight - rows.scrollTop - rows.clientHeight < 4) follow(true);
  });
  $("view").addEventListener("change", redraw);
  $("tell").addEventListener("change", () => rows.setAttribute("aria-live", $("tell").checked ? "polite" : "off"));
  $("add-label").addEventListener("click", addLabel);
  $("label").addEventListener("change", offerValues);
  // Enter in these fields starts no tap.
  for (const id of ["label", "operator", "label-value"]) {
    $(id).addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      if (id === "label-value") addLabel();
    });
  }
  window.addEventListener("pagehide", () => stop("left", { keepalive: true }));
  for (const id of ["start", "by-label"]) $(id).hidden = false;
  showCommand();
});

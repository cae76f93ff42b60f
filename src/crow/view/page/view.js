// The page: a list of sessions, one of them in five views, and two beside each other. What was written comes as HTML that
// the server made of Markdown; all else is put in as text.

const VIEWS = { conversation: "Conversation", timeline: "Timeline", hooks: "Hooks", usage: "Usage", files: "Files", compare: "Compare" };
const BLOCK = 40; // entries that are made at once, when they come near
const LONG = 3000; // letters of an output that is shown before "more"
const EVERY = 1500; // milliseconds between two looks at a session that may be at work
const byId = (id) => document.getElementById(id);
const whole = byId("data") ? JSON.parse(byId("data").textContent) : null;
const state = { doc: whole, id: "", view: "conversation", seq: null, other: "", query: "" };

/** An element: make("p", {class: "x"}, "text", element). */
function make(name, attributes = {}, ...children) {
  const space = ["svg", "rect", "text", "g", "line", "path", "title"].includes(name) && make.svg;
  const element = space ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

function drawn(work) {
  make.svg = true;
  try { return work(); } finally { make.svg = false; }
}

/** HTML that the server made of Markdown. */
function written(html, tag = "div") {
  const element = make(tag);
  element.innerHTML = html;
  for (const link of element.querySelectorAll("a")) link.rel = "noreferrer noopener";
  return element;
}

const time = (at) => new Date(at * 1000).toLocaleTimeString();
const span = (ms) => (ms < 1 ? `${ms.toFixed(2)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : ms < 90000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60000).toFixed(1)} min`);
const number = (value) => (value ?? 0).toLocaleString("en");
const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const say = (text) => (byId("said").textContent = text);

async function ask(name, query) {
  const answer = await fetch(`/api/${name}?${new URLSearchParams(query)}`);
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error ?? answer.statusText);
  return body;
}

// where we are

function place() {
  const [id = "", view = "conversation", seq = ""] = location.hash.slice(1).split("/");
  const at = { id: decodeURIComponent(id), view: VIEWS[view] ? view : "conversation", seq: null, other: "" };
  if (at.view === "compare") at.other = decodeURIComponent(seq);
  else if (seq !== "") at.seq = Number(seq);
  return at;
}
const link = (id, view = "conversation", seq = "") => `#${encodeURIComponent(id)}/${view}${seq === "" ? "" : `/${seq}`}`;

async function show() {
  const { id, view, seq, other } = place();
  const isNew = id !== state.id || view !== state.view || other !== state.other || !byId("main").childElementCount;
  Object.assign(state, { view, seq, other });
  if (whole) state.id = whole.session.id;
  else if (id !== state.id) {
    state.id = id;
    state.doc = id ? await ask("session", { id }) : null;
  }
  if (!state.doc) return list();
  heading(state.doc);
  if (isNew) byId("main").replaceChildren(...(await views[view](state.doc)));
  if (seq !== null) go(seq);
  else closeDetail();
}

function heading(doc) {
  const { session } = doc;
  document.title = `${session.title || "Session"} - Crow`;
  byId("title").textContent = session.title || session.id;
  const cost = session.usage.cost ? `, $${session.usage.cost.toFixed(2)}` : "";
  const tokens = session.usage.total_tokens ? `, ${number(session.usage.total_tokens)} tokens${cost}` : "";
  const calls = doc.entries.filter((entry) => entry.kind === "call");
  const bad = calls.filter((call) => ["error", "denied"].includes(call.outcome)).length;
  byId("about").textContent = `${session.cwd} · ${new Date(session.created).toLocaleString()} · ${number(calls.length)} calls${bad ? `, ${bad} failed or denied` : ""}${tokens}`;
  if (doc.hidden && Object.keys(doc.hidden).length) byId("about").append(` · taken out: ${Object.entries(doc.hidden).map(([what, times]) => `${what} (${times})`).join(", ")}`);
  const machines = new Set((doc.machines ?? []).map((each) => each.who)).size;
  if (machines > 1) byId("about").append(` · on ${machines} machines`);
  const offered = Object.entries(VIEWS).filter(([view]) => view !== "compare" || !whole);
  const tabs = offered.map(([view, name], index) => make("a", { href: link(state.id, view), "aria-current": view === state.view ? "page" : null, title: `${index + 1}` }, name));
  byId("tabs").replaceChildren(...(whole ? [] : [make("a", { href: "#" }, "All sessions")]), ...tabs);
  byId("tabs").hidden = byId("search").hidden = false;
}

// the list

async function list() {
  document.title = "Sessions - Crow";
  byId("title").textContent = "Sessions";
  byId("about").textContent = "";
  byId("tabs").hidden = true;
  byId("search").hidden = false;
  closeDetail();
  const rows = await ask("sessions", { q: state.query });
  const items = rows.map((row) =>
    make("li", {}, make("a", { href: link(row.id) }, row.title || row.prompt || row.id), row.used_by ? make("span", { class: "ok" }, " at work") : ["interrupted", "unanswered"].includes(row.outcome) ? make("span", { class: "cancelled" }, ` ${row.outcome}`) : "",
      make("div", { class: "quiet" }, [new Date(row.updated).toLocaleString(), row.cwd, `${row.turns} ${row.turns === 1 ? "prompt" : "prompts"}`, row.cost ? `$${row.cost.toFixed(2)}` : ""].filter(Boolean).join(" · ")),
      row.snippet ? make("div", { class: "quiet" }, row.snippet) : ""));
  byId("main").replaceChildren(items.length ? make("ul", { class: "list" }, ...items) : make("p", { class: "quiet" }, state.query ? "Nothing was found." : "There are no sessions yet."));
  say(`${rows.length} sessions`);
}

// the conversation: blocks that are filled when they come near

const BESIDE = ["request", "hooks", "break"];
const told = (doc) => doc.entries.filter((entry) => !BESIDE.includes(entry.kind));

function conversation(doc) {
  const entries = told(doc);
  const blocks = [];
  for (let start = 0; start < entries.length; start += BLOCK) {
    const part = entries.slice(start, start + BLOCK);
    const block = make("div", { class: "block", style: null });
    block.entries = part;
    block.style.minHeight = `${part.length * 4}rem`;
    blocks.push(block);
  }
  const near = new IntersectionObserver((seen) => seen.filter((each) => each.isIntersecting).forEach((each) => fill(each.target)), { rootMargin: "1500px" });
  blocks.forEach((block) => near.observe(block));
  blocks.slice(0, 1).forEach(fill);
  return blocks.length ? blocks : [make("p", { class: "quiet" }, "Nothing was said yet.")];
}

function fill(block) {
  if (!block.entries) return;
  block.replaceChildren(...block.entries.map(entryOf));
  block.style.minHeight = "";
  block.entries = null;
}

function entryOf(entry) {
  const attributes = { id: `e${entry.seq}-${entry.kind}${entry.id ?? ""}`, class: entry.kind, "data-seq": entry.seq };
  const head = (text) => make("h2", {}, text, make("span", { class: "num" }, ` ${time(entry.at)}`));
  switch (entry.kind) {
    case "prompt": return make("article", attributes, head("You"), written(entry.html), entry.beside.length ? make("p", { class: "quiet" }, `with ${entry.beside.join(", ")}`) : "");
    case "answer": return make("article", attributes, head("Model"), requestButton(entry, "request"), entry.thought ? make("details", {}, make("summary", {}, "Thoughts"), make("pre", {}, entry.thought)) : "", written(entry.html));
    case "call": return callOf(entry, attributes);
    case "plan": return make("article", attributes, head("Plan"), make("ul", {}, ...entry.entries.map((each) => make("li", {}, `${{ completed: "✓", in_progress: "→" }[each.status] ?? "·"} ${each.content}`))));
    case "moved": return make("article", attributes, head(`Went on at ${entry.who}`), make("p", { class: "quiet" }, [`epoch ${entry.epoch}`, entry.lost ? `taken over from ${entry.lost}, which was not heard of` : "handed over", entry.unknown ? `calls of unknown outcome: ${entry.unknown}` : ""].filter(Boolean).join(" · ")));
    case "compacted": return make("article", attributes, head("The conversation was compacted"), make("details", {}, make("summary", {}, "Summary"), written(entry.html)));
    default: return make("article", attributes, head(entry.role ? "Told to the model" : "Beside the conversation"), entry.prompt ? make("p", {}, entry.prompt) : "", make("details", { open: (entry.text ?? "").length < 400 }, make("summary", {}, "Text"), make("pre", {}, entry.text || entry.thought || "")));
  }
}

function callOf(entry, attributes) {
  const mark = { ok: "✓", error: "✗", denied: "⊘", cancelled: "○" }[entry.outcome] ?? "?";
  const button = make("button", { type: "button", onclick: () => (location.hash = link(state.id, state.view, entry.seq)) && detail(entry) },
    make("span", { class: entry.outcome || "unknown", "aria-hidden": "true" }, mark), make("span", { class: "name" }, entry.name),
    make("span", { class: "title" }, entry.title), make("span", { class: "num" }, entry.outcome || "no result", entry.ms === undefined ? "" : `, ${span(entry.ms)}`));
  return make("article", attributes, button);
}

// a request as it was sent: what of it is no part of the conversation

function requestButton(entry, text) {
  const sent = state.doc.sent?.[entry.request];
  const show = () => (state.view === "usage" ? (location.hash = link(state.id, "usage", entry.seq)) : requestOf(entry, sent));
  return sent ? make("button", { type: "button", class: "small", "aria-label": `${text}, as it was sent`, onclick: show }, text) : "";
}

/** The pieces of the reply to a request: the answer's words and the calls that came with them. */
function replyOf(entry) {
  const pieces = state.doc.entries.filter((each) => ["answer", "call"].includes(each.kind));
  const seq = entry.kind === "request" ? pieces.findLast((each) => each.seq < entry.seq)?.seq : entry.seq;
  return pieces.filter((each) => each.seq === seq);
}

function pieceOf(piece) {
  if (piece.kind === "call") return [make("p", { class: "quiet" }, `calls ${piece.name}`), make("pre", {}, shown(piece.asked ?? piece.args))];
  return [...(piece.thought ? [make("p", { class: "quiet" }, "thinks"), long(piece.thought)] : []), ...(piece.text ? [make("p", { class: "quiet" }, "says"), long(piece.text)] : [])];
}

function requestOf(entry, sent) {
  const many = sent.tools ?? [];
  const made = sent.made.map((each) => [make("p", { class: "quiet" }, `message ${each.at + 1}, ${each.role}`), long(each.text)]);
  const upTo = told(state.doc).filter((each) => each.seq < entry.seq && each.kind !== "aside").length;
  open([
    make("h2", {}, "The request as it was sent"),
    make("p", { class: "quiet" }, [time(entry.at), `model ${sent.model ?? "of the endpoint's own"}`, `the conversation up to here, ${upTo} entries`].join(" · ")),
    ...section("Parameters", Object.keys(sent.params ?? {}).length ? make("pre", {}, shown(sent.params)) : ""),
    ...section("Put there by hooks", ...made.flat()),
    ...section("In front of the conversation", ...(sent.system ?? []).map((each) => long(each.text))),
    ...section("The reply, in its pieces", ...replyOf(entry).flatMap(pieceOf)),
    ...section(`Tools (${many.length})`, ...many.map((tool) => make("details", {}, make("summary", {}, tool.function?.name ?? "?"), make("pre", {}, shown(tool)))))]);
}

const section = (name, ...children) => (children.filter(Boolean).length ? [make("h3", {}, name), ...children] : []);

/** Show something beside the page. */
function open(children) {
  byId("detail").replaceChildren(make("button", { type: "button", onclick: leave, "aria-label": "Close (Escape)" }, "Close"), ...children);
  byId("detail").hidden = false;
  document.body.classList.add("beside");
  byId("detail").focus({ preventScroll: true });
}

// one call, with all that is known of it

function detail(entry) {
  const changed = entry.asked ? [...section("Asked for by the model", changes(shown(entry.asked), shown(entry.args)))] : section("Arguments", make("pre", {}, shown(entry.args)));
  const decisions = (entry.decisions ?? []).map((each) => make("p", {}, make("strong", { class: { allow: "ok", deny: "error" }[each.verdict] ?? "unknown" }, each.verdict), ` by ${each.who}${each.reason ? `: ${each.reason}` : ""}`, ...Object.entries(each).filter(([name]) => !["verdict", "who", "reason"].includes(name)).map(([name, value]) => make("pre", {}, `${name}: ${shown(value)}`))));
  open([
    make("h2", {}, `${entry.name} `, make("span", { class: entry.outcome || "unknown" }, entry.outcome || "no result")),
    make("p", { class: "quiet" }, [entry.title, entry.began ? time(entry.began) : "", entry.ms === undefined ? "" : span(entry.ms)].filter(Boolean).join(" · ")),
    ...section("Who decided", ...decisions), ...changed,
    ...section("Changes", ...(entry.diffs ?? []).flatMap((each) => [make("p", { class: "quiet" }, each.path), changes(each.old ?? "", each.new ?? "")])),
    ...section("Output", entry.output === undefined ? "" : long(entry.output)),
    ...section(`Hooks (${entry.hooks.length})`, entry.hooks.length ? chain(entry.hooks, { args: entry.asked ?? entry.args }) : "")]);
}

function leave() {
  const here = link(state.id, state.view, state.view === "compare" ? state.other : "");
  if (location.hash === here) closeDetail();
  else location.hash = here;
}
function closeDetail() {
  byId("detail").hidden = true;
  document.body.classList.remove("beside");
  document.querySelector("article.here")?.classList.remove("here");
}

function long(text) {
  const box = make("pre", {}, text.slice(0, LONG));
  if (text.length > LONG) box.append("\n", make("button", { type: "button", onclick: () => box.replaceChildren(text) }, `${number(text.length - LONG)} letters more`));
  return box;
}

const JUDGING = ["before_tool", "on_permission", "around_tool"];

/** The chain of hooks: who ran on what, what it answered, what it changed of that, how long it took. */
function chain(records, given = {}) {
  const now = { ...given };
  const rows = records.map((each) => {
    const did = [];
    const saw = JUDGING.includes(each.event) && now.args !== undefined ? make("details", {}, make("summary", {}, "ran on"), make("pre", {}, shown(now.args))) : "";
    if (each.answer !== undefined) did.push(make("div", {}, typeof each.answer === "object" && each.answer?.type ? `${each.answer.type}${each.answer.reason ? `: ${each.answer.reason}` : ""}` : shown(each.answer)));
    for (const [name, value] of Object.entries(each.changed ?? {})) {
      const before = now[name];
      did.push(make("div", {}, make("span", { class: "quiet" }, before === undefined ? `${name} is now ` : `${name} changed `), before === undefined ? make("code", {}, shown(value)) : changes(shown(before), shown(value))));
      now[name] = value;
    }
    if (each.error) did.push(make("div", { class: "error" }, each.error));
    return make("tr", {}, make("td", {}, each.event), make("td", {}, `${each.owner}.${each.hook}`), make("td", {}, ...did, saw), make("td", { class: "num" }, span(each.ms)));
  });
  return make("table", {}, make("thead", {}, make("tr", {}, ...["event", "hook", "what it did", "time"].map((name) => make("th", { scope: "col", class: name === "time" ? "num" : null }, name)))), make("tbody", {}, ...rows));
}

/** A diff by lines: what both share at the beginning and the end stands once. */
function changes(before, after) {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let head = 0, tail = 0;
  while (head < Math.min(a.length, b.length) && a[head] === b[head]) head++;
  while (tail < Math.min(a.length, b.length) - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const context = (lines) => lines.map((line) => `  ${line}\n`).join("");
  const box = make("pre", {}, context(a.slice(Math.max(0, head - 3), head)));
  for (const line of before === "" ? [] : a.slice(head, a.length - tail)) box.append(make("del", {}, `- ${line}`));
  for (const line of b.slice(head, b.length - tail)) box.append(make("ins", {}, `+ ${line}`));
  box.append(context(a.slice(a.length - tail, a.length - tail + 3)));
  return box;
}

// the timeline: who was at it when; it zooms

function bars(doc) {
  const found = [];
  let last = null;
  for (const entry of doc.entries) {
    if (entry.kind === "prompt") last = entry.at;
    if (entry.kind === "answer" || entry.kind === "call") {
      if (last !== null && entry.at > last) found.push({ row: 0, from: last, to: entry.at, kind: "model", text: "model", entry });
      last = null;
    }
    if (entry.kind === "call" && entry.began) {
      const waited = entry.hooks.find((each) => each.owner === "user");
      if (waited) found.push({ row: 2, from: entry.began - waited.ms / 1000, to: entry.began, kind: "user", text: "waited for you", entry });
      found.push({ row: 1, from: entry.began, to: entry.ended ?? entry.began, kind: entry.outcome === "ok" ? "tool" : "bad", text: `${entry.name} ${entry.title}`, entry });
      let at = entry.began;
      for (const each of entry.hooks.filter((hook) => hook.event === "before_tool" && hook.ms >= 1).reverse()) {
        found.push({ row: 3, from: at - each.ms / 1000, to: at, kind: "hook", text: `${each.owner}.${each.hook}`, entry });
        at -= each.ms / 1000;
      }
      last = Math.max(last ?? 0, entry.ended ?? 0) || last;
    }
  }
  return found;
}

/** Where the session was, with its part of the requests, and how it left. */
function machines(doc) {
  const rows = doc.machines ?? [];
  if (rows.length < 2) return [];
  const cells = (row) => [make("a", { href: link(state.id, "conversation", row.seq) }, `${row.epoch}`), row.who, time(row.began), row.until < row.since ? "none" : `${row.since} to ${row.until ?? "the last"}`, row.how ?? "", row.unknown ? `${row.unknown}` : ""];
  return [make("h2", {}, "Where it was"),
    make("table", {}, make("thead", {}, make("tr", {}, ...["epoch", "machine", "from", "requests", "left", "calls of unknown outcome"].map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row).map((cell) => make("td", { class: cell === "lost" ? "error" : null }, cell))))))];
}

function timeline(doc) {
  const all = bars(doc);
  if (!all.length) return [make("p", { class: "quiet" }, "Nothing ran yet.")];
  const [first, end] = [Math.min(...all.map((bar) => bar.from)), Math.max(...all.map((bar) => bar.to))];
  const seen = { from: first, to: Math.max(end, first + 0.001) };
  const box = drawn(() => make("svg", { viewBox: "0 0 1000 190", role: "group", "aria-label": "Timeline: model, tools, waiting for you, hooks" }));
  const draw = () => drawn(() => {
    const scale = 1000 / (seen.to - seen.from);
    const rows = ["model", "tools", "you", "hooks"].map((name, row) => make("text", { x: 4, y: row * 40 + 14 }, name));
    const near = all.filter((bar) => bar.to >= seen.from && bar.from <= seen.to);
    const rects = near.map((bar) => {
      const x = Math.max(0, (bar.from - seen.from) * scale);
      const width = Math.max(2, Math.min(1000, (bar.to - seen.from) * scale) - x);
      const said = `${bar.text}, ${span((bar.to - bar.from) * 1000)}`;
      const open = () => (bar.entry.kind === "call" ? detail(bar.entry) : (location.hash = link(state.id, "conversation", bar.entry.seq)));
      return make("rect", { x, y: bar.row * 40 + 18, width, height: 18, rx: 2, class: bar.kind, tabindex: near.length < 400 ? 0 : null, role: "button", "aria-label": said, onclick: open, onkeydown: (event) => event.key === "Enter" && open() }, make("title", {}, said));
    });
    const ticks = [0, 0.25, 0.5, 0.75].map((part) => make("text", { x: part * 1000 + 4, y: 185 }, span((seen.from - first + part * (seen.to - seen.from)) * 1000)));
    const moved = (doc.machines ?? []).slice(1).filter((each) => each.began >= seen.from && each.began <= seen.to)
      .map((each) => make("line", { x1: (each.began - seen.from) * scale, x2: (each.began - seen.from) * scale, y1: 0, y2: 170, class: "moved" }, make("title", {}, `went on at ${each.who}, epoch ${each.epoch}`)));
    box.replaceChildren(...rows, ...moved, ...rects, ...ticks);
  });
  const zoom = (factor, middle = 0.5) => {
    const at = seen.from + (seen.to - seen.from) * middle;
    const width = Math.min(end - first || 0.001, Math.max(0.001, (seen.to - seen.from) * factor));
    seen.from = Math.max(first, Math.min(end - width, at - width * middle));
    seen.to = seen.from + width;
    draw();
  };
  const move = (part) => {
    const width = seen.to - seen.from;
    seen.from = Math.max(first, Math.min(end - width, seen.from + part * width));
    seen.to = seen.from + width;
    draw();
  };
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaX) < Math.abs(event.deltaY)) {
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / box.clientWidth);
    } else { event.preventDefault(); move((event.deltaX || event.deltaY) / 500); }
  }, { passive: false });
  draw();
  const button = (text, name, work) => make("button", { type: "button", "aria-label": name, onclick: work }, text);
  const sums = { model: 0, tool: 0, user: 0, hook: 0 };
  for (const bar of all) sums[bar.kind === "bad" ? "tool" : bar.kind] += (bar.to - bar.from) * 1000;
  const key = Object.entries({ model: "model", tool: "tools", user: "waiting for you", hook: "hooks before calls" }).flatMap(([kind, name]) => [make("span", { class: `key ${kind}` }), `${name} ${span(sums[kind])}`]);
  return [make("p", {}, button("+", "Zoom in", () => zoom(0.5)), button("−", "Zoom out", () => zoom(2)), button("←", "Earlier", () => move(-0.5)), button("→", "Later", () => move(0.5)), button("all", "All of the session", () => zoom(1e9)), ...key), box,
    make("p", { class: "quiet" }, "The wheel zooms, with Shift it moves. A bar opens what it stands for."), ...machines(doc)];
}

// every hook, and what it cost

function hooks(doc) {
  const sums = new Map();
  const records = doc.entries.flatMap((entry) => (entry.kind === "call" ? entry.hooks : entry.kind === "hooks" ? entry.records : []));
  for (const each of records) {
    const name = `${each.owner}.${each.hook}`;
    const sum = sums.get(name) ?? { events: new Set(), runs: 0, ms: 0, most: 0, did: 0, failed: 0 };
    sum.events.add(each.event);
    sum.runs++;
    sum.ms += each.ms;
    sum.most = Math.max(sum.most, each.ms);
    sum.did += each.answer !== undefined || each.changed !== undefined;
    sum.failed += each.error !== undefined;
    sums.set(name, sum);
  }
  const rows = [...sums].sort((a, b) => b[1].ms - a[1].ms).map(([name, sum]) =>
    make("tr", {}, make("td", {}, name), make("td", {}, [...sum.events].join(", ")), ...[sum.runs, sum.did, sum.failed].map((value, index) => make("td", { class: `num${index === 2 && value ? " error" : ""}` }, number(value))), make("td", { class: "num" }, span(sum.ms)), make("td", { class: "num" }, span(sum.most))));
  const loose = doc.entries.filter((entry) => entry.kind === "hooks");
  return [make("h2", {}, "What each hook did"), make("table", {}, make("thead", {}, make("tr", {}, ...["hook", "events", "runs", "decided or changed", "failed", "time in all", "longest"].map((name, index) => make("th", { scope: "col", class: index > 1 ? "num" : null }, name)))), make("tbody", {}, ...rows)),
    ...(loose.length ? [make("h2", {}, "Beside the calls"), ...loose.map((entry) => make("div", {}, make("p", { class: "quiet" }, time(entry.at)), chain(entry.records)))] : [])];
}

// tokens of each request, and where the cache was lost or the conversation compacted

/** What happened between requests: at which of them, and how that is said. */
function marks(doc) {
  const found = [];
  let index = -1;
  for (const entry of doc.entries) {
    if (entry.kind === "request") index++;
    if (entry.kind === "break") found.push({ index, entry, kind: entry.expected ? "user" : "bad", text: entry.reason });
    if (entry.kind === "compacted") found.push({ index: index + 1, entry, kind: "hook", text: `compacted${entry.by ? ` (${entry.by})` : ""}` });
  }
  return found;
}

function usage(doc) {
  const rows = doc.entries.filter((entry) => entry.kind === "request");
  if (!rows.length) return [make("p", { class: "quiet" }, "This session has no record of its requests' tokens.")];
  const most = Math.max(...rows.map((row) => row.context ?? 0), 1);
  const window = rows.at(-1).window;
  const width = 1000 / rows.length;
  const plot = drawn(() => make("svg", { viewBox: "0 0 1000 160", role: "img", "aria-label": `Context of ${rows.length} requests, at most ${number(most)} tokens` },
    ...rows.flatMap((row, index) => {
      const height = ((row.context ?? 0) / most) * 130;
      const cached = ((row.last.cached_tokens ?? row.last.cache_read_tokens ?? 0) / most) * 130;
      const title = make("title", {}, `request ${index + 1}: ${number(row.context)} tokens of context, ${number(row.last.output_tokens)} written`);
      return [make("rect", { x: index * width, y: 145 - height, width: Math.max(1, width - 1), height, class: "model" }, title), make("rect", { x: index * width, y: 145 - cached, width: Math.max(1, width - 1), height: cached, class: "tool" })];
    }), ...marks(doc).map((each) => make("rect", { x: Math.max(0, each.index) * width, y: 147, width: Math.max(3, width - 1), height: 8, class: each.kind }, make("title", {}, each.text))),
    make("text", { x: 4, y: 12 }, `${number(most)} tokens${window ? ` of ${number(window)}` : ""}`)));
  const cells = (row) => [row.last.input_tokens, row.last.cached_tokens ?? row.last.cache_read_tokens ?? 0, row.last.output_tokens, row.context];
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...["request", "input", "from cache", "output", "context", "cost"].map((name) => make("th", { scope: "col", class: "num" }, name)))), make("tbody", {}, ...rows.map((row, index) => make("tr", {}, make("td", { class: "num" }, requestButton(row, `request ${index + 1}`) || index + 1), ...cells(row).map((value) => make("td", { class: "num" }, number(value))), make("td", { class: "num" }, row.last.cost ? `$${row.last.cost.toFixed(4)}` : "")))));
  const lost = marks(doc).map((each) => make("li", {}, `request ${Math.max(0, each.index) + 1}: ${each.text}`));
  const keys = { model: "context", tool: "from the cache", bad: "the cache was lost", user: "lost, and nobody's fault", hook: "compacted" };
  return [make("p", {}, ...Object.entries(keys).flatMap(([kind, name]) => [make("span", { class: `key ${kind}` }), name])), plot,
    ...(lost.length ? [make("h2", {}, "Where the cache was lost, or the conversation compacted"), make("ul", {}, ...lost)] : []), table];
}

// two sessions beside each other: what both did in the same order stands in one line

/** What a session did, as lines that can be compared. */
function steps(doc) {
  const text = { prompt: (entry) => entry.text, answer: (entry) => entry.text, call: (entry) => `${entry.name} ${shown(entry.asked ?? entry.args)}` };
  return doc.entries.filter((entry) => text[entry.kind] && text[entry.kind](entry)).slice(0, 2000).map((entry) => ({ entry, key: `${entry.kind} ${text[entry.kind](entry)}` }));
}

/** Pairs of steps, one of which may be missing: the longest row of steps that both have, and the rest. */
function aligned(left, right) {
  const wide = right.length + 1;
  const long = new Uint16Array((left.length + 1) * wide);
  for (let i = left.length - 1; i >= 0; i--)
    for (let j = right.length - 1; j >= 0; j--)
      long[i * wide + j] = left[i].key === right[j].key ? long[(i + 1) * wide + j + 1] + 1 : Math.max(long[(i + 1) * wide + j], long[i * wide + j + 1]);
  const pairs = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i].key === right[j].key) pairs.push([left[i++], right[j++]]);
    else if (j >= right.length || (i < left.length && long[(i + 1) * wide + j] >= long[i * wide + j + 1])) pairs.push([left[i++], null]);
    else pairs.push([null, right[j++]]);
  }
  return pairs;
}

function sums(doc) {
  const calls = doc.entries.filter((entry) => entry.kind === "call");
  const count = (outcome) => calls.filter((call) => call.outcome === outcome).length;
  const { usage } = doc.session;
  const [first, last] = [doc.entries[0]?.at ?? 0, doc.entries.at(-1)?.at ?? 0];
  return { requests: doc.entries.filter((entry) => entry.kind === "request").length, calls: calls.length, failed: count("error"), denied: count("denied"), tokens: usage.total_tokens ?? 0, "from the cache": usage.cached_tokens ?? usage.cache_read_tokens ?? 0, cost: usage.cost ? `$${usage.cost.toFixed(4)}` : "", "from first to last": span((last - first) * 1000), "cache lost": doc.entries.filter((entry) => entry.kind === "break" && !entry.expected).length };
}

async function compare(doc) {
  const rows = (await ask("sessions", {})).filter((row) => row.id !== state.id);
  if (!rows.length && !state.other) return [make("p", { class: "quiet" }, "There is no other session.")];
  const choice = make("select", { "aria-label": "The other session", onchange: (event) => (location.hash = link(state.id, "compare", encodeURIComponent(event.target.value))) },
    make("option", { value: "" }, "with ..."), ...rows.map((row) => make("option", { value: row.id, selected: row.id === state.other }, `${row.title || row.prompt || row.id} (${new Date(row.updated).toLocaleString()})`)));
  if (!state.other) return [make("p", {}, "Compare ", choice)];
  const other = await ask("session", { id: state.other });
  const [mine, theirs] = [sums(doc), sums(other)];
  const shownSum = (value) => (typeof value === "number" ? number(value) : value);
  const totals = make("table", {}, make("thead", {}, make("tr", {}, ...["in all", doc.session.title || "this one", other.session.title || "the other one"].map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...Object.keys(mine).map((name) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, shownSum(mine[name])), make("td", {}, shownSum(theirs[name]))))));
  const cell = (step, id) => {
    if (!step) return make("td", { class: "quiet" }, "–");
    const { entry } = step;
    const text = entry.kind === "call" ? `${entry.name} ${entry.title === entry.name ? shown(entry.args) : entry.title}` : entry.text;
    return make("td", {}, make("a", { href: link(id, "conversation", entry.seq) }, { prompt: "You", answer: "Model", call: "Call" }[entry.kind]), ` ${text.slice(0, 300)} `, entry.kind === "call" ? make("span", { class: entry.outcome || "unknown" }, entry.outcome || "no result") : "");
  };
  const pairs = aligned(steps(doc), steps(other));
  const differs = ([left, right]) => !left || !right || left.entry.outcome !== right.entry.outcome;
  const body = pairs.map((pair) => make("tr", { class: differs(pair) ? "differs" : null }, cell(pair[0], state.id), cell(pair[1], state.other)));
  const many = pairs.filter(differs).length;
  return [make("p", {}, "Compared with ", choice), totals, make("h2", {}, many ? `${many} of ${pairs.length} steps differ` : "Both did the same"),
    make("table", { class: "pairs" }, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, doc.session.title || "this one"), make("th", { scope: "col" }, other.session.title || "the other one"))), make("tbody", {}, ...body))];
}

// files

function files(doc) {
  if (!doc.files.length) return [make("p", { class: "quiet" }, "No call has changed a file.")];
  return doc.files.map((file) => make("details", { open: doc.files.length < 6 }, make("summary", {}, `${file.path} (${file.changes.length})`), ...file.changes.map((each) => make("div", {}, make("a", { href: link(state.id, "conversation", each.seq) }, `at ${each.seq}`), changes(each.old ?? "", each.new ?? "")))));
}

const views = { conversation, timeline, hooks, usage, files, compare };

// moving about

function go(seq) {
  const asked = state.view === "usage" && state.doc.entries.find((each) => each.kind === "request" && each.seq === seq);
  if (asked && state.doc.sent[asked.request]) return requestOf(asked, state.doc.sent[asked.request]);
  const entry = state.doc.entries.find((each) => each.seq === seq && each.kind === "call") ?? told(state.doc).find((each) => each.seq >= seq);
  if (!entry) return;
  if (state.view === "conversation") {
    for (const block of document.querySelectorAll(".block")) if (block.entries?.includes(entry)) fill(block);
    const article = byId(`e${entry.seq}-${entry.kind}${entry.id ?? ""}`);
    document.querySelector("article.here")?.classList.remove("here");
    article?.classList.add("here");
    article?.scrollIntoView({ block: "nearest" });
  }
  if (entry.kind === "call") detail(entry);
  else closeDetail();
}

function step(by) {
  const known = told(state.doc);
  const at = known.findIndex((entry) => entry.seq >= (state.seq ?? -1));
  const next = known[Math.max(0, Math.min(known.length - 1, state.seq === null ? 0 : at + by))];
  if (next) location.hash = link(state.id, "conversation", next.seq);
}

function find(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const inIt = (entry) => words.every((word) => [entry.text, entry.title, entry.output, entry.name, shown(entry.args ?? "")].join("\n").toLowerCase().includes(word));
  const hits = words.length ? state.doc.entries.filter((entry) => ["prompt", "answer", "call", "aside"].includes(entry.kind) && inIt(entry)) : [];
  say(words.length ? `${hits.length} found` : "");
  const next = hits.find((entry) => entry.seq > (state.seq ?? -1)) ?? hits[0];
  if (next) location.hash = link(state.id, "conversation", next.seq);
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  state.query = byId("search").elements.q.value;
  state.doc ? find(state.query) : list();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") return event.target.matches?.("input") ? event.target.blur() : !byId("detail").hidden && leave();
  if (event.target.matches?.("input, textarea")) return;
  if (event.key === "/") { event.preventDefault(); byId("search").elements.q.focus(); }
  if (!state.doc) return;
  if (event.key === "j") step(1);
  if (event.key === "k") step(-1);
  const view = Object.keys(VIEWS)[Number(event.key) - 1];
  if (view && (view !== "compare" || !whole)) location.hash = link(state.id, view);
});

/** A session at work grows while somebody looks. */
async function look() {
  if (!whole && state.doc && !document.hidden) {
    try {
      const now = await ask("session", { id: state.id, known: state.doc.count });
      if (now) {
        const isAtEnd = scrollY + innerHeight >= document.documentElement.scrollHeight - 80;
        state.doc = now;
        heading(now);
        byId("main").replaceChildren(...(await views[state.view](now)));
        if (isAtEnd) scrollTo(0, document.documentElement.scrollHeight);
      }
      say("");
    } catch (error) { say(`crow view does not answer: ${error.message}`); }
  }
  if (!whole) setTimeout(look, EVERY);
}

const shownOrSaid = () => show().catch((error) => say(error.message));
addEventListener("hashchange", shownOrSaid);
shownOrSaid().then(look);

// What all pages use: rendering, loading, and the components. Text of a memory always goes through <Text> or a text node.
import { Component, createContext, h, html, render, useCallback, useContext, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "./vendor/htm.js";

export { Component, createContext, h, html, render, useCallback, useContext, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState };

/** The session, for every component: const session = useSession(). */
export const Session = createContext({ read_only: true });
export const useSession = () => useContext(Session);

// Routes -----------------------------------------------------------------------------------------------------------------

/** Go to a page: navigate("/search", {query: "key"}). Pass {replace: true} to leave no entry in the browser's history. */
export function navigate(path, args = {}, { replace = false } = {}) {
  const hash = address(path, args);
  if (!replace) location.hash = hash;
  else {
    history.replaceState(null, "", hash);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  }
}

/** The address of a page, for href: address("/memory/" + id). Empty arguments are left out; a list is repeated. */
export function address(path, args = {}) {
  const pairs = Object.entries(args).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const text = new URLSearchParams(pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")).toString();
  return `#${path}${text && `?${text}`}`;
}

/** The route: {path: "/memory/mem_1", parts: ["memory", "mem_1"], args: URLSearchParams}. */
export function currentRoute() {
  const [path, text = ""] = (location.hash.slice(1) || "/").split(/\?(.*)/s);
  return { path, parts: path.split("/").filter(Boolean).map(decoded), args: new URLSearchParams(text) };
}

export function useRoute() {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const changed = () => setRoute(currentRoute());
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Loading ----------------------------------------------------------------------------------------------------------------

/** Load data: const load = useLoad(() => read("stats"), [deps]) → {data, problem, busy, again}. Old data stays while new data is loaded. */
export function useLoad(fn, deps = []) {
  const [state, setState] = useState({ data: undefined, problem: null, busy: true });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true;
    setState((before) => ({ ...before, busy: true }));
    Promise.resolve().then(fn).then(
      (data) => current && setState({ data, problem: null, busy: false }),
      (problem) => current && setState((before) => ({ ...before, problem, busy: false })),
    );
    return () => { current = false; };
  }, [...deps, turn]);
  return { ...state, again: useCallback(() => setTurn((count) => count + 1), []) };
}

/** Show what useLoad returned: <Loaded of=${load}>${(data) => html`…`}</Loaded>. After a failure the old data stays below the problem. */
export function Loaded({ of, children }) {
  const view = [children].flat()[0];
  return html`
    ${of.problem && html`<${ProblemBox} problem=${of.problem} again=${of.again} busy=${of.busy} />`}
    ${of.data !== undefined ? view(of.data) : of.busy && html`<div class="loading" role="status">Loading …</div>`}`;
}

/** Say what went wrong: <${ProblemBox} problem=${problem} again=${retry} />. */
export function ProblemBox({ problem, again, busy }) {
  return html`<div class="problem" role="alert">
    <strong>${sentence(problem.what || problem.message || String(problem))}</strong>
    ${problem.expected && html`<p>Expected: ${problem.expected}</p>`}
    ${problem.remedy && html`<p>${sentence(problem.remedy)}</p>`}
    ${again && html`<button class="button small" type="button" disabled=${busy} onClick=${again}>Try again</button>`}
  </div>`;
}

const sentence = (text) => (/^[a-z]+[ ,]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text); // an id stays as it is

/** Say something in a message that disappears: say("Archived."). With {undo: fn} it has a button. */
export const say = (text, options = {}) => window.dispatchEvent(new CustomEvent("say", { detail: { text, ...options } }));

// Components -------------------------------------------------------------------------------------------------------------

/** A button: <${Button} onClick=${async () => …} writes>Archive</${Button}>. It is busy until the promise ends; a problem becomes a
 *  message, or goes to `onProblem`. `writes`: not shown in a read-only session. kind: "primary", "danger", "quiet"; `keys`: its key. */
export function Button({ onClick, writes, kind = "", keys, children, disabled, onProblem, ...rest }) {
  const [busy, setBusy] = useState(false);
  const alive = useAlive();
  const session = useSession();
  if (writes && session.read_only) return null;
  const click = async (event) => {
    setBusy(true);
    try {
      await onClick?.(event);
    } catch (problem) {
      if (onProblem) onProblem(problem);
      else say([problem.what || problem.message, problem.remedy].filter(Boolean).join(". "), { bad: true });
    }
    if (alive.current) setBusy(false);
  };
  return html`<button type="button" ...${rest} class=${`button ${kind} ${rest.class || ""}`} disabled=${busy || disabled} aria-busy=${busy} onClick=${click}>
    ${children}${keys && html`<kbd aria-hidden="true">${keys}</kbd>`}</button>`;
}

function useAlive() {
  const alive = useRef(true);
  useEffect(() => () => { alive.current = false; }, []);
  return alive;
}

/** A question in a dialog: open && html`<${Confirm} title="Erase it?" action="Erase" danger onYes=${async () => …} onNo=${close}>…</${Confirm}>`.
 *  A problem of onYes is shown in the dialog, which stays open. */
export function Confirm({ title, action = "Yes", danger, disabled, onYes, onNo, children }) {
  const dialog = useRef();
  const [problem, setProblem] = useState(null);
  useEffect(() => dialog.current.showModal(), []);
  return html`<dialog ref=${dialog} class="dialog" aria-labelledby="confirm-title" onCancel=${onNo} onClose=${onNo}>
    <h2 id="confirm-title">${title}</h2>
    ${children}
    ${problem && html`<${ProblemBox} problem=${problem} />`}
    <div class="actions">
      <${Button} onClick=${onNo}>Cancel</${Button}>
      <${Button} kind=${danger ? "danger" : "primary"} disabled=${disabled} onClick=${onYes} onProblem=${setProblem}>${action}</${Button}>
    </div>
  </dialog>`;
}

/** A table: <${Table} label="Traces" rows=${rows} columns=${[{title: "Goal", cell: (row) => …, class: "number"}]} empty="…" />. */
export function Table({ label, rows, columns, empty = "Nothing here yet." }) {
  if (!rows.length) return html`<${Empty}>${empty}</${Empty}>`;
  return html`<div class="table-frame" role="region" aria-label=${label} tabindex="0"><table>
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.class}>${column.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row, index) => html`<tr key=${row.id ?? index} data-item>
      ${columns.map((column) => html`<td class=${column.class} data-title=${column.title}>${column.cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/** A list of any length, of which only the visible rows exist: <${LongList} label="Memories" height=${76} deps=${[filter]}
 *  load=${async (after) => ({items, next})} row=${(item) => html`…`} empty="…" />. `load` gets the `next` of the page before. */
export function LongList({ label, load, row, height = 76, deps = [], empty = "Nothing here yet." }) {
  const frame = useRef();
  const asked = useRef(null);
  const [list, setList] = useState({ items: [], next: undefined, done: false, problem: null });
  const [range, setRange] = useState([0, 20]);
  const more = useCallback(async (from) => {
    const mine = (asked.current = {});
    try {
      const { items, next } = await load(from.next);
      if (mine === asked.current) setList({ items: [...from.items, ...items], next, done: !next || !items.length, problem: null });
    } catch (problem) {
      if (mine === asked.current) setList({ ...from, problem });
    }
  }, deps);
  useEffect(() => {
    const start = { items: [], next: undefined, done: false, problem: null };
    setList(start);
    more(start);
    return () => { asked.current = null; };
  }, deps);
  useEffect(() => {
    const measure = () => {
      if (!frame.current) return;
      const top = -frame.current.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(top / height) - 10);
      setRange([first, first + Math.ceil(window.innerHeight / height) + 20]);
    };
    measure();
    window.addEventListener("scroll", measure, { passive: true });
    window.addEventListener("resize", measure);
    return () => {
      window.removeEventListener("scroll", measure);
      window.removeEventListener("resize", measure);
    };
  }, [height]);
  const wanted = range[1] > list.items.length && list.items.length > 0 && !list.done && !list.problem;
  useEffect(() => { if (wanted) more(list); }, [wanted, list.items.length]);
  if (list.done && !list.items.length) return html`<${Empty}>${empty}</${Empty}>`;
  const total = list.items.length;
  return html`<div class="long-list" ref=${frame} style=${{ height: `${total * height}px` }} role="list" aria-label=${label}>
      ${list.items.slice(range[0], range[1]).map((item, index) => html`<div class="long-row" role="listitem" key=${range[0] + index}
        aria-posinset=${range[0] + index + 1} aria-setsize=${list.done ? total : -1}
        style=${{ height: `${height}px`, top: `${(range[0] + index) * height}px` }}>${row(item)}</div>`)}
    </div>
    ${list.problem ? html`<${ProblemBox} problem=${list.problem} again=${() => more(list)} />`
      : !list.done && html`<div class="loading" role="status">Loading …</div>`}`;
}

/** A small label: <${Tag} kind="good">active</${Tag}>; kind: "", "good", "warn", "bad", "info". */
export const Tag = ({ kind = "", children }) => html`<span class=${`tag ${kind}`}><bdi>${[children].flat().map((one) => (typeof one === "string" ? visible(one) : one))}</bdi></span>`;

/** The status of a memory in its colour: <${Status} of="active" />. */
export const Status = ({ of }) => html`<${Tag} kind=${{ active: "good", quarantined: "warn", disputed: "warn", superseded: "info" }[of] || ""}>${of}</${Tag}>`;

/** A bar from 0 to 1: <${Bar} value=${0.7} label="Trust" text="70 %" kind="bad" />; negative values are drawn as a loss. */
export function Bar({ value, label, text, kind = "" }) {
  const size = Math.min(1, Math.abs(value || 0));
  const shown = text ?? percent(value);
  return html`<div class="bar">
    <span class="bar-label">${label}</span>
    <span class=${`bar-track ${value < 0 ? "bad" : kind}`} aria-hidden="true"><span style=${{ width: `${size * 100}%` }}></span></span>
    <span class="bar-text">${shown}</span>
  </div>`;
}

export const percent = (value) => `${Math.round((value || 0) * 100)}\u00a0%`;
export const count = (number) => (number ?? 0).toLocaleString("en");
/** "1 memory", "3 memories": plural(3, "memory", "memories"). */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A time, as an age with the exact time in its title: <${When} at=${memory.created_at} />. `exact`: the time itself. */
export function When({ at, exact }) {
  const time = new Date(at);
  if (!at || Number.isNaN(time.getTime())) return html`<span>${at || "unknown"}</span>`;
  const full = time.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  return html`<time datetime=${time.toISOString()} title=${`${full} · ${at}`}>${exact ? full : age(time)}</time>`;
}

/** When a memory happened, or else when it was stored, and which of both it is: <${Dated} memory=${memory} />. */
export const Dated = ({ memory, exact }) => html`<span>${memory.event_time ? "happened" : "stored"} <${When} at=${dateOf(memory)} exact=${exact} /></span>`;
export const dateOf = (memory) => memory.event_time || memory.created_at;

/** The day of a time, as the command line shows it: "26 Sep 2026". */
export const day = (at) => new Date(at).toLocaleDateString("en-GB", { dateStyle: "medium", timeZone: "UTC" });

// The same ages as on the command line.
const AGES = [[365 * 86_400, "year"], [30 * 86_400, "month"], [7 * 86_400, "week"], [86_400, "day"], [3_600, "hour"], [60, "minute"]];
const relative = new Intl.RelativeTimeFormat("en");

function age(time) {
  const seconds = (time - Date.now()) / 1000;
  const [size, unit] = AGES.find(([one]) => Math.abs(seconds) >= one) || [];
  return unit ? relative.format(Math.trunc(seconds / size), unit) : "just now";
}

/** A link to a memory: <${MemoryLink} id=${id} title=${content} />; the title is cut to one line. */
export const MemoryLink = ({ id, title, ...rest }) => html`<a ...${rest} class=${`memory-link ${rest.class || ""}`} href=${address(`/memory/${encodeURIComponent(id)}`)}>
  <${OneLine}>${title || id}</${OneLine}></a>`;

/** Text in one line, for lists and links. */
export const OneLine = ({ children }) => html`<span class="one-line" dir="auto">${visible([children].flat().join("").slice(0, 400).replace(/\s+/g, " "))}</span>`;

/** A link to another site, only if it is http(s); otherwise plain text. */
export const OutLink = ({ url }) => (/^https?:\/\//i.test(url) ? html`<a href=${url} rel="noreferrer noopener" target="_blank">${url}</a>` : html`<span>${url}</span>`);

const SHOWN = 3000;

/** Text of a memory, safe for any content: <${Text} marks=${(word) => bool}>${memory.content}</${Text}>. Control and direction
 *  characters are visible, and a long text is cut with a button. `marks` says which words to mark; `limit` where to cut. */
export function Text({ children, marks, limit = SHOWN }) {
  const text = [children].flat().join("");
  const [length, setLength] = useState(limit);
  useEffect(() => setLength(limit), [text, limit]);
  const part = useMemo(() => pieces(wholeCharacters(text, length), marks), [text, length, marks]);
  return html`<div class="text" dir="auto">${part}${text.length > length && html`<span class="cut">…</span>`}</div>
    ${text.length > length && html`<button type="button" class="button small show-all" onClick=${() => setLength(Math.max(length * 10, 50_000))}>
      Show ${text.length <= Math.max(length * 10, 50_000) ? "all" : "more"} (${count(text.length)} characters)</button>`}`;
}

const wholeCharacters = (text, length) => text.slice(0, /[\ud800-\udbff]/.test(text[length - 1] || "") ? length - 1 : length);

function pieces(text, marks) {
  if (!marks) return visible(text);
  return text.split(/([\p{L}\p{N}\p{M}_]+)/u).map((piece, index) => (index % 2 && marks(piece) ? html`<mark>${visible(piece)}</mark>` : visible(piece)));
}

// Characters that draw nothing or turn the direction of a text, except those that emoji and scripts need.
const HIDDEN = /([\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}])/u;

/** Text with its hidden characters as visible marks. A long word, such as an address, may break behind its signs. */
export function visible(text) {
  if (!HIDDEN.test(text)) return broken(text);
  return text.split(new RegExp(HIDDEN, "gu")).map((piece, index) => (index % 2 ? html`<span class="hidden-character" title="A hidden character of the text">${code(piece)}</span>` : broken(piece)));
}

const broken = (text) => (/\S{25}/.test(text) ? text.split(/(\S{25,})/).map((part, at) => (at % 2 ? part.split(/(?<=[/?&=_.,;:@-])(?=\w)/).map((piece, index) => (index ? [html`<wbr />`, piece] : piece)) : part)) : text);

/** The same as a plain text, for labels and drawings. */
export const visibleText = (text) => text.replace(new RegExp(HIDDEN, "gu"), code);

const code = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** What to say where there is nothing: <${Empty}>Nothing waits for a review.</${Empty}>. */
export const Empty = ({ children }) => html`<div class="empty">${children}</div>`;

/** A heading of a page, once a page: <${Title} note="12 memories">Review</${Title}>; further children stand at its end. */
export function Title({ children, note, actions }) {
  return html`<header class="title"><div><h1 tabindex="-1">${children}</h1>${note && html`<p>${note}</p>`}</div>
    ${actions && html`<div class="actions">${actions}</div>`}</header>`;
}

/** A part of a page: <${Card} title="Links" note="3">…</${Card}>. */
export const Card = ({ title, note, children, ...rest }) => html`<section ...${rest} class=${`card ${rest.class || ""}`}>
  ${title && html`<h2>${title}${note !== undefined && html`<small>${note}</small>`}</h2>`}${children}</section>`;

/** A field with its label: <${Field} label="Project"><input … /></${Field}>. */
export const Field = ({ label, children }) => html`<label class="field"><span>${label}</span>${children}</label>`;

/** A choice of a few: <${Choice} label="Mode" value=${mode} options=${[["precise", "Precise"]]} onChange=${setMode} />. */
export function Choice({ label, value, options, onChange }) {
  return html`<fieldset class="choice"><legend>${label}</legend>${options.map(([key, text]) => html`<label class=${key === value ? "chosen" : ""}>
    <input type="radio" name=${label} checked=${key === value} onChange=${() => onChange(key)} /><span>${text}</span></label>`)}</fieldset>`;
}

/** Call a function for a key, while no field has the focus: useKey("a", activate). */
export function useKey(key, fn, deps = []) {
  useEffect(() => {
    const pressed = (event) => {
      if (event.key === key && !typing(event)) {
        event.preventDefault();
        fn(event);
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, deps);
}

/** Whether a key belongs to a field, an open dialog or a command of the browser, or was the second one after g. */
export const typing = (event) => event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey
  || !!event.target.closest?.("input:not([type=radio]):not([type=checkbox]), textarea, select, dialog[open], [contenteditable]");

// What several pages share: a stylesheet, colours for drawings, feedback, deleting, plots.
import { write } from "../api.js";
import { Button, Confirm, Text, html, say, useEffect, useState, visibleText } from "../ui.js";

/** Load a stylesheet once, and wait for it. A page without it is still readable, so a failure is not an error. */
export const stylesheet = (path) => new Promise((done) => {
  const href = new URL(path, import.meta.url).href;
  if ([...document.styleSheets].some((sheet) => sheet.href === href)) return done();
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: done, onerror: done });
  document.head.append(link);
});

await stylesheet("./more.css");

const NAMES = ["page", "card", "sunk", "line", "strong-line", "ink", "soft", "accent", "good", "warn", "bad", "info"];

/** The colours of the theme as {ink, soft, accent, …}, for drawings on a canvas. They change with the theme. */
export function useColours() {
  const [colours, setColours] = useState(readColours);
  useEffect(() => {
    const changed = () => setColours(readColours());
    const system = matchMedia("(prefers-color-scheme: dark)");
    const observer = new MutationObserver(changed);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    system.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      system.removeEventListener("change", changed);
    };
  }, []);
  return colours;
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Names and values: <${Pairs} of=${[["Fix", text]]} />. Pairs without a value are left out. */
export const Pairs = ({ of }) => html`<dl class="pairs">${of.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
  .map(([name, value]) => html`<dt>${name}</dt><dd>${typeof value === "string" ? html`<${Text} limit=${1000}>${value}</${Text}>` : value}</dd>`)}</dl>`;

/** Buttons that rate a memory: <${Rate} id=${memory.id} onDone=${load.again} />. `rate` replaces what they do. */
export function Rate({ id, what, onDone, rate = (signal) => write("lane feedback", { id, signal }) }) {
  const click = (signal) => async () => {
    await rate(signal);
    say(signal === "helpful" ? "Rated helpful: it ranks higher from now on." : "Rated harmful: it ranks lower from now on.");
    onDone?.();
  };
  return html`<${Button} writes class="small" aria-label=${`Helpful: ${what}`} onClick=${click("helpful")}>Helpful</${Button}>
    <${Button} writes class="small" aria-label=${`Harmful: ${what}`} onClick=${click("harmful")}>Harmful</${Button}>`;
}

/** A button that erases a memory after a question: <${Erase} id=${id} what=${content} onDone=${again} />. */
export function Erase({ id, what, onDone, label = "Delete …" }) {
  const [open, setOpen] = useState(false);
  const erase = async () => {
    await write("forget", { id });
    setOpen(false);
    say("Deleted for good.");
    onDone?.();
  };
  return html`<${Button} writes kind="danger" class="small" aria-label=${`${label} ${cut(what)}`} onClick=${() => setOpen(true)}>${label}</${Button}>
    ${open && html`<${Confirm} title="Delete this for good?" action="Delete for good" danger onYes=${erase} onNo=${() => setOpen(false)}>
      <div class="quote"><${Text} limit=${400}>${what}</${Text}></div>
      <p>Its text, its history and what was made from it alone are erased from every file. This cannot be undone.</p>
    </${Confirm}>`}`;
}

/** A text cut to a length, for names of buttons. */
export const cut = (text, length = 60) => visibleText(text.length > length ? `${text.slice(0, length)}…` : text);

/** A field that filters by a query after a short pause: <${Filter} label="Find lessons" value=${query} onChange=${setQuery} />. */
export function Filter({ label, value, onChange, placeholder = "" }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    const timer = text !== value && setTimeout(() => onChange(text.trim()), 350);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<form class="filter" role="search" aria-label=${label} onSubmit=${(event) => { event.preventDefault(); onChange(text.trim()); }}>
    <input type="search" aria-label=${label} placeholder=${placeholder || label} value=${text} onInput=${(event) => setText(event.target.value)} /></form>`;
}

// The frame of the console: pages and navigation, keys, theme, session and messages.
import { events, login, logout, readAs, reader, session as readSession } from "./api.js";
import { Button, Component, Field, ProblemBox, Session, Title, currentRoute, html, navigate, render, typing, useEffect, useLayoutEffect, useRef, useRoute, useState, visible } from "./ui.js";
import { UserSwitch } from "./users.js";

// `key` is the second key after g. `needs` names the smallest extent of a token that may read the page.
const PAGES = [
  { path: "", title: "Home", key: "h", icon: "M3 9l7-6 7 6v8h-5v-5H8v5H3z", load: () => import("./pages/home.js") },
  { path: "search", title: "Search", key: "s", icon: "M9 3a6 6 0 104 10.5l4 4M9 3a6 6 0 014 10.5", load: () => import("./pages/search.js") },
  { path: "review", title: "Review", key: "r", needs: "user", icon: "M4 10l4 4 8-9", load: () => import("./pages/review.js") },
  { path: "memory", title: "Memory", hidden: true, load: () => import("./pages/memory.js") },
  { path: "lessons", title: "Lessons", key: "l", group: "Learnt", icon: "M4 4h9a3 3 0 013 3v10H7a3 3 0 01-3-3zM7 8h6M7 11h6", load: () => import("./pages/lessons.js") },
  { path: "skills", title: "Skills", key: "k", group: "Learnt", icon: "M11 2L4 12h5l-1 6 7-10h-5z", load: () => import("./pages/skills.js") },
  { path: "notes", title: "Notes", key: "n", needs: "server", group: "Learnt", icon: "M5 3h7l4 4v10H5zM12 3v4h4", load: () => import("./pages/notes.js") },
  { path: "traces", title: "Traces", key: "t", needs: "server", group: "Learnt", icon: "M4 5h5M4 10h9M4 15h12", load: () => import("./pages/traces.js") },
  { path: "captures", title: "Captures", key: "c", group: "Intake", icon: "M10 3v9m0 0l-4-4m4 4l4-4M4 16h12", load: () => import("./pages/captures.js") },
  { path: "junk", title: "Junk", key: "j", group: "Intake", icon: "M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11", load: () => import("./pages/junk.js") },
  { path: "time", title: "Time", key: "i", group: "Whole store", icon: "M10 3a7 7 0 100 14 7 7 0 000-14zM10 6v4l3 2", load: () => import("./pages/time.js") },
  { path: "changes", title: "Changes", key: "w", group: "Whole store", icon: "M4 6h9m0 0l-3-3m3 3l-3 3M16 14H7m0 0l3-3m-3 3l3 3", load: () => import("./pages/changes.js") },
  { path: "graph", title: "Graph", key: "g", needs: "user", group: "Whole store", icon: "M5 5l10 4M5 5l4 10M15 9l-6 6M5 3.5a1.5 1.5 0 100 3 1.5 1.5 0 000-3zM15 7.5a1.5 1.5 0 100 3 1.5 1.5 0 000-3zM9 13.5a1.5 1.5 0 100 3 1.5 1.5 0 000-3z", load: () => import("./pages/graph.js") },
  { path: "audit", title: "Audit", key: "a", needs: "server", group: "Whole store", icon: "M10 2l6 3v5c0 4-3 6-6 8-3-2-6-4-6-8V5zM7 10l2 2 4-4", load: () => import("./pages/audit.js") },
  { path: "numbers", title: "Numbers", key: "u", group: "Whole store", icon: "M4 16V9m4 7V4m4 12v-5m4 5V7", load: () => import("./pages/numbers.js") },
];
const EXTENTS = ["reader", "projects", "user", "server"];
const KEYS = [["/", "search"], ["j, k", "next and previous item"], ["Enter", "open the item"], ["?", "show these keys"], ["Esc", "close, or leave a field"]];
const allowed = (page, session) => !page.needs || EXTENTS.indexOf(session.extent) >= EXTENTS.indexOf(page.needs);

function App() {
  const [session, setSession] = useState(null);
  const [problem, setProblem] = useState(null);
  const start = async () => {
    try {
      const secret = once();
      setSession(secret ? await login({ once: secret }) : await readSession());
      setProblem(null);
    } catch (error) {
      setProblem(error);
      if (error.status) setSession({ needs_login: true });
    }
  };
  useEffect(() => { start(); }, []);
  if (!session) return html`<main class="login">${problem ? html`<h1>memory-mesh</h1><${ProblemBox} problem=${problem} again=${start} />` : html`<p class="starting">Opening the console …</p>`}</main>`;
  if (session.needs_login) return html`<main class="login"><${Login} problem=${problem} onSession=${setSession} /></main>`;
  return html`<${Session.Provider} value=${session}><${Frame} session=${session} setSession=${setSession} /></${Session.Provider}>`;
}

/** Take the one-time secret of `memory-mesh console` out of the address, so that it stays in no history. */
function once() {
  const secret = /^#once=(.+)$/.exec(location.hash)?.[1];
  if (secret) history.replaceState(null, "", location.pathname);
  return secret && decodeURIComponent(secret);
}

function Login({ onSession, problem: first, again }) {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState(first);
  const enter = async () => onSession(await login({ token: token.trim() }));
  const failed = (error) => setProblem(error.status === 401 ? { what: error.what, remedy: "Create another one with memory-mesh token create, or ask the person who runs the server." } : error);
  return html`<form class="card login-card" onSubmit=${(event) => { event.preventDefault(); enter().catch(failed); }}>
    <${again ? "h2" : "h1"}>${again ? "Your session has ended" : "memory-mesh"}</${again ? "h2" : "h1"}>
    <p>${again ? "Log in again to go on. What you wrote on this page is still here." : "This server needs a token. Create one with:"}</p>
    ${!again && html`<pre>memory-mesh token create console</pre>`}
    <${Field} label="Token"><input type="password" autocomplete="current-password" required placeholder="mm_…" value=${token} onInput=${(event) => setToken(event.target.value)} /></${Field}>
    ${problem && html`<${ProblemBox} problem=${problem} />`}
    <button class="button primary" type="submit">Log in</button>
  </form>`;
}

function Frame({ session, setSession }) {
  const route = useRoute();
  const [menu, setMenu] = useState(false);
  const [help, setHelp] = useState(false);
  const [ended, setEnded] = useState(false);
  const [turn, setTurn] = useState(0);
  const page = pageOf(route);
  useKeys(() => setHelp(true));
  useEffect(() => {
    const show = () => setEnded(true);
    const changed = () => setTurn((count) => count + 1);
    events.addEventListener("login", show);
    events.addEventListener("reader", changed);
    return () => {
      events.removeEventListener("login", show);
      events.removeEventListener("reader", changed);
    };
  }, []);
  useEffect(() => {
    setMenu(false);
    document.title = `${page?.title || "Not found"} · memory-mesh`;
  }, [route.path]);
  const leave = async () => {
    await logout();
    setSession({ needs_login: true });
  };
  return html`
    <a class="skip" href="#content" onClick=${(event) => { event.preventDefault(); document.querySelector("main h1")?.focus(); }}>Skip to the content</a>
    <header class="top">
      <button type="button" class="menu-button" aria-expanded=${menu} aria-controls="navigation" aria-label="Pages" onClick=${() => setMenu(!menu)}>☰</button>
      <a class="brand" href="#/"><span aria-hidden="true"></span>memory-mesh</a>
      <${QuickSearch} route=${route} />
      <${Theme} />
    </header>
    <div class="body">
      <nav id="navigation" class=${menu ? "open" : ""} aria-label="Pages">
        ${session.may_switch && html`<${UserSwitch} turn=${turn} />`}
        <${Navigation} current=${page} session=${session} />
        <${Who} session=${session} leave=${leave} help=${() => setHelp(true)} />
      </nav>
      <main id="content">
        <${Connection} />
        ${ended && html`<${Login} again=${true} onSession=${(fresh) => { setSession(fresh); setEnded(false); }} />`}
        <${Page} key=${`${page?.path} ${turn}`} page=${page} route=${route} session=${session} />
      </main>
    </div>
    <${Messages} />
    ${help && html`<${Help} close=${() => setHelp(false)} session=${session} />`}`;
}

function Navigation({ current, session }) {
  const shown = PAGES.filter((page) => !page.hidden && allowed(page, session));
  const groups = [...new Set(shown.map((page) => page.group))];
  return groups.map((group) => html`<div class="nav-group">${group && html`<h2>${group}</h2>`}
    <ul>${shown.filter((page) => page.group === group).map((page) => html`<li><a href=${`#/${page.path}`} aria-current=${page === current ? "page" : null}>
      <svg viewBox="0 0 20 20" aria-hidden="true"><path d=${page.icon} /></svg>${page.title}</a></li>`)}</ul></div>`);
}

/** Who is logged in, and as whom the pages are read. */
function Who({ session, leave, help }) {
  const [names, setNames] = useState(() => reader());
  const change = (event) => {
    event.preventDefault();
    readAs({ ...names, user: reader().user });
  };
  const field = (name) => html`<${Field} label=${name === "agent" ? "Agent" : "Project"}><input value=${names[name]} placeholder=${session[name] || "all that you may see"}
    onInput=${(event) => setNames({ ...names, [name]: event.target.value })} /></${Field}>`;
  return html`<div class="who">
    <details><summary>Read as …</summary><form onSubmit=${change}>${field("agent")}${field("project")}<button class="button small" type="submit">Apply</button></form></details>
    <p><bdi>${visible(session.name || "This computer")}</bdi>${session.user && html` · <bdi>${visible(session.user)}</bdi>`}${session.read_only && html`<br /><strong>Read only</strong>`}</p>
    <p class="faint">${session.store} · ${session.version}</p>
    <div class="actions"><button type="button" class="button small quiet" onClick=${help}>Keys <kbd>?</kbd></button>
      <${Button} class="small" kind="quiet" onClick=${leave}>Log out</${Button}></div>
  </div>`;
}

class Page extends Component {
  constructor() {
    super();
    this.state = { view: null, problem: null };
  }

  componentDidMount() {
    this.load();
  }

  componentDidCatch(problem) {
    console.error(problem);
    this.setState({ problem });
  }

  async load() {
    const { page, session } = this.props;
    if (!page || !allowed(page, session)) return;
    try {
      this.setState({ view: (await page.load()).default, problem: null });
    } catch {
      this.setState({ problem: { what: "This page could not be loaded.", remedy: "Look whether the server runs, then reload." } });
    }
  }

  render({ page, route, session }, { view, problem }) {
    if (!page) return html`<${Title}>Not found</${Title}><p>The console has no page ${route.path}. <a href="#/">Go home</a></p>`;
    if (!allowed(page, session)) return html`<${Title}>${page.title}</${Title}><${ProblemBox} problem=${{ what: "Your token does not reach this page.", remedy: "Log in with a token for the whole user or server." }} />`;
    if (problem) return html`<${Title}>${page.title}</${Title}><${ProblemBox} problem=${problem} again=${() => location.reload()} />`;
    return view ? html`<${view} route=${route} session=${session} />` : html`<div class="loading" role="status">Loading …</div>`;
  }
}

function QuickSearch({ route }) {
  const [query, setQuery] = useState("");
  useEffect(() => { if (route.parts[0] === "search") setQuery(route.args.get("query") || ""); }, [route]);
  const find = (event) => {
    event.preventDefault();
    const others = route.parts[0] === "search" ? Object.fromEntries(route.args) : {};
    if (query.trim()) navigate("/search", { ...others, query: query.trim() });
  };
  return html`<form class="quick" role="search" onSubmit=${find}>
    <input id="quick" type="search" aria-label="Search the memories" aria-keyshortcuts="/" placeholder="Search the memories" value=${query} onInput=${(event) => setQuery(event.target.value)} /><kbd aria-hidden="true">/</kbd>
  </form>`;
}

const THEMES = { auto: ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] };

function Theme() {
  const [theme, setTheme] = useState(storedTheme);
  useLayoutEffect(() => {
    applyTheme(theme);
    try { localStorage.setItem("theme", theme); } catch { /* a browser may refuse to store; the theme holds until the page is closed */ }
  }, [theme]);
  const names = Object.keys(THEMES);
  const [sign, name] = THEMES[theme];
  return html`<button type="button" class="theme button quiet" aria-label=${`Colours: ${name}`} title=${`Colours: ${name}`}
    onClick=${() => setTheme(names[(names.indexOf(theme) + 1) % names.length])}><span aria-hidden="true">${sign}</span></button>`;
}

function applyTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function storedTheme() {
  try {
    return localStorage.getItem("theme") in THEMES ? localStorage.getItem("theme") : "auto";
  } catch {
    return "auto";
  }
}

function Connection() {
  const [works, setWorks] = useState(true);
  useEffect(() => {
    const changed = (event) => setWorks(event.detail);
    events.addEventListener("connection", changed);
    return () => events.removeEventListener("connection", changed);
  }, []);
  useEffect(() => {
    if (works) return undefined;
    const timer = setInterval(() => readSession().catch(() => {}), 5000);
    return () => clearInterval(timer);
  }, [works]);
  return !works && html`<div class="banner" role="alert">The server does not answer. What is shown may be out of date, and nothing is lost; the page tries again by itself.</div>`;
}

function Messages() {
  const [list, setList] = useState([]);
  const number = useRef(0);
  useEffect(() => {
    const said = ({ detail }) => {
      const message = { ...detail, id: ++number.current };
      setList((before) => [...before.slice(-2), message]);
      setTimeout(() => setList((before) => before.filter((one) => one.id !== message.id)), detail.undo || detail.bad ? 12_000 : 5_000);
    };
    window.addEventListener("say", said);
    return () => window.removeEventListener("say", said);
  }, []);
  const close = (id) => setList((before) => before.filter((one) => one.id !== id));
  return html`<div class="messages" role="status" aria-live="polite">${list.map((one) => html`<div key=${one.id} class=${`message ${one.bad ? "bad" : ""}`}>
    <span>${one.text}</span>${one.undo && html`<${Button} class="small" onClick=${async () => { await one.undo(); close(one.id); }}>Undo</${Button}>`}
    <button type="button" class="close" aria-label="Close this message" onClick=${() => close(one.id)}>×</button></div>`)}</div>`;
}

function Help({ close, session }) {
  const dialog = useRef();
  useEffect(() => dialog.current.showModal(), []);
  const keys = [...KEYS, ...PAGES.filter((page) => page.key && allowed(page, session)).map((page) => [`g ${page.key}`, page.title])];
  return html`<dialog ref=${dialog} class="dialog" aria-labelledby="help-title" onClose=${close}>
    <h2 id="help-title">Keys</h2>
    <dl class="keys">${keys.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <div class="actions"><button type="button" class="button" onClick=${() => dialog.current.close()}>Close</button></div>
  </dialog>`;
}

function useKeys(showHelp) {
  useEffect(() => {
    let goes = 0; // until when the letter of a page is expected
    const pressed = (event) => {
      if (event.key === "Escape" && event.target.matches?.("input, textarea, select")) event.target.blur();
      if (typing(event)) return;
      const page = Date.now() < goes && PAGES.find((one) => one.key === event.key);
      goes = !page && event.key === "g" ? Date.now() + 1500 : 0;
      const act = page ? () => navigate(`/${page.path}`)
        : { "/": () => document.getElementById("quick").select(), "?": showHelp, j: () => step(1), k: () => step(-1) }[event.key];
      if (act) {
        event.preventDefault();
        act();
      }
    };
    // In the capture phase: the second key after g must not reach the keys of a page.
    window.addEventListener("keydown", pressed, true);
    return () => window.removeEventListener("keydown", pressed, true);
  }, []);
}

/** Move the focus to the next or previous item of the page. */
function step(direction) {
  const items = [...document.querySelectorAll("main [data-item], main .long-row")];
  const now = items.findIndex((item) => item.contains(document.activeElement));
  const item = items[now < 0 ? (direction > 0 ? 0 : items.length - 1) : now + direction];
  const target = item?.querySelector("a, button, input") || item;
  if (!target) return;
  if (target === item) item.tabIndex = -1;
  target.focus();
  target.scrollIntoView({ block: "nearest" });
}

const pageOf = (route) => PAGES.find((one) => one.path === (route.parts[0] || ""));

applyTheme(storedTheme());
pageOf(currentRoute())?.load().catch(() => {}); // meanwhile the session is read; a failure is shown by the page itself
const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);

// Requests to the server. Every function returns the parsed JSON or throws a Problem.

/** What went wrong, in the words of the server. `status` is 0 if the server does not answer. */
export class Problem extends Error {
  constructor({ status = 0, title = "", what = "", expected = "", remedy = "" }) {
    super(what || title);
    Object.assign(this, { status, title, what: what || title, expected, remedy });
  }
}

/** Events for the frame of the page: `connection` (detail: whether the server answers), `login` (the session ended) and `reader` (another one was chosen). */
export const events = new EventTarget();

const LONGEST_URL = 4000;
const scope = { user: remembered(), agent: "", project: "" };
let csrf = "";
let connected = true;

/** Call a verb that only reads: GET /v1/<verb>. A list is a repeated argument; undefined, null and "" are left out. */
export const read = (verb, args = {}) => {
  const url = `/v1/${path(verb)}${query(args)}`;
  return url.length > LONGEST_URL ? write(verb, args) : send(url);
};

/** Call a verb with a JSON body: POST /v1/<verb>. */
export const write = (verb, args = {}) => send(`/v1/${path(verb)}`, { method: "POST", body: args });

/** Read what a page of the console needs: GET /console/api/<name>. */
export const page = (name, args = {}) => send(`/console/api/${path(name)}${query(args)}`);

/** Return the session; on a server without tokens this also starts one. */
export const session = async () => remember(await send("/console/session"));

/** Start a session with {token} or with {once}, the secret of `memory-mesh console`. */
export const login = async (secret) => remember(await send("/console/login", { method: "POST", body: secret, again: false }));

export const logout = async () => send("/console/logout", { method: "POST", body: {}, again: false });

/** Read as this user or agent, or within this project: the headers of every later request. The user stays until the tab is closed. */
export function readAs(names) {
  Object.assign(scope, names);
  try { sessionStorage.setItem("user", scope.user); } catch { /* a browser may refuse to store; the choice holds until the page is closed */ }
  events.dispatchEvent(new CustomEvent("reader"));
}

/** As whom the pages read: {user, agent, project}; "" is whatever the session may see. */
export const reader = () => ({ ...scope });

function remembered() {
  try {
    return sessionStorage.getItem("user") || "";
  } catch {
    return "";
  }
}

function remember(session) {
  csrf = session.csrf || "";
  if (!session.may_switch) scope.user = "";
  return session;
}

const path = (verb) => verb.split(/[ /]/).map(encodeURIComponent).join("/");

function query(args) {
  const pairs = Object.entries(args).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  const text = new URLSearchParams(pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")).toString();
  return text && `?${text}`;
}

function headers(body) {
  const given = { Accept: "application/json" };
  if (body) Object.assign(given, { "Content-Type": "application/json", "X-CSRF-Token": csrf });
  // A header has bytes, and a name is sent as UTF-8.
  for (const [name, value] of Object.entries(scope)) if (value) given[`Memory-${name}`] = String.fromCharCode(...new TextEncoder().encode(value));
  return given;
}

async function send(url, { method = "GET", body, again = true } = {}) {
  const response = await answer(url, { method, headers: headers(body), body: body && JSON.stringify(body), credentials: "same-origin" });
  if (response.ok) return response.status === 204 ? {} : response.json();
  const problem = await problemOf(response);
  // A server that was started again knows no session: nothing was done, so the request may be sent again in a new one.
  if (again && url.startsWith("/v1/") && (problem.status === 401 || /csrf/i.test(problem.what))) {
    if (!(await session()).needs_login) return send(url, { method, body, again: false });
  }
  if (problem.status === 401) events.dispatchEvent(new CustomEvent("login"));
  throw problem;
}

async function answer(url, options) {
  let response;
  try {
    response = await fetch(url, options);
  } catch {
    connection(false);
    const remedy = options.method === "GET" ? "Look whether it runs, then try again." : "It is not certain that the change was made: look before you repeat it.";
    throw new Problem({ title: "The server does not answer", remedy });
  }
  connection(true);
  return response;
}

function connection(works) {
  if (works !== connected) events.dispatchEvent(new CustomEvent("connection", { detail: works }));
  connected = works;
}

async function problemOf(response) {
  let given = {};
  try {
    given = await response.json();
  } catch {
    given.title = `The server answered ${response.status} ${response.statusText}`;
  }
  return new Problem({ ...given, status: response.status });
}

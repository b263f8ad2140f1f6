// Whose memories the pages show: the switch of user, and what to say where there are none.
import { page, readAs, reader } from "./api.js";
import { Empty, Loaded, html, plural, useLoad, useSession, visible, visibleText } from "./ui.js";

const memories = (number) => plural(number, "memory", "memories");
const nameOf = (user) => html`<bdi>${visible(user)}</bdi>`;
const short = (name) => visibleText(name.length > 40 ? `${name.slice(0, 40)}…` : name);

/** The users of the store with the numbers of their memories; choosing one shows its memories on every page. */
export function UserSwitch({ turn }) {
  const load = useLoad(() => page("users"), [turn]);
  const chosen = reader().user;
  if (!load.data || (!chosen && !load.data.results.some((one) => one.user_id))) return null;
  const listed = load.data.results.map((one) => ({ ...one, name: one.user_id || "" }));
  const missing = [chosen, ""].filter((name, at, all) => all.indexOf(name) === at && !listed.some((one) => one.name === name));
  const more = load.data.users - load.data.results.length;
  return html`<label class="field user-switch"><span>User</span><select aria-label="User" value=${chosen} onChange=${(event) => readAs({ user: event.target.value })}>
    ${[...missing.map((name) => ({ name, memories: 0, readable: true })), ...listed].map((one) => html`<option key=${one.name} value=${one.name} selected=${one.name === chosen} disabled=${!one.readable}>${one.name ? short(one.name) : "no user"} (${one.memories.toLocaleString("en")})</option>`)}
    ${more > 0 && html`<option disabled>and ${plural(more, "more user")}</option>`}</select></label>`;
}

/** Whose memories a page shows, if a session has or chose a user. */
export function Whose() {
  const session = useSession();
  const user = reader().user || session.user;
  return user && html`Memories of ${nameOf(user)}`;
}

/** Say why a page has nothing to show; its children say it for a reader who can see memories. */
export function NoMemories({ children }) {
  const load = useLoad(() => page("users"));
  return html`<${Loaded} of=${load}>${(data) => html`<${Empty}>${data.visible ? children : html`<${Why} data=${data} />`}</${Empty}>`}</${Loaded}>`;
}

function Why({ data }) {
  const { user, every, of_user: own, memories: all, results } = data;
  if (own) return html`<p><strong>You can see no memory here.</strong> There ${own === 1 ? "is" : "are"} ${memories(own)} of other agents, sessions or projects${user && html` of ${nameOf(user)}`}.</p><p>Choose an agent or a project under “Read as …”.</p>`;
  const others = results.filter((one) => one.memories);
  if (every && all) {
    return html`<p><strong>${user ? html`Nothing is stored for ${nameOf(user)}` : "Nothing is stored without a user"}</strong>; ${memories(all)} of ${plural(others.length < 200 ? others.length : data.users, user ? "other user" : "user")}.</p>
      <p class="actions">${others.slice(0, 5).map((one) => html`<button type="button" class="button small" disabled=${!one.readable} onClick=${() => readAs({ user: one.user_id || "" })}><span>Show ${one.user_id ? nameOf(short(one.user_id)) : "those without a user"} (${one.memories.toLocaleString("en")})</span></button>`)}</p>`;
  }
  const flag = /^[\w.@-]+$/.test(user || "") ? ` --user ${user}` : "";
  return html`<p><strong>${every ? "This store has no memories yet." : html`Nothing is stored ${user ? html`for ${nameOf(user)}` : "without a user"} yet.`}</strong> An agent stores them as it works, or you do:</p>
    <pre>memory-mesh store${flag} "The backup runs at four."</pre>`;
}

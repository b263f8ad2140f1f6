"""`memory-mesh console`: a server for the person at this machine, and the link that logs the browser in, once."""

import webbrowser
from dataclasses import replace
from threading import Thread

from memory_mesh.heaps import share_heaps
from memory_mesh.interfaces.render import NAME, Answer, show
from memory_mesh.interfaces.rest.app import build
from memory_mesh.interfaces.rest.serve import listen, run
from memory_mesh.interfaces.rest.server import Server
from memory_mesh.interfaces.tokens import TokenFile
from memory_mesh.interfaces.values import Call
from memory_mesh.settings import load

_HOST = "127.0.0.1"


def console(call: Call) -> Answer:
    """Listen on this machine, show the link, open the browser, and answer requests until Ctrl-C."""
    from memory_mesh.wiring.mesh import MemoryMesh

    share_heaps()
    settings = load(call.target.arguments)
    # Only looking at a memory runs no maintenance.
    options = replace(settings.options, server_host=_HOST, server_heartbeat_seconds=0.0)
    mesh = MemoryMesh(**call.target.arguments)  # type: ignore[arg-type]
    mesh.stats()  # a store that cannot be read is an error now, not one of every page
    server = Server(mesh, options, TokenFile(settings.home), private=True)
    with listen(_HOST, int(str(call.arguments["port"]))) as listening:
        # A fragment is not sent in a request, so that no log contains the secret.
        url = f"http://{_HOST}:{listening.getsockname()[1]}/console/#once={server.sessions.issue_once()}"
        lines = (f"{NAME} Console: {url}", "The link logs one browser in, within five minutes. Ctrl-C ends the server.")
        code = show(Answer(text="\n".join(lines), data={"url": url}), call.form)
        if code:  # nobody can read the link, such as when the reader of a pipe is gone
            return Answer(text="", data={}, code=code)
        if call.arguments["browser"]:
            Thread(target=webbrowser.open, args=(url,), daemon=True).start()  # a browser in the terminal would not return
        run(build(server), listening, options, server.stopping.set)
    return Answer(text="", data={})

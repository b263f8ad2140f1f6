"""The files of the console: what is served, with which headers, and that the vendored libraries
are what was fetched."""

import re
import shutil
from pathlib import Path

import vendor_console
from interfaces.rest_server import running
from memory_mesh.interfaces.console import routes
from memory_mesh.interfaces.verbs import COMMANDS


def test_the_vendored_libraries_are_unchanged_and_a_change_is_found(tmp_path: Path) -> None:
    assert vendor_console.check(vendor_console.VENDOR) == []
    copy = shutil.copytree(vendor_console.VENDOR, tmp_path / "vendor")
    with (copy / "htm.js").open("a") as file:
        file.write(" ")
    (copy / "uplot.css").unlink()
    (copy / "stray.js").write_text("")
    assert vendor_console.check(copy) == [
        "htm.js was changed",
        "stray.js belongs to no package",
        "uplot.css is missing",
    ]


def test_files_are_served_with_their_type_and_not_again_if_unchanged(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        for name, kind in (
            ("vendor/htm.js", "text/javascript"),
            ("vendor/uplot.css", "text/css"),
            ("vendor/htm.LICENSE.txt", "text/plain"),
        ):
            answer = client.get(f"/console/{name}")
            assert answer.content == (vendor_console.VENDOR.parent / name).read_bytes()
            assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
            assert answer.headers.get_list("cache-control") == ["no-cache"]
            again = client.get(
                f"/console/{name}", headers={"If-None-Match": answer.headers["etag"]}
            )
            assert (again.status_code, again.content) == (304, b"")
        moved = client.get("/", follow_redirects=False)
        assert (moved.status_code, moved.headers["location"]) == (303, "/console/")


def test_only_files_of_the_console_are_served(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        for name in (
            "../routes.py", "..%2froutes.py", "%2e%2e/routes.py", "vendor/../../routes.py",
            "vendor//htm.js", "vendor\\htm.js", "/etc/passwd", "vendor", "vendor/",
            "vendor/htm.js%00.css", "VENDOR/htm.js", "x" * 9000,
        ):  # fmt: skip
            answer = client.get(f"/console/{name}")
            assert answer.status_code == 404, name
            assert answer.headers["content-type"] == "application/problem+json"


def test_every_response_forbids_foreign_scripts_and_frames(tmp_path: Path) -> None:
    with running(tmp_path) as (client, _):
        for path in (
            "/console/vendor/htm.js",
            "/console/session",
            "/console/nothing",
            "/v1/stats",
            "/v1/nothing",
            "/health",
        ):
            headers = client.get(path).headers
            policy = dict(
                part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
            )
            assert (policy["default-src"], policy["script-src"], policy["frame-ancestors"]) == (
                "'none'",
                "'self'",
                "'none'",
            )
            assert "unsafe" not in headers["content-security-policy"]
            assert (headers["x-frame-options"], headers["referrer-policy"]) == (
                "DENY",
                "no-referrer",
            )
            assert (headers["cross-origin-opener-policy"], headers["x-content-type-options"]) == (
                "same-origin",
                "nosniff",
            )


def test_every_command_that_a_page_names_exists() -> None:
    pages = (Path(routes.__file__).parent / "web").glob("**/*.js")
    text = "\n".join(
        file.read_text(encoding="utf-8") for file in pages if file.parent.name != "vendor"
    )
    named = re.findall(r"memory-mesh ([a-z]+(?:-[a-z]+)*)(?: ([a-z]+))?", text)
    assert ("audit", "verify") in named
    unknown = [
        words for words in named if words[0] not in COMMANDS and " ".join(words) not in COMMANDS
    ]
    assert not unknown

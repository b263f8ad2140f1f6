"""URLs of stores, read and checked. Which store each scheme names is said in `build`."""

import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from memory_mesh.core.errors import InvalidInput

URLS = "sqlite:///relative.db, sqlite:////absolute.db, a path ending in .db, or memory://"


def is_path(url: str) -> bool:
    """Whether it is a plain path of a database file."""
    return url.endswith(".db") and "://" not in url and not url.startswith("sqlite:")


def path_of(url: str) -> Path:
    """The file that a URL names."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    # What stands behind a bare `#` would be another name than the one meant, and so would a name cut at a NUL.
    if parts.netloc or parts.fragment or "\0" in path or "://" not in url or path in ("", "/"):
        raise InvalidInput(f"store {url_shown(url)} names no file", expected=URLS)
    return expanded(path[1:])


def expanded(path: str) -> Path:
    """A path with `~` written out."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InvalidInput(f"the folder of {path!r:.120} is unknown: {error}", expected=URLS) from None


def url_shown(url: str) -> str:
    """A URL as an error may show it: without who it logs in as."""
    return repr(re.sub(r"//[^/]*@", "//***@", url))[:120]


def read_only(url: str) -> bool:
    """Whether a URL asks for a store that is only read."""
    options = parse_qs(urlsplit(url).query, keep_blank_values=True)
    if any(name != "mode" or value not in (["ro"], ["rw"]) for name, value in options.items()):
        raise InvalidInput(f"store {url_shown(url)} has options that are unknown", expected="none, or ?mode=ro")
    return options.get("mode") == ["ro"]

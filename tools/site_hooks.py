"""What `mkdocs build` needs beyond docs/: the files of the repository that pages link to, and a
check for outside resources.

The pages are written for the repository: `../examples/agent_loop.py` and, in CHANGELOG.md,
`docs/search.md` are links that work there. On the site the folder docs/ is the root, so these links
are shortened, and the files are added.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES_OF_THE_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_UPWARDS = re.compile(r"(?<=\]\()\.\./[^)#\s]+")
_OF_THE_ROOT = re.compile(r"(?<=\]\()docs/")
_PLAIN_FILE = re.compile(
    r"\[([^\]]+)\]\((?!docs/|https?:|#)([\w./-]+\.(?:py|toml|txt)|[\w./-]+/|[A-Z]+|"
    r"conformance/[\w.]+)\)"
)
_OUTSIDE = re.compile(
    r"<(?:script|img|iframe)[^>]+src=\"?(?:https?:)?//|<link[^>]+rel=\"?(?:stylesheet|"
    r"preconnect)[^>]+(?:https?:)?//"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, and every file outside docs/ that a page links to."""
    linked = (_outside(page) for page in sorted((ROOT / "docs").rglob("*.md")))
    for path in dict.fromkeys(
        [*PAGES_OF_THE_ROOT, *(path for paths in linked for path in paths.values())]
    ):
        if not (ROOT / path).is_file():
            raise PluginError(f"a page links to ../{path}, which does not exist")
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page with links as they are on the site."""
    if page.file.src_uri in PAGES_OF_THE_ROOT:
        return _OF_THE_ROOT.sub("", _PLAIN_FILE.sub(r"\1", markdown))
    outside = _outside(ROOT / "docs" / page.file.src_uri)
    up = "../" * page.file.src_uri.count("/")
    return _UPWARDS.sub(
        lambda link: up + outside[link.group()] if link.group() in outside else link.group(),
        markdown,
    )


def _outside(page: Path) -> dict[str, str]:
    """Return the links of a page that lead out of docs/, each with the path of its file in the
    repository."""
    links = {
        link: (page.parent / link).resolve()
        for link in _UPWARDS.findall(page.read_text(encoding="utf-8"))
    }
    return {
        link: path.relative_to(ROOT).as_posix()
        for link, path in links.items()
        if not path.is_relative_to(ROOT / "docs")
    }


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Fail if a page loads something from another server."""
    if found := _OUTSIDE.search(output):
        raise PluginError(
            f"{page.file.src_uri} loads something from another server: {found.group()}"
        )
    return output

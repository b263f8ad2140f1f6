"""Run the commands of the README at a terminal and write a picture of it: docs/images/terminal.svg.

python tools/terminal_picture.py [--check]

The commands really run, in an empty memory of their own, in a pseudo-terminal. `--check` runs them
again and compares the words, without scores and ids, which differ from run to run.
"""

import argparse
import io
import os
import pty
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "terminal.svg"
COMMANDS = (
    'store "Ana is allergic to peanuts." --tag health',
    'store "The deploy key rotates on Mondays; ask bob@example.com." --tag ops',
    'search "what must Ana not eat?" --limit 1',
    'search "which day do we swap the key?" --limit 1',
)
_COLUMNS = 92
_NORMAL = "484f58 ff7b72 3fb950 d29922 58a6ff bc8cff 39c5cf b1bac4"
_BRIGHT = "6e7681 ffa198 56d364 e3b341 79c0ff d2a8ff 56d4dd ffffff"
# The format of rich, without its fonts: a picture in a README may load nothing.
_SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" \
height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
_VARIES = re.compile(r"mem_\d+_[0-9a-f]+|[01]\.\d\d")


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the terminal of the README")
    parser.add_argument(
        "--check", action="store_true", help="only compare the picture with a new run"
    )
    drawn = picture(session())
    if parser.parse_args().check:
        if not PICTURE.is_file() or words(PICTURE.read_text(encoding="utf-8")) != words(drawn):
            sys.exit(f"{PICTURE.name} is not current: run python tools/terminal_picture.py")
        return
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn, encoding="utf-8")


def session() -> str:
    """Return what a terminal shows when the commands are typed one after the other, escape
    sequences included."""
    with TemporaryDirectory() as home:
        shown = [
            f"\x1b[32m$\x1b[0m memory-mesh {command}\n{run_at_terminal(command, home)}"
            for command in COMMANDS
        ]
    return "\n".join(part.rstrip("\n") + "\n" for part in shown)


def run_at_terminal(command: str, home: str) -> str:
    """Return the output of a command whose standard output is a terminal."""
    ours, theirs = pty.openpty()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MEMORY_MESH_") and name != "NO_COLOR"
    }
    environment |= {"MEMORY_MESH_HOME": home, "COLUMNS": str(_COLUMNS), "TERM": "xterm-256color"}
    program = Path(sys.executable).with_name("memory-mesh")
    with open(ours, "rb", buffering=0) as reader:
        done = subprocess.Popen(
            ["sh", "-c", f"'{program}' {command}"], stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        output = read_all(reader)
        if done.wait():
            raise SystemExit(f"memory-mesh {command} failed:\n{output}")
    return output.replace("\r\n", "\n")


def read_all(reader: io.RawIOBase) -> str:
    chunks: list[bytes] = []
    try:
        while chunk := reader.read(65536):
            chunks.append(chunk)
    except OSError:  # how Linux reports that the other end of a terminal was closed
        pass
    return b"".join(chunks).decode()


def picture(shown: str) -> str:
    """Return the terminal as SVG."""
    console = Console(
        record=True,
        width=_COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(Text.from_ansi(shown))
    background, text = colours("1b1f24 d0d7de")
    theme = TerminalTheme(background, text, colours(_NORMAL), colours(_BRIGHT))
    return console.export_svg(
        title="memory-mesh", theme=theme, code_format=_SVG, unique_id="terminal"
    )


def colours(text: str) -> list[tuple[int, int, int]]:
    return [(int(word[:2], 16), int(word[2:4], 16), int(word[4:], 16)) for word in text.split()]


def words(svg: str) -> list[str]:
    """Return the words of a picture that are the same in every run."""
    text = unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)))
    return _VARIES.sub("#", text).split()


if __name__ == "__main__":
    main()

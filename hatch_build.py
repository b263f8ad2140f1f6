"""Write the software bill of materials into the wheel, as PEP 770 describes:
`.dist-info/sboms/memory-mesh.cdx.json`.

It lists what the wheel contains besides our own code, the JavaScript libraries of the console, and
which packages it asks for, each with the version that was tested. The content depends on the
sources only, so equal sources make equal wheels.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_ROOT = Path(__file__).parent
_VENDOR = "src/memory_mesh/interfaces/console/web/vendor/versions.json"
_FILE = "build/memory-mesh.cdx.json"


class SbomHook(BuildHookInterface):  # type: ignore[type-arg,unused-ignore]
    """Adds the file to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        target = Path(self.root) / _FILE
        target.parent.mkdir(exist_ok=True)
        target.write_text(
            json.dumps(bill(Path(self.root), self.metadata.version), indent=1) + "\n",
            encoding="utf-8",
        )
        build_data["sbom_files"].append(_FILE)


def bill(root: Path, version: str) -> dict[str, Any]:
    """Return the bill of materials, in the JSON of CycloneDX 1.6."""
    own, needed, vendored = f"pkg:pypi/memory-mesh@{version}", _needed(root), _vendored(root)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": _component("memory-mesh", version, own)
            | {"licenses": [{"license": {"id": "MIT"}}]}
        },
        "components": [*vendored, *needed],
        "dependencies": [
            {"ref": own, "dependsOn": [one["bom-ref"] for one in (*vendored, *needed)]},
            *({"ref": one["bom-ref"]} for one in (*vendored, *needed)),
        ],
    }


def _needed(root: Path) -> list[dict[str, Any]]:
    """Return the packages that the wheel asks for. They are installed beside it, in this version
    or another."""
    asked = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "dependencies"
    ]
    tested = dict(
        re.findall(
            r"(?m)^([\w.-]+)==([^\s;]+)", (root / "constraints.txt").read_text(encoding="utf-8")
        )
    )
    versions = {_normal(name): version for name, version in tested.items()}
    names = [_normal(re.split(r"[^\w.-]", one, maxsplit=1)[0]) for one in asked]
    return [
        _component(name, versions[name], f"pkg:pypi/{name}@{versions[name]}")
        | {"scope": "required"}
        for name in names
    ]


def _vendored(root: Path) -> list[dict[str, Any]]:
    """Return the libraries whose files are in the wheel."""
    packages = json.loads((root / _VENDOR).read_text(encoding="utf-8"))
    return [
        _component(one["name"], one["version"], f"pkg:npm/{one['name']}@{one['version']}")
        | {"scope": "required", "licenses": [{"license": {"id": one["licence"]}}]}
        for one in packages
    ]


def _component(name: str, version: str, purl: str) -> dict[str, Any]:
    return {"type": "library", "name": name, "version": version, "bom-ref": purl, "purl": purl}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

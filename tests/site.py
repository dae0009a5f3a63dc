"""
The documents as a site: stages the pages with all that they link to, and has zensical build it.

C{python -m tests.site} writes C{build/site}. A broken link fails; so does what a page would load from another host.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests import documents

PAGES = documents.ROOT / "build" / "pages"
SITE = documents.ROOT / "build" / "site"
STYLE = "docs/site.css"

_LOADS = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:@import\s+|url\()["']?((?:https?:)?//[^"')\s]+)"""
)


def stage() -> list[str]:
    """
    Copy every document, and every file that one of them links to, to where it stands from the root.

    @return: links to files that are missing. zensical reports such links to pages only.
    """
    shutil.rmtree(PAGES, ignore_errors=True)
    broken = []
    for page in documents.pages():
        name = page.relative_to(documents.ROOT)
        paths = {path for path, _ in documents.links(page.read_text("utf-8")) if path}
        broken += [f"{name} links to {path}, which is missing" for path in sorted(missing(page, paths))]
        targets = {(page.parent / path).resolve() for path in paths}
        for file in (page, *sorted(target for target in targets if target.is_file())):
            target = PAGES / file.relative_to(documents.ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    shutil.copyfile(documents.ROOT / STYLE, PAGES / STYLE)
    return broken


def missing(page: Path, paths: Iterable[str]) -> list[str]:
    """Return the paths that lead from a page to nothing."""
    return [path for path in paths if not (page.parent / path).exists()]


def loaded_from_elsewhere(text: str) -> list[str]:
    """Return the addresses of other hosts from which a built page or style sheet loads something."""
    return ["".join(found) for found in _LOADS.findall(text)]


def faults() -> list[str]:
    """Return the faults of the built site: requests to other hosts, and pages that the search does not find."""
    found = [
        f"{file.relative_to(SITE)} loads {address}"
        for file in sorted(SITE.rglob("*"))
        if file.suffix in (".html", ".css")
        for address in loaded_from_elsewhere(file.read_text("utf-8"))
    ]
    items = json.loads((SITE / "search.json").read_text("utf-8"))["items"]
    indexed = {item["location"].partition("#")[0] for item in items}
    for page in documents.pages():
        name = page.relative_to(documents.ROOT).as_posix().removesuffix("README.md").removesuffix(".md")
        built = f"{name}index.html" if not name or name.endswith("/") else f"{name}.html"
        if built not in indexed:
            found.append(f"the search does not find {built}")
    return found


def main() -> int:
    """Build the site; return 0, or 1 when it has a fault."""
    broken = stage()
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    if subprocess.run(command, cwd=documents.ROOT, check=False).returncode:
        return 1
    found = broken + faults()
    print("".join(f"{fault}\n" for fault in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""The README as a package index shows it. Everything else is in pyproject.toml.

Links of README.md are relative to the repository. `make package URL=https://...` makes them lead there and adds the
address to the metadata. Without it links become plain words and pictures are left out, so that none is broken.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
SOME_URL = re.compile(r"[a-z]+:|#")


def readme_for_index(text: str, url: str) -> str:
    """The README with links to the repository at `url`, or without relative links if it is empty."""

    def replaced(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if SOME_URL.match(target):
            return found.group()
        if not url:
            return "" if picture else words
        return f"{picture}[{words}]({url}/{'raw' if picture else 'blob'}/HEAD/{target})"

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(replaced, text))


def urls(url: str) -> dict[str, str]:
    """The links beside the description."""
    if not url:
        return {}
    documents = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Security": "SECURITY.md"}
    return {"Repository": url, **{name: f"{url}/blob/HEAD/{path}" for name, path in documents.items()}}


if __name__ == "__main__":
    address = os.environ.get("SYNTHSIEVE_URL", "").rstrip("/")
    readme = readme_for_index((ROOT / "README.md").read_text(encoding="utf-8"), address)
    setup(long_description=readme, long_description_content_type="text/markdown", project_urls=urls(address))

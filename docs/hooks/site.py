"""The mkdocs hook: adds pages that are not in docs/, makes links valid on the site, and checks that it works offline.

Generated pages are never written into the repository.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))  # mkdocs runs a hook as a lone file

import reference  # noqa: E402

from synthsieve.cli.options import folded  # noqa: E402

# Pages of the repository that lie outside of docs/, and where they are on the site.
OUTSIDE = {
    "CHANGELOG.md": "development/changelog.md",
    "CONTRIBUTING.md": "development/contributing.md",
    "SECURITY.md": "explanation/security.md",
    "benchmarks/README.md": "development/benchmarks.md",
}
DECISIONS = "development/decisions"
SCRIPTS = "examples/scripts.md"
OUTPUT_WIDTH = 100  # characters; longer sentences of a notebook's output are broken, as on a terminal
# Generated pages exist on the site only, so the home page cannot link to them in the repository.
HOME_LINKS = (
    "Python interface, commands, settings and presets (generated from the code, on the site only)",
    ", ".join(
        f"[{words}](reference/{page}.md)"
        for words, page in (
            ("Python interface", "api"),
            ("commands", "commands"),
            ("settings", "settings"),
            ("presets", "presets"),
        )
    ),
)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
TABLE_ROW = re.compile(r"^\|.*$", re.MULTILINE)
UNBROKEN = re.compile(r"(?<=\d) (?=%|to [+\-\u2212]?\d)|(?<=\d to) (?=[+\-\u2212]?\d)")  # "1 to 2", "5 %"
STAR = re.compile(r"([+-]\d+\.\d+)\*(?!\*)")  # "+1.0*" of a clear difference: a mark, not emphasis
INLINE_CODE = re.compile(r"(?<=<code>)[^<\n]+(?=</code>)")
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
CODE_IN_CELL = re.compile(r"(?<=<code>)[\w/]+\.py[^<]*(?=</code>)")  # a path, perhaps with the name of a function
UNREAD = re.compile(r"<p>(?:(?:(?!</p>)[\s\S])*?\n)?(?:- |\|).*")  # a list or a table that became text
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
HOST = r"""[^>]+{}=["']?(?:https?:)?//"""
LOADED = re.compile(  # what a browser would load from another host
    rf"<(?:script|img|iframe|audio|video|source){HOST.format('src')}"
    rf"""|<link(?![^>]+rel=["']?canonical){HOST.format("href")}"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//"""
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and those outside of docs/."""
    pages = {name: make() for name, make in reference.PAGES.items()}
    pages |= {target: (ROOT / source).read_text(encoding="utf-8") for source, target in OUTSIDE.items()}
    pages |= {f"{DECISIONS}/index.md": _decisions_page(), SCRIPTS: _scripts_page()}
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        pages |= notebook_pages(path)
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def notebook_pages(path: Path) -> dict[str, str | bytes]:
    """A notebook as a page, and its pictures: nothing is executed, the outputs are those in the file."""
    parts, pictures = [], {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            shown = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in shown or "image/svg+xml" in shown:
                is_svg = "image/svg+xml" in shown
                name = f"{path.stem}-{len(pictures)}.{'svg' if is_svg else 'png'}"
                data = "".join(shown["image/svg+xml" if is_svg else "image/png"])
                pictures[f"examples/{name}"] = data if is_svg else base64.b64decode(data)
                parts.append(f"![output]({name}){{ .output }}")
            elif "text/html" in shown:
                table = re.sub(r"<style.*?</style>", "", "".join(shown["text/html"]), flags=re.DOTALL)
                parts.append(re.sub(r"<table[^>]*>", "<table>", re.sub(r"^\s+", "", table, flags=re.MULTILINE)))
            else:
                parts.append(f"```text\n{folded(''.join(shown['text/plain']).rstrip(), OUTPUT_WIDTH)}\n```")
    parts.append(f"*This page is the notebook `examples/{path.name}` with its outputs.*")
    return {f"examples/{path.stem}.md": "\n\n".join(parts) + "\n", **pictures}


def _decisions_page() -> str:
    lines = ["# Decisions", "", "Choices that somebody might question, with what was measured.", ""]
    for path in sorted((ROOT / "docs" / DECISIONS).glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def _scripts_page() -> str:
    lines = ["# Example scripts", "", "Short scripts in the folder `examples/`; the tests run each of them."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8").strip()
        lines += ["", f"## {path.name} {{ #{path.stem} }}", "", "```python", text, "```"]
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links that leave docs/ to their pages on the site; source files become plain text.

    In tables, intervals and percentages are not broken into lines. A star behind a difference stays a star.
    """
    here = page.file.src_uri
    where = {target: source for source, target in OUTSIDE.items()}.get(here, f"docs/{here}")
    if here.startswith("examples/"):
        where = here  # notebooks link to each other
    if here == "index.md":
        if HOME_LINKS[0] not in markdown:
            raise PluginError("docs/index.md no longer has the words that become links to the reference")
        markdown = markdown.replace(*HOME_LINKS)
    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(lambda found: _link(found, where, here), part) for part in parts[::2]]
    parts[::2] = [TABLE_ROW.sub(lambda row: UNBROKEN.sub("\u00a0", row.group()), part) for part in parts[::2]]
    parts[::2] = [STAR.sub(r"\1\*", part) for part in parts[::2]]
    return "".join(parts)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Keep names of options on one line. Leave room for formulas in tables, and let paths beside them be broken."""
    if found := UNREAD.search(html):
        raise PluginError(f"{page.file.src_uri}: put an empty line before a list or a table: {found.group()[-60:]!r}")
    html = INLINE_CODE.sub(lambda code: OPTION.sub(r'<span class="option">\g<0></span>', code.group()), html)
    if "<th>formula</th>" in html:
        html = html.replace("<th>formula</th>", '<th style="min-width: 14rem">formula</th>')
        html = CODE_IN_CELL.sub(lambda code: re.sub(r"([/_.])(?=\w)", r"\1<wbr>", code.group()), html)
    return html


def _link(found: re.Match[str], where: str, here: str) -> str:
    """A link of the page at `where` in the repository, as a link of the page `here` of the site."""
    text, target = found.groups()
    if re.match(r"[a-z]+:|#", target):
        return found.group()
    path, hash_, anchor = target.partition("#")
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(where), path))
    if inside in OUTSIDE:
        inside = f"docs/{OUTSIDE[inside]}"
    elif inside == f"docs/{DECISIONS}":
        inside = f"docs/{DECISIONS}/index.md"
    elif inside.startswith("examples/") and inside.endswith(".ipynb"):
        inside = f"docs/{inside.removesuffix('.ipynb')}.md"
    elif inside.startswith("examples/") and inside.endswith(".py"):
        inside, hash_, anchor = f"docs/{SCRIPTS}", "#", Path(inside).stem
    elif not inside.startswith("docs/"):
        if not (ROOT / inside).exists():
            raise PluginError(f"{where} links to {target}, which does not exist")
        return text if text.startswith("`") else f"`{text}`"
    relative = posixpath.relpath(inside.removeprefix("docs/"), posixpath.dirname(here) or ".")
    return f"[{text}]({relative}{hash_}{anchor})"


def on_post_build(config: MkDocsConfig) -> None:
    """The site must work without a network: no page may load anything from another host."""
    for path in Path(config.site_dir).rglob("*"):
        if path.suffix in (".html", ".css") and LOADED.search(path.read_text(encoding="utf-8")):
            raise PluginError(f"{path} loads something from another host")

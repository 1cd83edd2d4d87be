"""Labels, columns, cells and names made of markup: text wherever they are shown, themselves wherever they are kept.

The report is tested in results/report/test_page.py; here are charts, notebooks, cards, tables and the gallery.
"""

from __future__ import annotations

import csv as plain_csv
import html
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from synthsieve import open_run
from synthsieve.data.dataset import Request
from synthsieve.data.formats.table import load_table
from synthsieve.io.printable import html_table
from synthsieve.results.charts import svg
from synthsieve.results.export.from_pool import export_pool
from synthsieve.results.export.writers import folder_names, write_csv
from synthsieve.results.gallery.session import GallerySession
from synthsieve.results.pool_view import Rejections
from synthsieve.results.report.figures import charts_of
from tests.finished import CRAIG
from tests.results.export import made_up
from tests.results.gallery.conftest import client_of
from tests.results.report.conftest import EVIL, hostile  # noqa: F401 - a fixture

TEXTS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "[click](javascript:alert(1))",
    "<svg/onload=alert(1)>",
    "]]><script>alert(1)</script>",
    "--><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "`code` | cell",
    "---\nlicense: mit\n---",
    "a\n# heading\n\n```sh\nrm -rf /\n```",
    "\u202edesrever",
    "\\[click\\](javascript:alert(1))",
    "```",
    "# heading",
    "- item",
    "1. item",
    "1) item",
    "===",
    "~~~",
    "***bold***",
    "&lt;b&gt;",
    "\x1b]0;owned\x07\x9b31m",
)


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Seen(HTMLParser):
    """What a browser would find in a page: tags with their attributes, and text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def harmless(self) -> bool:
        return not any(
            tag in ("script", "img", "iframe", "object", "b") or any(name.startswith("on") for name in attributes)
            for tag, attributes in self.tags
        )


@pytest.mark.parametrize("text", TEXTS)
def test_a_table_for_notebooks_shows_it_as_text(text):
    seen = Seen(html_table([text, "n"], [[text, "1"]], note=text))
    assert seen.harmless()
    assert text in seen.text


@pytest.mark.parametrize("text", TEXTS)
def test_the_card_of_an_export_shows_it_as_text(text, tmp_path):
    facts = {
        **made_up.FACTS,
        "name": text,
        "classes": [text],
        "run": {"origin": {"source": text}},
        "counts": {**made_up.FACTS["counts"], "classes": {text: {"drawn": 1, "kept": 1, "selected": 1}}},
        "paired_comparison": {"words": text, "rows": [], "notes": [text]},
        "command": f"synthsieve export {text}",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made_up, "FACTS", facts)
        made_up.exported(tmp_path / "export", "sentences")
    card = (tmp_path / "export" / "README.md").read_text(encoding="utf-8")
    _, head, body = card.split("---\n", 2)
    assert not CONTROL.search(card)
    assert json.loads(head)["license"] == "unknown"
    without_code = re.sub(r"```.*?```|`[^`\n]*`", "", body, flags=re.DOTALL)
    assert Seen(without_code).harmless()
    assert not re.search(r"(?<!\\)(\\\\)*\[[^\]]*\]\(javascript:", without_code)
    own = [line for line in body.splitlines() if line.startswith("```")]
    assert len(own) % 2 == 0
    paragraphs = [part for part in without_code.split("\n\n") if html.unescape(part).replace("\\", "") == text]
    assert not any(re.match(r"[#+=~*-]|\d+[.)]|```", part) for part in paragraphs)
    assert "\n# heading" not in body
    assert "rm -rf /\n" not in body


def test_the_figures_of_a_hostile_run_are_clean_drawings(hostile):  # noqa: F811
    run = open_run(hostile)
    view = run.pool(CRAIG.name)
    for chart in charts_of(run, view, view.as_trained()).values():
        for element in ElementTree.fromstring(svg.render(chart)).iter():
            assert element.tag.rpartition("}")[2] not in ("script", "foreignObject", "image", "a", "iframe")
            assert not any(name.startswith("on") or name.endswith("href") for name in element.attrib)


def test_the_gallery_of_a_hostile_run_hands_out_text_and_no_pages(hostile):  # noqa: F811
    run = open_run(hostile)
    gallery = GallerySession(run.pool(CRAIG.name).with_rejections(Rejections.read(hostile)), hostile)
    client = client_of(gallery)
    metadata = client.get("/api/info")
    assert metadata.headers["content-type"] == "application/json"
    assert EVIL in json.dumps(metadata.json(), ensure_ascii=False).replace('\\"', '"')
    for path in ("/api/info", "/api/order", "/api/sample?row=0", f"/api/order?label={EVIL}", "/<script>"):
        answer = client.get(path)
        assert not re.search("html|xml|script", answer.headers["content-type"]), path
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_export_of_a_hostile_run_stays_in_its_folder(hostile, tmp_path):  # noqa: F811
    run = open_run(hostile)
    view = run.pool(CRAIG.name)
    export_pool(view, view.as_trained(), to=tmp_path / "out" / "export", table=run.table)
    assert {path.relative_to(tmp_path).parts[:2] for path in tmp_path.rglob("*") if path.is_file()} == {
        ("out", "export")
    }
    card = (tmp_path / "out" / "export" / "README.md").read_text(encoding="utf-8")
    assert not CONTROL.search(card)
    body = card.split("---\n", 2)[2]
    assert Seen(re.sub(r"```.*?```|`[^`\n]*`", "", body, flags=re.DOTALL)).harmless()


@pytest.mark.parametrize("label", ["..", ".", "../../x", "/etc", "a/b", "C:\\x", "\0", "nul", "x" * 500, "", "‮", "~"])
def test_a_label_cannot_name_another_folder(label):
    (name,) = folder_names([label])
    assert not re.search(r"[/\\\0~.]", name)
    assert 0 < len(name.encode()) <= 255


FORMULAS = ("=1+1", '=HYPERLINK("http://x","y")', "+1", "-1+2", "@SUM(1)", "\t=1", "\r=1", "=cmd|'/c calc'!A0")


def test_formulas_are_kept_as_they_are_and_quoted(tmp_path):
    """A CSV is data: what comes out must be what went in, or learning from it would learn something else.

    See SECURITY.md: who opens one in a spreadsheet imports its columns as text.
    """
    write_csv(tmp_path / "a.csv", pa.table({"text": list(FORMULAS), "label": ["a", "b"] * 4}))
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        assert [row["text"] for row in plain_csv.DictReader(file)] == list(FORMULAS)
    raw = (tmp_path / "a.csv").read_text(encoding="utf-8")
    assert all(line.startswith('"') for line in raw.split("\n")[:2])
    data = load_table(Request(str(tmp_path / "a.csv"), label="label"))
    assert data.train.y.tolist() == (np.arange(8) % 2).tolist()

"""SVG is valid XML: marks at their positions, names escaped, no scripts."""

import re
from xml.etree import ElementTree

import pytest

from synthsieve.results.charts import style, svg
from synthsieve.results.charts.chart import Axis, Bars, Line, Points
from synthsieve.results.charts.style import DARK
from synthsieve.results.charts.svg import POINTED_AT
from tests.results.charts.made_up import CASES, HOSTILE, lines

SVG = "{http://www.w3.org/2000/svg}"


def parsed(chart, **options):
    return ElementTree.fromstring(svg.render(chart, **options))


@pytest.mark.parametrize("standalone", [False, True])
@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_every_chart_is_accessible_xml(chart, standalone):
    root = parsed(chart, standalone=standalone)
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert " ".join(title.text.split()) == " ".join(chart.title.split())
    assert len(root.findall(f"{SVG}style")) == standalone
    assert svg.render(chart, standalone=standalone) == svg.render(chart, standalone=standalone)


@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_no_scripts_and_no_links(chart):
    text = svg.render(chart, standalone=True)
    root = ElementTree.fromstring(text)
    allowed = set("svg title desc style rect text path polyline polygon circle g defs pattern".split())  # noqa: SIM905
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    names = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name or name == "style" for name in names)
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_text_stays_on_the_canvas(chart):
    root = parsed(chart)
    _, _, wide, high = map(float, root.get("viewBox").split())
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x")) <= wide
        assert 0 < float(text.get("y")) <= high
    assert wide == svg.WIDTH


def test_names_are_escaped():
    words = [text.text or "" for text in parsed(CASES["forest"]).iter(f"{SVG}text")]
    assert '<b>&"' in words
    assert any("שלום" in word for word in words)
    hovered = [title.text for title in parsed(CASES["forest"]).iter(f"{SVG}title")]
    assert HOSTILE[1] in hovered  # shortened, with the full text as tooltip
    assert not any("\x00" in word for word in [*words, *hovered])


def test_positions_of_points():
    first, second, _ = parsed(lines()).findall(f"{SVG}polyline")
    (a, b), (c, d, e) = (
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()] for line in (first, second)
    )
    assert a[0] == c[0] < d[0] < e[0] == b[0]
    assert a[1] == e[1] > d[1] > b[1] == c[1]  # down the page is up the axis
    assert d[0] == pytest.approx((c[0] + e[0]) / 2, abs=0.1)
    assert d[1] == pytest.approx((c[1] + e[1]) / 2, abs=0.1)


def test_stacked_bars():
    root = parsed(CASES["histogram"])
    kept, lost = (
        [{name: float(bar.get(name)) for name in ("x", "y", "width", "height")} for bar in group.iter(f"{SVG}rect")]
        for group in root.findall(f"{SVG}g")
        if group.find(f"{SVG}rect") is not None and group.find(f"{SVG}rect").get("class") == "mark"
    )
    assert len(kept) == 5  # an empty bar is not drawn
    assert len(lost) == 6
    unit = kept[0]["height"]
    for i, bar in enumerate(kept):
        assert bar["height"] == pytest.approx((i + 1) * unit, abs=0.5)
        assert lost[i]["y"] + lost[i]["height"] == pytest.approx(bar["y"], abs=0.2)
        assert lost[i]["x"] == bar["x"]
    assert lost[3]["x"] == pytest.approx(rule_at(root), abs=0.2)  # the fourth bin begins at 1e-3, where the rule is


def rule_at(root):
    (rule,) = (path for path in root.iter(f"{SVG}path") if "dashed" in path.get("class", "") and "V" in path.get("d"))
    return float(re.match(r"M([\d.]+) ", rule.get("d"))[1])


def test_tooltips_of_bars_and_short_lines():
    root = parsed(lines())
    assert [t.text for c in root.iter(f"{SVG}circle") for t in c] == [
        *("a: 0 at 0", "a: 1 at 10", "b: 1 at 0", "b: 0.5 at 5", "b: 0 at 10")
    ]
    long = lines(layers=(Line("a", tuple(map(float, range(POINTED_AT + 1))), (0.5,) * (POINTED_AT + 1)),))
    assert not list(parsed(long).iter(f"{SVG}circle"))


def test_points_carry_their_rows():
    found = [path.get("data-row") for path in parsed(CASES["map"]).iter(f"{SVG}path") if path.get("data-row")]
    assert found == ["7", "9"]


def test_many_points_take_little_space():
    x = tuple(float(i % 97) for i in range(2000))
    text = svg.render(lines(layers=(Points("a", x, x[::-1]),), square=True))
    assert len(text) < 120_000


def test_fill_patterns_have_ids_of_their_chart():
    first, second = svg.render(CASES["histogram"]), svg.render(CASES["yield"])
    ids = [set(re.findall(r'id="([^"]+)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    for text in (first, second):
        assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(re.findall(r'<pattern id="([^"]+)"', text))
    bars = [layer for layer in CASES["histogram"].layers if isinstance(layer, Bars)]
    assert len({layer.fill for layer in bars}) == len(bars)


def test_styles_apply_to_charts_only():
    for css in (style.page_style(), style.inherited_style(), style.file_style()):
        bare = re.sub(r"@media[^{]*\{", "", css)
        for selectors in re.findall(r"([^{}]+)\{", bare):
            assert all(one.strip().startswith((".chart", ":root")) for one in selectors.split(","))
    assert f"--chart-1:{DARK.tones[1]};" in style.variables(DARK)


def test_write_file(tmp_path):
    svg.write(tmp_path / "c.svg", lines(x=Axis("steps <&>")))
    root = ElementTree.parse(tmp_path / "c.svg").getroot()
    assert root.get("width") == str(svg.WIDTH)
    assert "steps <&>" in [text.text for text in root.iter(f"{SVG}text")]

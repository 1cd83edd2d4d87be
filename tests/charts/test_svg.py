"""SVG that any XML reader reads: marks where the axes say, names as they are, nothing that runs."""

import re
from xml.etree import ElementTree

import pytest

from synthsieve.charts import svg, svg_style
from synthsieve.charts.chart import Axis, Bars, Line, Points
from synthsieve.charts.palette import DARK
from synthsieve.charts.svg_marks import POINTED_AT
from tests.charts.made_up import CASES, HOSTILE, lines

SVG = "{http://www.w3.org/2000/svg}"


def parsed(chart, **asked):
    return ElementTree.fromstring(svg.render(chart, **asked))


@pytest.mark.parametrize("standalone", [False, True])
@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_every_chart_is_xml_and_tells_what_it_is(chart, standalone):
    root = parsed(chart, standalone=standalone)
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert " ".join(title.text.split()) == " ".join(chart.title.split())
    assert len(root.findall(f"{SVG}style")) == standalone
    assert svg.render(chart, standalone=standalone) == svg.render(chart, standalone=standalone)


@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_nothing_runs_and_nothing_is_fetched(chart):
    text = svg.render(chart, standalone=True)
    root = ElementTree.fromstring(text)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *(
            "svg",
            "title",
            "desc",
            "style",
            "rect",
            "text",
            "path",
            "polyline",
            "polygon",
            "circle",
            "g",
            "defs",
            "pattern",
        )
    }
    names = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name or name == "style" for name in names)
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


@pytest.mark.parametrize("chart", CASES.values(), ids=CASES)
def test_words_stay_on_the_canvas(chart):
    root = parsed(chart)
    _, _, wide, high = map(float, root.get("viewBox").split())
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x")) <= wide
        assert 0 < float(text.get("y")) <= high
    assert wide == svg.WIDTH


def test_names_are_shown_as_they_are():
    words = [text.text or "" for text in parsed(CASES["forest"]).iter(f"{SVG}text")]
    assert '<b>&"' in words
    assert any("שלום" in word for word in words)
    hovered = [title.text for title in parsed(CASES["forest"]).iter(f"{SVG}title")]
    assert HOSTILE[1] in hovered  # shortened, and told in full
    assert not any("\x00" in word for word in [*words, *hovered])


def test_points_stand_where_the_axes_say():
    first, second, _ = parsed(lines()).findall(f"{SVG}polyline")
    (a, b), (c, d, e) = (
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()] for line in (first, second)
    )
    assert a[0] == c[0] < d[0] < e[0] == b[0]
    assert a[1] == e[1] > d[1] > b[1] == c[1]  # down the page is up the axis
    assert d[0] == pytest.approx((c[0] + e[0]) / 2, abs=0.1)
    assert d[1] == pytest.approx((c[1] + e[1]) / 2, abs=0.1)


def test_stacked_bars_touch_and_are_as_high_as_their_numbers():
    root = parsed(CASES["histogram"])
    kept, lost = (
        [{name: float(bar.get(name)) for name in ("x", "y", "width", "height")} for bar in group.iter(f"{SVG}rect")]
        for group in root.findall(f"{SVG}g")
        if group.find(f"{SVG}rect") is not None and group.find(f"{SVG}rect").get("class") == "mark"
    )
    assert len(kept) == 5  # a bar of nothing is none
    assert len(lost) == 6
    unit = kept[0]["height"]
    for i, bar in enumerate(kept):
        assert bar["height"] == pytest.approx((i + 1) * unit, abs=0.5)
        assert lost[i]["y"] + lost[i]["height"] == pytest.approx(bar["y"], abs=0.2)
        assert lost[i]["x"] == bar["x"]
    assert lost[3]["x"] == pytest.approx(rule_at(root), abs=0.2)  # the fourth bin begins at 1e-3, as the rule stands


def rule_at(root):
    (rule,) = (path for path in root.iter(f"{SVG}path") if "dashed" in path.get("class", "") and "V" in path.get("d"))
    return float(re.match(r"M([\d.]+) ", rule.get("d"))[1])


def test_each_bar_and_each_point_of_a_short_line_says_what_it_is():
    root = parsed(lines())
    assert [t.text for c in root.iter(f"{SVG}circle") for t in c] == [
        *("a: 0 at 0", "a: 1 at 10", "b: 1 at 0", "b: 0.5 at 5", "b: 0 at 10")
    ]
    long = lines(layers=(Line("a", tuple(map(float, range(POINTED_AT + 1))), (0.5,) * (POINTED_AT + 1)),))
    assert not list(parsed(long).iter(f"{SVG}circle"))


def test_samples_can_be_found_by_a_script_of_the_page():
    found = [path.get("data-row") for path in parsed(CASES["map"]).iter(f"{SVG}path") if path.get("data-row")]
    assert found == ["7", "9"]


def test_many_points_take_little_room():
    x = tuple(float(i % 97) for i in range(2000))
    text = svg.render(lines(layers=(Points("a", x, x[::-1]),), square=True))
    assert len(text) < 120_000


def test_fills_differ_and_are_of_this_chart_alone():
    first, second = svg.render(CASES["histogram"]), svg.render(CASES["yield"])
    ids = [set(re.findall(r'id="([^"]+)"', text)) for text in (first, second)]
    assert not ids[0] & ids[1]
    for text in (first, second):
        assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(re.findall(r'<pattern id="([^"]+)"', text))
    bars = [layer for layer in CASES["histogram"].layers if isinstance(layer, Bars)]
    assert len({layer.fill for layer in bars}) == len(bars)


def test_a_title_may_be_left_to_the_page():
    with_title, without = (svg.render(lines(), with_title=each) for each in (True, False))
    assert 'class="title"' in with_title
    assert 'class="title"' not in without
    assert "<title" in without


def test_styles_touch_charts_alone():
    for style in (svg_style.page_style(), svg_style.inherited_style(), svg_style.file_style()):
        bare = re.sub(r"@media[^{]*\{", "", style)
        for selectors in re.findall(r"([^{}]+)\{", bare):
            assert all(one.strip().startswith((".chart", ":root")) for one in selectors.split(","))
    assert f"--chart-1:{DARK.tones[1]};" in svg_style.variables(DARK)


def test_a_file_of_its_own_is_written_whole(tmp_path):
    svg.write(tmp_path / "c.svg", lines(x=Axis("steps <&>")))
    root = ElementTree.parse(tmp_path / "c.svg").getroot()
    assert root.get("width") == str(svg.WIDTH)
    assert "steps <&>" in [text.text for text in root.iter(f"{SVG}text")]

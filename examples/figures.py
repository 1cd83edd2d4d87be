"""The figures of a finished run, as pictures and as pages to point at.

synthsieve run digits -o demo
python examples/figures.py demo --out figures
"""

import argparse
from pathlib import Path

import synthsieve

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("run", help="the folder that `synthsieve run` or `synthsieve fit --augment` wrote")
parser.add_argument("--out", type=Path, default=Path("figures"))
asked = parser.parse_args()
asked.out.mkdir(parents=True, exist_ok=True)

run = synthsieve.open_run(asked.run)  # the last line of a notebook's cell, it shows itself
names = run.figures.names()
print(f"{len(names)} figures: {', '.join(names)}")
for name in names:
    run.figures.draw(name).savefig(asked.out / f"{name}.png")  # matplotlib
    (asked.out / f"{name}.svg").write_text(run.figures.svg(name), encoding="utf-8")

# plotly's figures can be zoomed into; a point of the map tells its sample.
run.figures.latent_map(backend="plotly").write_html(asked.out / "latent_map.html")

# A chart is data: its numbers can be drawn in any other way.
histogram = run.figures.chart("entropy_histogram")
print(histogram.description)

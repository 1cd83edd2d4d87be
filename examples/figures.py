"""The figures of a finished run, as PNG and as SVG.

synthsieve run digits -o demo
python examples/figures.py demo --out figures
"""

import argparse
from pathlib import Path

import synthsieve

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("run", help="the folder that `synthsieve run` or `synthsieve fit --augment` wrote")
parser.add_argument("--out", type=Path, default=Path("figures"))
options = parser.parse_args()
options.out.mkdir(parents=True, exist_ok=True)

run = synthsieve.open_run(options.run)  # displays itself as the last line of a notebook cell
names = run.figures.names()
print(f"{len(names)} figures: {', '.join(names)}")
for name in names:
    run.figures.draw(name).savefig(options.out / f"{name}.png")  # matplotlib
    (options.out / f"{name}.svg").write_text(run.figures.svg(name), encoding="utf-8")

# A chart is plain data: its numbers can be drawn in any other way.
histogram = run.figures.chart("entropy_histogram")
print(histogram.description)

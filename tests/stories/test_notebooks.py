"""The notebooks in examples/: outputs are stored, and running them again works."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def test_there_are_four():
    names = [path.stem for path in NOTEBOOKS]
    assert names == [
        "curate_generated_text",
        "few_labels_on_a_table",
        "images_end_to_end",
        "is_my_synthetic_data_useful",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    kinds = [output["output_type"] for cell in code for output in cell["outputs"]]
    assert len(kinds) >= 3
    assert "error" not in kinds
    streams = [output.get("name") for cell in code for output in cell["outputs"]]
    assert "stderr" not in streams
    assert path.stat().st_size < 300_000


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_again(path, tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    stored = nbformat.read(path, as_version=4)
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for cell, before in zip(notebook.cells, stored.cells, strict=True):
        kinds, kinds_before = ([output.output_type for output in one.get("outputs", ())] for one in (cell, before))
        assert kinds == kinds_before

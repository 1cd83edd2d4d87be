"""The registry of named data sources and file formats, and `load`, which reads from all of them.

A source is a function from a `Request` to a `Dataset`. Add your own with `register_source` or, so that the command line
finds it too, as an entry point of the group `synthsieve.sources`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from synthsieve.data.checks import check, check_dataset
from synthsieve.data.dataset import Dataset, Request
from synthsieve.data.formats.folder import folder_kind
from synthsieve.io.progress import NullProgress, Progress

ENTRY_POINTS = "synthsieve.sources"


Loader = Callable[[Request], Dataset]

# Named as "module:function" so that nothing heavy is imported before it is needed.
_SOURCES: dict[str, Loader | str] = {
    "digits": "synthsieve.data.sources.images:load_digits",
    "svhn": "synthsieve.data.sources.images:load_svhn",
    "mnist": "synthsieve.data.sources.images:load_mnist",
    "adult": "synthsieve.data.sources.adult:load_adult",
    "spoken-digits": "synthsieve.data.sources.spoken_digits:load_spoken_digits",
    "sst2": "synthsieve.data.sources.sst2:load_sst2",
}
_FORMATS: dict[str, Loader | str] = {
    ".npz": "synthsieve.data.formats.npz:load_npz",
    ".mat": "synthsieve.data.sources.images:load_mat",
    ".csv": "synthsieve.data.formats.table:load_table",
    ".tsv": "synthsieve.data.formats.table:load_table",
    ".parquet": "synthsieve.data.formats.table:load_table",
}
_FOLDERS = {
    "images": "synthsieve.data.formats.image_folder:load_image_folder",
    "sounds": "synthsieve.data.formats.sound_folder:load_sound_folder",
}
_IDX = "synthsieve.data.formats.idx:load_idx"


def register_source(name: str, loader: Loader) -> None:
    """Make `load(name)` call `loader`; a name that is taken is refused."""
    check(name not in _SOURCES, f"the name {name!r} of a source is taken: choose another", "name-taken")
    _SOURCES[name] = loader


def register_format(suffix: str, loader: Loader) -> None:
    """Make `load` read paths ending in `suffix` (".xyz") with `loader`; a suffix that is taken is refused."""
    is_new = suffix not in _FORMATS and suffix.startswith(".")
    check(is_new, f"a format must have a suffix of its own, such as '.xyz', got {suffix!r}", "name-taken")
    _FORMATS[suffix] = loader


def source_names() -> list[str]:
    """The names `load` knows, in order."""
    return sorted({*_SOURCES, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def load(
    source: str,
    *,
    label: str | None = None,
    text: str | None = None,
    schema: Path | None = None,
    features: Path | None = None,
    image_size: str | None = None,
    data_dir: Path | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The data set `source`: a registered name, or a path (./mnist is the folder, mnist the source).

    Whatever the source, the result has passed `check_dataset`.
    """
    request = Request(source, label, data_dir, text, schema, features, image_size, progress or NullProgress())
    dataset = _find_loader(request)(request)
    check_dataset(dataset)
    return dataset


def _find_loader(request: Request) -> Loader:
    source, path = request.source, request.path
    if source in _SOURCES:
        return _resolve(_SOURCES[source])
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == source:
            loader: Loader = point.load()
            return loader
    if source and path.is_dir():
        return _resolve(_FOLDERS[folder_kind(path)])
    close = get_close_matches(source, source_names(), n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    known = f"Built-in data sets: {', '.join(source_names())}."
    exists = source and path.exists()
    check(exists, f"File not found: {source or 'the name is empty'}. {hint}{known}", "unknown-source")
    check(path.stat().st_size, f"{path} is empty: copy or download it again", "empty-file")
    return _resolve(_FORMATS.get(path.suffix.lower(), _IDX))


def _resolve(loader: Loader | str) -> Loader:
    if not isinstance(loader, str):
        return loader
    module, function = loader.split(":")
    resolved: Loader = getattr(import_module(module), function)
    return resolved

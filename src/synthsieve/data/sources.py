"""Where data come from: a registry of named sources and of file formats, and `load`, the one door to them.

A source is a function from a `Request` to a `Dataset`. One's own is added with `register_source`, or, so that the
command line finds it too, as an entry point of the group `synthsieve.sources`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from synthsieve.data.checks import check_dataset
from synthsieve.data.dataset import Dataset
from synthsieve.errors import DataError
from synthsieve.progress import Progress, Silent

ENTRY_POINTS = "synthsieve.sources"


@dataclass(frozen=True)
class Request:
    """What a source is asked for.

    Attributes:
        source: the name or the path as given.
        label: the label column, for tables.
        text: the text column, for tables whose examples are sentences.
        schema: a TOML file that names the types of columns, for tables.
        features: a .npy of embeddings that stand for the rows of a table.
        image_size: what images of a folder are resized to, such as "64" or "64x48"; None chooses by the images.
        data_dir: where to look first and download to, for sources with files of their own.
        progress: told how far a download or a long read has come.
    """

    source: str
    label: str | None = None
    data_dir: Path | None = None
    text: str | None = None
    schema: Path | None = None
    features: Path | None = None
    image_size: str | None = None
    progress: Progress = field(default_factory=Silent)

    @property
    def path(self) -> Path:
        return Path(self.source).expanduser()


Loader = Callable[[Request], Dataset]

# Named as "module:function" so that nothing heavy is imported before it is needed.
_SOURCES: dict[str, Loader | str] = {
    "digits": "synthsieve.data.digits:load_digits",
    "svhn": "synthsieve.data.svhn:load_svhn",
    "mnist": "synthsieve.data.idx:load_mnist",
    "adult": "synthsieve.data.adult:load_adult",
    "spoken-digits": "synthsieve.data.spoken_digits:load_spoken_digits",
    "sst2": "synthsieve.data.sst2:load_sst2",
}
_FORMATS: dict[str, Loader | str] = {
    ".npz": "synthsieve.data.npz:load_npz",
    ".mat": "synthsieve.data.svhn:load_mat",
    ".csv": "synthsieve.data.table:load_csv",
    ".tsv": "synthsieve.data.table:load_csv",
    ".parquet": "synthsieve.data.table:load_parquet",
}
_FOLDER = "synthsieve.data.folder:load_folder"
_IDX = "synthsieve.data.idx:load_idx"


def register_source(name: str, loader: Loader) -> None:
    """Make `load(name)` call `loader`; a name that is taken is refused."""
    if name in _SOURCES:
        raise DataError(f"a source must have a name of its own, but {name!r} is taken: choose another")
    _SOURCES[name] = loader


def register_format(suffix: str, loader: Loader) -> None:
    """Make `load` read paths ending in `suffix` (".xyz") with `loader`; a suffix that is taken is refused."""
    if suffix in _FORMATS or not suffix.startswith("."):
        raise DataError(f"a format must have a suffix of its own, such as '.xyz', but {suffix!r} came")
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
    request = Request(source, label, data_dir, text, schema, features, image_size, progress or Silent())
    dataset = _find_loader(request)(request)
    check_dataset(dataset)
    return dataset


def _find_loader(request: Request) -> Loader:
    if request.source in _SOURCES:
        return _resolve(_SOURCES[request.source])
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == request.source:
            loader: Loader = point.load()
            return loader
    path = request.path
    if request.source and path.is_dir():
        return _resolve(_FOLDER)
    if not request.source or not path.exists():
        close = get_close_matches(request.source, source_names(), n=1)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise DataError(
            f"File not found: {request.source or 'the name is empty'}. {hint}Built-in data sets:"
            f" {', '.join(source_names())}."
        )
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty: copy or download it again")
    return _resolve(_FORMATS.get(path.suffix.lower(), _IDX))


def _resolve(loader: Loader | str) -> Loader:
    if not isinstance(loader, str):
        return loader
    module, function = loader.split(":")
    resolved: Loader = getattr(import_module(module), function)
    return resolved

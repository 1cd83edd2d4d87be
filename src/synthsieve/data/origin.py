"""Where the data of a run come from, in a form that can be stored and loaded again from any folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthsieve.data.dataset import Dataset
from synthsieve.data.formats.new_examples import with_separate_set
from synthsieve.data.registry import load, source_names
from synthsieve.io.progress import Progress


@dataclass(frozen=True)
class Origin:
    """A source's name or an absolute path, and the options it is read with; paths as text, ready for JSON."""

    source: str
    label: str | None = None
    data_dir: str | None = None
    text: str | None = None
    schema: str | None = None
    features: str | None = None
    image_size: str | None = None
    test: str | None = None
    validation: str | None = None

    @classmethod
    def of(cls, source: str, *, label: str | None = None, text: str | None = None, **options: Any) -> Origin:
        """The origin that a user named, with relative paths made absolute.

        `options` are `image_size` and the paths schema, features, data_dir, test and validation.
        """
        path = Path(source).expanduser()
        if source and source not in source_names() and path.exists():
            source = str(path.resolve())
        absolute = {
            name: str(given.expanduser().resolve()) if isinstance(given, Path) else given
            for name, given in options.items()
        }
        return cls(source, label=label, text=text, **absolute)

    def load(self, progress: Progress | None = None) -> Dataset:
        """Read the data set."""
        named: dict[str, Any] = {"label": self.label, "text": self.text, "progress": progress}
        paths = {"schema": self.schema, "features": self.features, "data_dir": self.data_dir}
        options: dict[str, Any] = {name: None if given is None else Path(given) for name, given in paths.items()}
        dataset = load(self.source, image_size=self.image_size, **named, **options)
        for part, given in (("test", self.test), ("validation", self.validation)):
            if given is not None:
                dataset = with_separate_set(dataset, part, Path(given), features=self.features is not None, **named)
        return dataset

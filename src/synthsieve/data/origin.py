"""Where the data of a run come from, in a form that can be stored and loaded again from any folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from synthsieve.data.dataset import Dataset
from synthsieve.data.formats.separate_sets import with_separate_set
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
    def of(
        cls,
        source: str,
        *,
        label: str | None = None,
        text: str | None = None,
        image_size: str | None = None,
        **paths: Path | None,
    ) -> Origin:
        """The origin that a user named, with relative paths made absolute.

        `paths` are schema, features, data_dir, test and validation.
        """
        path = Path(source).expanduser()
        if source and source not in source_names() and path.exists():
            source = str(path.resolve())
        absolute = {name: None if given is None else str(given.expanduser().resolve()) for name, given in paths.items()}
        return cls(source, label=label, text=text, image_size=image_size, **absolute)

    def load(self, progress: Progress | None = None) -> Dataset:
        """Read the data set."""
        schema, features, data_dir = (
            None if given is None else Path(given) for given in (self.schema, self.features, self.data_dir)
        )
        dataset = load(
            self.source,
            label=self.label,
            text=self.text,
            schema=schema,
            features=features,
            image_size=self.image_size,
            data_dir=data_dir,
            progress=progress,
        )
        for part, given in (("test", self.test), ("validation", self.validation)):
            if given is not None:
                options = {"label": self.label, "text": self.text, "features": features is not None}
                dataset = with_separate_set(dataset, part, Path(given), **options, progress=progress)  # type: ignore[arg-type]
        return dataset

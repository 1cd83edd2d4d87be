"""What a data set gets when its user says nothing: a preset by its source, or by what one example is."""

from __future__ import annotations

from synthsieve.data.dataset import Dataset, Kind

OF_SOURCE = {"digits": "digits-minutes", "mnist": "mnist-minutes", "svhn": "svhn-cpu"}
OF_KIND = {
    Kind.VECTOR: "vector-minutes",
    Kind.TABLE: "table-minutes",
    Kind.SOUND: "sound-minutes",
    Kind.TEXT: "text-minutes",
}


def default_preset(source: str, dataset: Dataset | None = None) -> str | None:
    """The preset that belongs to a source by name, or to the kind of its data; None starts from the plain defaults."""
    if source in OF_SOURCE or dataset is None:
        return OF_SOURCE.get(source)
    return OF_KIND.get(Kind(dataset.kind)) if dataset.kind in set(Kind) else None

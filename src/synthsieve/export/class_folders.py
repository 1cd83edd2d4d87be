"""A folder for each class with a file for each sample, and a metadata.csv beside the folders.

So Hugging Face's `imagefolder` and `audiofolder` find the metadata, and torchvision's `ImageFolder` sees classes alone:
it looks at folders, and passes files by.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from synthsieve.export.block import About, Block
from synthsieve.export.csv_file import csv_tables
from synthsieve.export.names import folder_names
from synthsieve.export.parquet_file import Sink
from synthsieve.export.sheet import listing

METADATA = "metadata.csv"


@contextmanager
def class_folders(folder: Path, about: About) -> Iterator[Sink]:
    """Write blocks to FOLDER/CLASS/NNNNN.png or .wav; a class without samples has no folder."""
    folder.mkdir()
    names, made = folder_names(about.classes), set()
    with csv_tables(folder / METADATA) as add_table:

        def add(block: Block) -> None:
            files = [f"{names[y]}/{about.file_name(int(id))}" for y, id in zip(block.y, block.ids, strict=True)]
            for name, content in zip(files, block.files, strict=True):
                if name.partition("/")[0] not in made:
                    made.add(name.partition("/")[0])
                    (folder / name).parent.mkdir()
                (folder / name).write_bytes(content)
            add_table(listing(block, about, files))

        yield add

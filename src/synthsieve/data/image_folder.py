"""A folder of images: a folder for each class, and one named `unlabeled` (or `Unlabelled`, ...) for the rest.

Where the folder holds `train`, laid out like that, `test` and `val` (`valid`, `validation`) beside it are the test set
and the validation set, and `unlabeled` beside it holds more training images. Images may lie in sub-folders of a class.

Images that share one size of at most 32 x 32 keep it. All others are resized to 32 x 32, or to `image_size`: an image
is scaled until it covers that size, and what is left over of its longer side is cropped at both ends.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.folder import PART_FOLDERS, is_unlabeled, part_folders
from synthsieve.data.labels import Labels, read_labels
from synthsieve.data.reasons import brief
from synthsieve.data.sources import Request
from synthsieve.errors import DataError
from synthsieve.progress import Progress

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
# Whatever a file's name says, only these are looked for in it: Pillow knows more, and hands some to other programs.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
# Modes of Pillow: how many channels their images get. Those of 16 or more bits have no range to read them by.
CHANNELS = {"L": 1, "1": 1, "LA": 1, "La": 1, "RGB": 3, "RGBA": 3, "RGBa": 3, "P": 3, "PA": 3, "CMYK": 3, "YCbCr": 3}
TRANSPARENT = ("LA", "La", "RGBA", "RGBa", "PA")
DEFAULT_SIDE = 32
MOST_SIDE = 512  # of resized images
SIZE = re.compile(r"\s*(\d+)\s*(?:[x×,]\s*(\d+)\s*)?")
TURNED = (5, 6, 7, 8)  # EXIF orientations that swap width and height
ORIENTATION = 0x0112  # the EXIF tag
DRAFT = 2  # a JPEG is decoded at no more than it takes to have this many times the pixels that are wanted


@dataclass(frozen=True)
class Listing:
    """The images of a folder, before any is read.

    Attributes:
        files: where they lie.
        names: the class folder of each; "" = unlabelled.
        passed_over: how many other files there were.
    """

    files: list[Path]
    names: list[str]
    passed_over: int = 0

    def __add__(self, other: Listing) -> Listing:
        return Listing(self.files + other.files, self.names + other.names, self.passed_over + other.passed_over)


@dataclass(frozen=True)
class Form:
    """What every image becomes: its channels (1 or 3) and its size; `resized` where images of other sizes came."""

    channels: int
    height: int
    width: int
    resized: bool


def load_image_folder(request: Request) -> Dataset:
    """Images uint8 (n, channels, height, width) in order of folder and file name."""
    root = request.path
    listings, notes = _list_parts(root)
    train = listings["train"]
    labels = _labels(train.names, root)
    headers = [_read_header(file) for file in train.files]
    form = _choose_form(headers, request.image_size)
    notes += _form_notes(headers, form)
    parts = {"train": Examples(_read_images(train.files, form, request.progress), labels.y)}
    for part in ("validation", "test"):
        if part in listings:
            found = listings[part]
            y = _labels(found.names, root / part, labels.classes).y
            parts[part] = Examples(_read_images(found.files, form, request.progress), y)
    passed_over = sum(listing.passed_over for listing in listings.values())
    if passed_over:
        notes.append(f"{passed_over:,} files that are not images were passed over")
    return Dataset(
        root.resolve().name,
        Kind.IMAGE,
        labels.classes,
        parts["train"],
        parts.get("test"),
        notes=tuple(notes),
        validation=parts.get("validation"),
    )


def _list_parts(root: Path) -> tuple[dict[str, Listing], list[str]]:
    """The images of each part, and what is worth telling about the folders."""
    folders = part_folders(root, lambda folder: bool(_folders(folder)))
    if not folders:
        listing = _list_classes(root)
        loose = sum(file.suffix.lower() in SUFFIXES for file in _files(root))
        return {"train": listing}, _passed_over_notes(loose, [])
    listings = {part: _list_classes(folder) for part, folder in folders.items()}
    others: list[Path] = []
    for folder in _folders(root):
        if is_unlabeled(folder.name):
            listings["train"] += _list_class(folder, "")
        elif folder not in folders.values():
            others.append(folder)
    loose = sum(file.suffix.lower() in SUFFIXES for folder in (root, *folders.values()) for file in _files(folder))
    notes = _passed_over_notes(loose, others)
    if "validation" in listings:
        count = len(listings["validation"].files)
        notes.append(f"the {count:,} images of {folders['validation'].name}/ are the validation set")
    return listings, notes


def _passed_over_notes(loose: int, others: list[Path]) -> list[str]:
    notes = []
    if loose:
        notes.append(f"{loose:,} images outside of class folders were passed over")
    for folder in others:
        count = sum(1 for file in _files_below(folder) if file.suffix.lower() in SUFFIXES)
        is_part = any(folder.name.casefold() in names for names in PART_FOLDERS.values())
        why = "has no class folders" if is_part else "is neither train, validation nor test"
        notes.append(f"{folder.name}/ {why}: its {count:,} images were passed over")
    return notes


def _list_classes(root: Path) -> Listing:
    """Images by the class folder they lie in, at any depth."""
    listing = Listing([], [])
    for folder in _folders(root):
        unlabeled = is_unlabeled(folder.name)
        found = _list_class(folder, "" if unlabeled else folder.name)
        if not found.files and not unlabeled:
            raise DataError(f"{folder} must hold images of one class, but holds none: fill or remove it")
        listing += found
    if not listing.files:
        raise DataError(f"{root} must hold a folder of images for each class, but holds no images in folders")
    return listing


def _list_class(folder: Path, name: str) -> Listing:
    inside = list(_files_below(folder))
    images = [file for file in inside if file.suffix.lower() in SUFFIXES]
    return Listing(images, [name] * len(images), len(inside) - len(images))


def _folders(root: Path) -> list[Path]:
    return sorted(child for child in root.iterdir() if child.is_dir() and not child.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_file() and not child.name.startswith("."))


def _files_below(folder: Path) -> Iterator[Path]:
    """Files at any depth, those of the folder first; hidden ones, and folders behind links, are left out."""
    for place, inside, _ in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield from _files(Path(place))


def _labels(names: list[str], root: Path, classes: tuple[str, ...] | None = None) -> Labels:
    known = np.array(names, dtype=str)
    if str(UNLABELED) in names:
        raise DataError(f"{root / str(UNLABELED)} could mean unlabelled or a class: name it unlabeled, or otherwise")
    return read_labels(known, origin=root.name, classes=classes)


def _choose_form(headers: list[tuple[str, int, int]], image_size: str | None) -> Form:
    """What images of these (mode, width, height) become."""
    channels = max(CHANNELS[mode] for mode, _, _ in headers)
    sizes = {(height, width) for _, width, height in headers}
    if image_size is not None:
        height, width = read_image_size(image_size)
    elif len(sizes) == 1 and max(next(iter(sizes))) <= DEFAULT_SIDE:
        height, width = next(iter(sizes))
    else:
        height = width = DEFAULT_SIDE
    return Form(channels, height, width, resized=sizes != {(height, width)})


def read_image_size(given: str) -> tuple[int, int]:
    """(height, width) of a size such as "64" or "64x48", width first."""
    found = SIZE.fullmatch(given)
    sides = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not all(1 <= side <= MOST_SIDE for side in sides):
        raise DataError(
            f"image_size must be a side such as 64, or width x height such as 64x48, of 1 to {MOST_SIDE} pixels, but"
            f" {given!r} came"
        )
    return sides[1], sides[0]


def _form_notes(headers: list[tuple[str, int, int]], form: Form) -> list[str]:
    notes = []
    if form.resized:
        sizes = Counter((width, height) for _, width, height in headers)
        (width, height), _ = sizes.most_common(1)[0]
        came = f"{width}x{height}" if len(sizes) == 1 else f"{len(sizes):,} sizes, most often {width}x{height},"
        notes.append(
            f"images of {came} are resized to {form.width}x{form.height}, the longer side cropped at both ends; choose"
            " another size with image_size (--image-size 64)"
        )
    converted = Counter(mode for mode, _, _ in headers if mode != ("L" if form.channels == 1 else "RGB"))
    for mode, count in sorted(converted.items()):
        target = "grey" if form.channels == 1 else "RGB"
        ground = ", transparent parts as white" if mode in TRANSPARENT else ""
        notes.append(f"{count:,} images of mode {mode} are converted to {target}{ground}")
    return notes


def read_images_alike(
    files: list[Path], shape: tuple[int, ...], progress: Progress
) -> tuple[np.ndarray, tuple[str, ...]]:
    """uint8 (n, *shape), resized where they are of another size, and notes on that."""
    channels, height, width = shape
    others = sum(_read_header(file)[1:] != (width, height) for file in files)
    notes = (f"{others:,} images of other sizes are resized to {width}x{height}, as in training",) if others else ()
    return _read_images(files, Form(channels, height, width, resized=others > 0), progress), notes


def _read_images(files: list[Path], form: Form, progress: Progress) -> np.ndarray:
    """uint8 (n, channels, height, width)."""
    images = np.empty((len(files), form.channels, form.height, form.width), dtype=np.uint8)
    with closing(progress):
        for i, file in enumerate(files):
            images[i] = _read_image(file, form)
            progress.update(i + 1, len(files), "images read")
    return images


def _read_header(file: Path) -> tuple[str, int, int]:
    """Mode, width and height, as the image is seen."""
    with _opened(file) as image:
        width, height = image.size
        turned = image.getexif().get(ORIENTATION) in TURNED
        mode = "LA" if image.mode == "L" and "transparency" in image.info else image.mode
        return (mode, height, width) if turned else (mode, width, height)


def _read_image(file: Path, form: Form) -> np.ndarray:
    """uint8 (channels, height, width)."""
    with _opened(file) as image:
        if form.resized:
            side = DRAFT * max(form.height, form.width)
            image.draft(None, (side, side))  # a large JPEG is decoded at a fraction of its size; others are not touched
        seen = _converted(ImageOps.exif_transpose(image), form.channels)
        if seen.size != (form.width, form.height):
            seen = ImageOps.fit(seen, (form.width, form.height), method=Image.Resampling.LANCZOS)
        pixels = np.asarray(seen)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _converted(image: Image.Image, channels: int) -> Image.Image:
    """Grey or RGB; what is transparent is white."""
    mode = "L" if channels == 1 else "RGB"
    if image.mode == mode and "transparency" not in image.info:
        return image
    if image.mode in TRANSPARENT or "transparency" in image.info:
        over = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", over.size, "white"), over)
    return image.convert(mode)


@contextmanager
def _opened(file: Path) -> Iterator[Image.Image]:
    """An image file; one that is damaged, of too many pixels or of a mode that has no bytes is refused."""
    try:
        with warnings.catch_warnings():
            # Pillow only warns of an image large enough to be an attack; twice that size it refuses.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as image:
                if image.mode not in CHANNELS:
                    raise DataError(
                        f"{file}: images must have 8 bits a channel, but it is of mode {image.mode}: convert it to"
                        " grey or RGB"
                    )
                yield image
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise DataError(f"{file} claims more than {Image.MAX_IMAGE_PIXELS:,} pixels, which is refused") from None
    except DataError:
        raise
    except Exception as error:  # Pillow's readers raise a dozen kinds for a damaged file
        raise DataError(
            f"{file} cannot be read as an image ({brief(error)}): it may be cut short, replace it"
        ) from None

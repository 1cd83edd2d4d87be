"""Folders of images; their layout is described in `formats.folder`.

Images that share one size of at most 32 x 32 keep it. All others are resized to 32 x 32, or to `image_size`: an image
is scaled until it covers that size, and the rest of its longer side is cropped at both ends.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from synthsieve.data.checks import check, reading
from synthsieve.data.dataset import Dataset, Kind, Request
from synthsieve.data.formats.folder import folder_dataset, list_parts
from synthsieve.errors import DataError
from synthsieve.io.progress import Progress

# Whatever a file's name says, only these formats are tried: Pillow knows more, and hands some to other programs.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
# Modes of Pillow: how many channels their images get. Those of 16 or more bits have no known range.
CHANNELS = {"L": 1, "1": 1, "LA": 1, "La": 1, "RGB": 3, "RGBA": 3, "RGBa": 3, "P": 3, "PA": 3, "CMYK": 3, "YCbCr": 3}
TRANSPARENT = ("LA", "La", "RGBA", "RGBa", "PA")
DEFAULT_SIDE = 32
MAX_SIDE = 512  # of resized images
SIZE = re.compile(r"\s*(\d+)\s*(?:[x×,]\s*(\d+)\s*)?")
TURNED = (5, 6, 7, 8)  # EXIF orientations that swap width and height
ORIENTATION = 0x0112  # the EXIF tag
DRAFT = 2  # a JPEG is decoded at no more than it takes to have this many times the pixels that are wanted


@dataclass(frozen=True)
class ImageShape:
    """What every image becomes: its channels (1 or 3) and its size; `resized` if some images had another size."""

    channels: int
    height: int
    width: int
    resized: bool


def load_image_folder(request: Request) -> Dataset:
    """Images uint8 (n, channels, height, width) in order of folder and file name."""
    root = request.path
    listings, notes = list_parts(root, "images")
    headers = [_read_header(file) for file in listings["train"].files]
    form = _choose_form(headers, request.image_size)
    notes += _form_notes(headers, form)
    return folder_dataset(root, Kind.IMAGE, listings, lambda files: _read_images(files, form, request.progress), notes)


def _choose_form(headers: list[tuple[str, int, int]], image_size: str | None) -> ImageShape:
    """What images of these (mode, width, height) become."""
    channels = max(CHANNELS[mode] for mode, _, _ in headers)
    sizes = {(height, width) for _, width, height in headers}
    if image_size is not None:
        height, width = read_image_size(image_size)
    elif len(sizes) == 1 and max(next(iter(sizes))) <= DEFAULT_SIDE:
        height, width = next(iter(sizes))
    else:
        height = width = DEFAULT_SIDE
    return ImageShape(channels, height, width, resized=sizes != {(height, width)})


def read_image_size(given: str) -> tuple[int, int]:
    """(height, width) of a size such as "64" or "64x48", width first."""
    found = SIZE.fullmatch(given)
    width, height = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    valid = min(width, height) >= 1 and max(width, height) <= MAX_SIDE
    expected = f"64, 64x48 or the like, from 1 to {MAX_SIDE} pixels"
    check(valid, f"image_size must be {expected}, got {given!r}", "image-size")
    return height, width


def _form_notes(headers: list[tuple[str, int, int]], form: ImageShape) -> list[str]:
    notes = []
    if form.resized:
        sizes = Counter((width, height) for _, width, height in headers)
        (width, height), _ = sizes.most_common(1)[0]
        got = f"{width}x{height}" if len(sizes) == 1 else f"{len(sizes):,} sizes, most often {width}x{height},"
        notes.append(
            f"images of {got} are resized to {form.width}x{form.height}, the longer side cropped at both ends; choose"
            " another size with image_size (--image-size 64)"
        )
    converted = Counter(mode for mode, _, _ in headers if mode != ("L" if form.channels == 1 else "RGB"))
    for mode, count in sorted(converted.items()):
        target = "grey" if form.channels == 1 else "RGB"
        ground = ", transparent parts as white" if mode in TRANSPARENT else ""
        notes.append(f"{count:,} images of mode {mode} are converted to {target}{ground}")
    return notes


def read_images_like(
    files: list[Path], shape: tuple[int, ...], progress: Progress
) -> tuple[np.ndarray, tuple[str, ...]]:
    """uint8 (n, *shape), resized where they are of another size, and notes on that."""
    channels, height, width = shape
    others = sum(_read_header(file)[1:] != (width, height) for file in files)
    notes = (f"{others:,} images of other sizes are resized to {width}x{height}, as in training",) if others else ()
    return _read_images(files, ImageShape(channels, height, width, resized=others > 0), progress), notes


def _read_images(files: list[Path], form: ImageShape, progress: Progress) -> np.ndarray:
    """uint8 (n, channels, height, width)."""
    images = np.empty((len(files), form.channels, form.height, form.width), dtype=np.uint8)
    with closing(progress):
        for i, file in enumerate(files):
            images[i] = _read_image(file, form)
            progress.update(i + 1, len(files), "images read")
    return images


def _read_header(file: Path) -> tuple[str, int, int]:
    """Mode, width and height, as the image is shown."""
    with _open_image(file) as image:
        width, height = image.size
        turned = image.getexif().get(ORIENTATION) in TURNED
        mode = "LA" if image.mode == "L" and "transparency" in image.info else image.mode
        return (mode, height, width) if turned else (mode, width, height)


def _read_image(file: Path, form: ImageShape) -> np.ndarray:
    """uint8 (channels, height, width)."""
    with _open_image(file) as image:
        if form.resized:
            side = DRAFT * max(form.height, form.width)
            image.draft(None, (side, side))  # a large JPEG is decoded at a fraction of its size; others are not touched
        shown = _converted(ImageOps.exif_transpose(image), form.channels)
        if shown.size != (form.width, form.height):
            shown = ImageOps.fit(shown, (form.width, form.height), method=Image.Resampling.LANCZOS)
        pixels = np.asarray(shown)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _converted(image: Image.Image, channels: int) -> Image.Image:
    """Grey or RGB; what is transparent is white."""
    mode = "L" if channels == 1 else "RGB"
    if image.mode == mode and "transparency" not in image.info:
        return image
    if image.mode in TRANSPARENT or "transparency" in image.info:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image.convert(mode)


@contextmanager
def _open_image(file: Path) -> Iterator[Image.Image]:
    """An image file; one that is damaged, of too many pixels or of a mode without bytes is refused."""
    with reading(file, "an image"), warnings.catch_warnings():
        # Pillow only warns of an image large enough to be an attack; twice that size it refuses.
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(file, formats=FORMATS) as image:
                mode = image.mode
                check(mode in CHANNELS, f"{file} is of mode {mode}: convert it to 8-bit grey or RGB", "image-mode")
                yield image
        except (Image.DecompressionBombWarning, Image.DecompressionBombError):
            problem = f"{file} claims more than {Image.MAX_IMAGE_PIXELS:,} pixels, which is refused"
            raise DataError(problem, code="image-too-large") from None

"""A folder of images: a folder for each class, and one named `unlabeled` or `unlabelled` for the rest.

Where the folder holds `train` and `test`, each laid out like that, `test` is the test set.
"""

from __future__ import annotations

import warnings
from contextlib import closing
from pathlib import Path

import numpy as np
from PIL import Image

from synthsieve.data.dataset import UNLABELED, Dataset, Examples, Kind
from synthsieve.data.labels import Labels, read_labels
from synthsieve.data.reasons import brief
from synthsieve.data.sources import Request
from synthsieve.errors import DataError
from synthsieve.progress import Progress

UNLABELED_FOLDERS = ("unlabeled", "unlabelled")
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
# Whatever a file's name says, only these are looked for in it: Pillow knows more, and hands some to other programs.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
MODES = {"L": 1, "RGB": 3}


def load_image_folder(request: Request) -> Dataset:
    """Images uint8 (n, channels, height, width) in order of folder and file name."""
    root = request.path
    train_root = root / "train" if _has_folders(root / "train") else root
    files, names, passed_over = _list_images(train_root)
    labels = _labels(names, train_root)
    x = read_images(files, None, request.progress)
    test = None
    if train_root != root and _has_folders(root / "test"):
        test_files, test_names, _ = _list_images(root / "test")
        test_labels = _labels(test_names, root / "test", labels.classes)
        test = Examples(read_images(test_files, x.shape[1:], request.progress), test_labels.y)
    notes = (f"{passed_over} files that are not images were passed over",) if passed_over else ()
    return Dataset(root.resolve().name, Kind.IMAGE, labels.classes, Examples(x, labels.y), test, notes=notes)


def _has_folders(folder: Path) -> bool:
    return folder.is_dir() and any(child.is_dir() for child in folder.iterdir())


def _list_images(root: Path) -> tuple[list[Path], list[str], int]:
    """Image files, the folder each lies in, and how many other files were passed over."""
    files: list[Path] = []
    names: list[str] = []
    passed_over = 0
    for folder in sorted(child for child in root.iterdir() if child.is_dir() and not child.name.startswith(".")):
        inside = sorted(f for f in folder.iterdir() if f.is_file() and not f.name.startswith("."))
        images = [f for f in inside if f.suffix.lower() in SUFFIXES]
        if not images and folder.name not in UNLABELED_FOLDERS:
            raise DataError(f"{folder} must hold images of one class, but holds none: fill or remove it")
        files += images
        names += [folder.name] * len(images)
        passed_over += len(inside) - len(images)
    if not files:
        raise DataError(f"{root} must hold a folder of images for each class, but holds no images in folders")
    return files, names, passed_over


def _labels(names: list[str], root: Path, classes: tuple[str, ...] | None = None) -> Labels:
    known = np.array(["" if name in UNLABELED_FOLDERS else name for name in names], dtype=str)
    if str(UNLABELED) in known:
        raise DataError(f"{root / str(UNLABELED)} could mean unlabelled or a class: name it unlabeled, or otherwise")
    return read_labels(known, origin=root.name, classes=classes)


def read_images(files: list[Path], shape: tuple[int, ...] | None, progress: Progress) -> np.ndarray:
    """uint8 (n, channels, height, width); all must look like the first, or like `shape`."""
    images: np.ndarray | None = None
    with closing(progress):
        for i, file in enumerate(files):
            image = _read_image(file)
            shape = shape or image.shape
            if image.shape != shape:
                raise DataError(
                    f"all images must look alike, {_words(shape)}, but {file} is {_words(image.shape)}:"
                    " resize or convert it"
                )
            if images is None:
                images = np.empty((len(files), *shape), dtype=np.uint8)
            images[i] = image
            progress.update(i + 1, len(files), "images read")
    assert images is not None  # `files` is never empty
    return images


def _read_image(file: Path) -> np.ndarray:
    """uint8 (channels, height, width); a damaged file, one of too many pixels or of another mode is refused."""
    try:
        with warnings.catch_warnings():
            # Pillow only warns of an image large enough to be an attack; twice that size it refuses.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=FORMATS) as image:
                if image.mode not in MODES:
                    raise DataError(f"{file}: images must be grey (L) or RGB, but it is {image.mode}: convert it")
                pixels = np.asarray(image)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise DataError(f"{file} claims more than {Image.MAX_IMAGE_PIXELS:,} pixels, which is refused") from None
    except DataError:
        raise
    except Exception as error:  # Pillow's readers raise a dozen kinds for a damaged file
        raise DataError(
            f"{file} cannot be read as an image ({brief(error)}): it may be cut short, replace it"
        ) from None
    return pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _words(shape: tuple[int, ...]) -> str:
    channels, height, width = shape
    return f"{width}x{height} {'grey' if channels == 1 else 'RGB'}"

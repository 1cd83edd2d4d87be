"""Images as one PNG."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthsieve.files import written_atomically


def write_image_grid(path: Path, rows: list[np.ndarray], scale: int | None = None) -> None:
    """Images uint8 (n, channels, height, width), a list of them a row, as one PNG with a pixel between them."""
    from PIL import Image

    channels, height, width = rows[0].shape[1:]
    scale = scale or max(1, 32 // height)
    columns = max(len(row) for row in rows)
    sheet = np.full((channels, len(rows) * (height + 1) + 1, columns * (width + 1) + 1), 255, dtype=np.uint8)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            top, left = 1 + i * (height + 1), 1 + j * (width + 1)
            sheet[:, top : top + height, left : left + width] = image
    picture = Image.fromarray(sheet[0] if channels == 1 else sheet.transpose(1, 2, 0))
    picture = picture.resize((picture.width * scale, picture.height * scale), Image.Resampling.NEAREST)
    with written_atomically(path) as partial:
        picture.save(partial, format="PNG")

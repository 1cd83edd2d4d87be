"""What a data URI holds."""

import base64
import io

import numpy as np
from PIL import Image


def bytes_of(uri):
    return base64.b64decode(uri.partition(",")[2], validate=True)


def pixels_of(uri):
    """(height, width) or (height, width, 3)"""
    assert uri.startswith("data:image/png;base64,")
    return np.asarray(Image.open(io.BytesIO(bytes_of(uri))))

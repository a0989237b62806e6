"""Images that a program reads and writes with stb_image."""

from __future__ import annotations

import zlib

import numpy as np

from tilewise.emulator.host.image_formats import PictureError, bmp, decoded, png, with_channels
from tilewise.emulator.host.runtime.c_memory import readable, string, writable
from tilewise.emulator.host.runtime.program_files import opened, put
from tilewise.emulator.host.runtime.session import Session, runtime

PNG, BMP, OTHER = 0, 1, 2


@runtime("__image_open")
def image_open(s: Session, name: int, width: int, height: int, channels: int) -> int:
    """Read the file and store its sizes; 0 if it cannot be read."""
    text = string(s, name).decode("utf-8", "replace")
    handle = opened(s, text, "r")
    if handle is None:
        s.state["image reason"] = "can't fopen"
        return 0
    with handle:
        data = handle.read()
    try:
        picture = decoded(data)
    except (PictureError, ValueError, zlib.error) as error:
        s.state["image reason"] = str(error)
        note = f"line {s.line}: {text} was not read: {error}"
        if note not in s.faults.notes:
            s.faults.notes.append(note)
        return 0
    s.state["image"] = picture
    for address, value in zip((width, height, channels), (picture.shape[1], *picture.shape[::2]), strict=True):
        if address and writable(s, address, 4):
            s.memory.put(address, int(value).to_bytes(4, "little"))
    return 1


@runtime("__image_take")
def image_take(s: Session, to: int, channels: int, flip: int) -> None:
    picture = with_channels(s.state["image"], min(4, max(1, channels)))
    data = np.ascontiguousarray(picture[::-1] if flip else picture).tobytes()
    if writable(s, to, len(data)):
        s.memory.put(to, data)


@runtime("__image_reason")
def image_reason(s: Session) -> int:
    return s.memory.constant(str(s.state.get("image reason", "")).encode() + b"\0")


@runtime("__image_write")
def image_write(
    s: Session, name: int, width: int, height: int, channels: int, data: int, stride: int, kind: int, flip: int
) -> int:  # fmt: skip
    row = width * channels
    stride = stride if kind == PNG and stride else row
    if width <= 0 or height <= 0 or not 1 <= channels <= 4 or not readable(s, data, stride * (height - 1) + row):
        return 0
    flat = s.memory.view(data, stride * (height - 1) + row)
    rows = np.lib.stride_tricks.as_strided(flat, (height, row), (stride, 1))
    picture = rows.reshape(height, width, channels)
    text = string(s, name).decode("utf-8", "replace")
    handle = opened(s, text, "w")
    if handle is None:
        return 0
    if kind == OTHER:
        s.faults.notes.append(f"line {s.line}: {text} holds a PNG: other formats are not written here")
    content = (bmp if kind == BMP else png)(picture[::-1] if flip else picture)
    with handle:
        put(s, handle, content)
    return 1

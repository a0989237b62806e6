"""Decoding and encoding of images: PNG, PNM and BMP files, arrays of rows, columns and channels."""

from __future__ import annotations

import re
import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by PNG colour type
MAX_BYTES = 1 << 28  # of an image


class PictureError(ValueError):
    """An image that cannot be decoded."""


def decoded(data: bytes) -> np.ndarray:
    if data.startswith(SIGNATURE):
        return _png(data)
    if data[:2] in (b"P2", b"P3", b"P5", b"P6"):
        return _pnm(data)
    if data.startswith(b"BM"):
        return _bmp(data)
    if data.startswith(b"\xff\xd8"):
        raise PictureError("JPEG is not read here: convert it to PNG, PPM or BMP")
    raise PictureError("unknown image type")


def _checked(width: int, height: int, channels: int) -> None:
    if not 0 < width * height * channels <= MAX_BYTES:
        raise PictureError("bad dimensions")


def _png(data: bytes) -> np.ndarray:
    at, packed, palette, head = 8, b"", np.zeros((0, 3), np.uint8), b""
    while at + 8 <= len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + size]
        if kind == b"IHDR":
            head = body
        elif kind == b"PLTE":
            palette = np.frombuffer(body[: len(body) // 3 * 3], np.uint8).reshape(-1, 3)
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    if len(head) < 13:
        raise PictureError("a PNG without its head")
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head[:13])
    if bits != 8 or interlaced or colour not in CHANNELS:
        raise PictureError("only PNGs of 8 bits a channel that are not interlaced are read")
    channels = CHANNELS[colour]
    _checked(width, height, channels)
    raw = zlib.decompressobj().decompress(packed, height * (width * channels + 1))
    if len(raw) < height * (width * channels + 1):
        raise PictureError("a PNG that ends early")
    rows = np.frombuffer(raw, np.uint8).reshape(height, width * channels + 1)
    out = _unfiltered(rows, channels).reshape(height, width, channels)
    if colour != 3:
        return out
    if out.max(initial=0) >= len(palette):
        raise PictureError("a colour that is not in the palette")
    coloured: np.ndarray = palette[out[:, :, 0]]
    return coloured


def _unfiltered(rows: np.ndarray, step: int) -> np.ndarray:
    """Undo PNG's row filters."""
    out = np.zeros((len(rows), rows.shape[1] - 1), np.uint8)
    above = np.zeros(rows.shape[1] - 1, np.uint8)
    for i, row in enumerate(rows):
        kind, line = int(row[0]), row[1:].copy()
        if kind == 2:
            line += above
        elif kind == 1:
            line = np.add.accumulate(line.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
        elif kind in (3, 4):
            line = _average_or_paeth(line.tolist(), above.tolist(), step, kind)
        elif kind:
            raise PictureError("an unknown filter")
        out[i] = above = line
    return out


def _average_or_paeth(line: list[int], above: list[int], step: int, kind: int) -> np.ndarray:
    for i in range(len(line)):
        a = line[i - step] if i >= step else 0
        b, c = above[i], above[i - step] if i >= step else 0
        if kind == 3:
            guess = (a + b) // 2
        else:
            p = a + b - c
            guess = min((a, b, c), key=lambda v: abs(p - v))  # Paeth: the first of equals
        line[i] = (line[i] + guess) & 255
    return np.array(line, np.uint8)


def _pnm(data: bytes) -> np.ndarray:
    found = re.match(rb"P[2356]((?:\s|#[^\n]*\n)+\d+){3}\s", data)
    if found is None:
        raise PictureError("a PNM without its head")
    width, height, most = (int(n) for n in re.sub(rb"#[^\n]*\n", b" ", found[0])[2:].split())
    channels = 3 if data[1:2] in b"36" else 1
    _checked(width, height, channels)
    if not 0 < most < 256:
        raise PictureError("only PNMs of 8 bits are read")
    count = width * height * channels
    if data[1:2] in b"56":
        values = np.frombuffer(data[found.end() :][:count], np.uint8)
    else:
        values = np.array(data[found.end() :].split()[:count], dtype=np.int64).astype(np.uint8)
    if values.size < count:
        raise PictureError("a PNM that ends early")
    return values.reshape(height, width, channels)


def _bmp(data: bytes) -> np.ndarray:
    if len(data) < 54:
        raise PictureError("a BMP without its head")
    start, _, width, height, _, bits = struct.unpack("<IIiiHH", data[10:30])
    if bits not in (24, 32) or width <= 0 or height == 0:
        raise PictureError("only BMPs of 24 or 32 bits are read")
    channels, row = bits // 8, -(-width * bits // 32) * 4
    _checked(width, abs(height), channels)
    if len(data) < start + row * abs(height):
        raise PictureError("a BMP that ends early")
    rows = np.frombuffer(data, np.uint8, row * abs(height), start).reshape(abs(height), row)
    picture = rows[:, : width * channels].reshape(abs(height), width, channels)[:, :, [2, 1, 0, 3][:channels]]
    return picture[::-1] if height > 0 else picture


def with_channels(picture: np.ndarray, wanted: int) -> np.ndarray:
    """Convert between grey and colour, with or without alpha, as stb_image does."""
    have = picture.shape[2]
    alpha = picture[:, :, have - 1 :] if have in (2, 4) else np.full((*picture.shape[:2], 1), 255, np.uint8)
    colour = picture[:, :, :3] if have > 2 else picture[:, :, :1]
    if wanted > 2 and have < 3:
        colour = np.repeat(colour, 3, axis=2)
    elif wanted < 3 <= have:
        weights = np.array([77, 150, 29], np.int64)
        colour = ((colour.astype(np.int64) @ weights) >> 8).astype(np.uint8)[:, :, None]
    return np.concatenate([colour, alpha], axis=2) if wanted in (2, 4) else colour


def png(picture: np.ndarray) -> bytes:
    height, width, channels = picture.shape

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + chunk(b"IEND", b"")


def bmp(picture: np.ndarray) -> bytes:
    height, width, _ = picture.shape
    rows = with_channels(picture, 3)[::-1, :, ::-1].reshape(height, -1)
    body = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4))).tobytes()
    head = struct.pack("<2sIHHI", b"BM", 54 + len(body), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(body), 0, 0, 0, 0) + body

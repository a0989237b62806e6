"""Images through stb_image: written and read back; PNG filters."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from seeds import next_seed
from tilewise.emulator.host.image_formats import SIGNATURE, PictureError, bmp, decoded, png, with_channels
from tilewise.emulator.host.process import run_program

PROGRAM = r"""
#define STB_IMAGE_IMPLEMENTATION
#include "stb_image.h"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include "../stb/stb_image_write.h"
#include <stdio.h>
__global__ void invert(unsigned char* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = 255 - p[i]; }
int main() {
  int w, h, c; unsigned char* p = stbi_load("in.ppm", &w, &h, &c, 0); if (!p) { printf("%s\n", stbi_failure_reason()); return 1; }
  printf("%d %d %d %d %d\n", w, h, c, p[0], p[w * h * c - 1]);
  unsigned char* d; cudaMalloc(&d, w * h * c); cudaMemcpy(d, p, w * h * c, cudaMemcpyHostToDevice); invert<<<(w * h * c + 31) / 32, 32>>>(d, w * h * c); cudaMemcpy(p, d, w * h * c, cudaMemcpyDeviceToHost); cudaFree(d);
  stbi_write_png("out.png", w, h, c, p, w * c); stbi_write_bmp("out.bmp", w, h, c, p); stbi_write_jpg("out.jpg", w, h, c, p, 90); stbi_image_free(p);
  const char* names[] = {"out.png", "out.bmp", "out.jpg", "none.png"};
  for (const char* n : names) { unsigned char* q = stbi_load(n, &w, &h, &c, 1); if (!q) { printf("%s: %s\n", n, stbi_failure_reason()); continue; } printf("%s %d %d %d %d %d\n", n, w, h, c, q[0], q[w * h - 1]); stbi_image_free(q); }
  return 0;
}
"""


def test_a_program_loads_inverts_and_writes_an_image(tmp_path):
    (tmp_path / "p.cu").write_text(PROGRAM)
    (tmp_path / "in.ppm").write_bytes(b"P6\n# x\n5 3\n255\n" + bytes(range(45)))
    report = run_program(tmp_path / "p.cu", capture=True)
    grey = [(77 * (255 - a) + 150 * (254 - a) + 29 * (253 - a)) >> 8 for a in (0, 42)]
    same = "".join(f"out.{n} 5 3 3 {grey[0]} {grey[1]}\n" for n in ("png", "bmp", "jpg"))
    assert report.output == f"5 3 3 0 44\n{same}none.png: can't fopen\n", report.message
    assert report.faults == []
    assert "out.jpg holds a PNG" in report.notes[-1]


def filtered(row, above, step, kind):
    """A row, encoded with a PNG filter."""
    a = np.concatenate([np.zeros(step, int), row[:-step]]) if step < len(row) else np.zeros(len(row), int)
    c = np.concatenate([np.zeros(step, int), above[:-step]]) if step < len(row) else np.zeros(len(row), int)
    p = a + above - c
    near = [np.abs(p - v) for v in (a, above, c)]
    paeth = np.where((near[0] <= near[1]) & (near[0] <= near[2]), a, np.where(near[1] <= near[2], above, c))
    guess = (np.zeros(len(row), int), a, above, (a + above) // 2, paeth)[kind]
    return bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes()


def test_filters_of_a_png_are_undone():
    seed = next_seed() % (1 << 32)
    draw = np.random.default_rng(seed)
    for channels, colour in ((1, 0), (2, 4), (3, 2), (4, 6)):
        height, width = draw.integers(1, 20, 2)
        picture = draw.integers(0, 256, (height, width, channels))
        rows = picture.reshape(height, -1)
        above = np.vstack([np.zeros(rows.shape[1], int), rows])
        raw = b"".join(filtered(r, above[i], channels, int(draw.integers(0, 5))) for i, r in enumerate(rows))
        head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
        chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(raw)[:9]), (b"IDAT", zlib.compress(raw)[9:]), (b"IEND", b"")]
        data = SIGNATURE + b"".join(struct.pack(">I", len(b)) + k + b + b"crc!" for k, b in chunks)
        assert (decoded(data) == picture).all(), f"seed {seed}, {channels} channels"
        made = picture.astype(np.uint8)
        assert (decoded(png(made)) == made).all(), f"seed {seed}"
        assert (decoded(bmp(made)) == with_channels(made, 3)).all(), f"seed {seed}"


@pytest.mark.parametrize("data", [b"", b"P6\n9 9\n255\n", b"BM", SIGNATURE, b"\xff\xd8\xff", b"P5 0 0 255\n"])
def test_other_files_are_refused_with_a_message(data):
    with pytest.raises(PictureError):
        decoded(data)

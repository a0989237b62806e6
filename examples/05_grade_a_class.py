"""Grade a class with no GPU: an assignment, three submissions, and the reasons for their points."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tilewise.teaching.course import grade_text, read_assignment
from tilewise.teaching.course.reports import item_name, sentence

ASSIGNMENT = """
title = "Tiled product"
shapes = ["4x4x4", "5x7x6"]
tile = 2

[points]
product = 4
faults = 3
traffic = 3
"""
RIGHT = """
#define TILE_WIDTH 2
__global__ void product(float* M, float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE_WIDTH][TILE_WIDTH], Ns[TILE_WIDTH][TILE_WIDTH];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE_WIDTH + ty, col = blockIdx.x * TILE_WIDTH + tx;
    float sum = 0;
    for (int p = 0; p < (k - 1) / TILE_WIDTH + 1; ++p) {
        Ms[ty][tx] = row < m && p * TILE_WIDTH + tx < k ? M[row * k + p * TILE_WIDTH + tx] : 0;
        Ns[ty][tx] = p * TILE_WIDTH + ty < k && col < n ? N[(p * TILE_WIDTH + ty) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) sum += Ms[ty][i] * Ns[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
"""
CLASS = {
    "an": RIGHT,
    "binh": RIGHT.replace("__syncthreads();", "", 1),  # a race
    "chi": RIGHT.replace("= sum;", "= 30;"),  # the answer of one run, hard-coded
}

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "a.toml"
    file.write_text(ASSIGNMENT, encoding="utf-8")
    assignment = read_assignment(file)
grades = {name: grade_text(text, assignment, seed=7, name=name) for name, text in CLASS.items()}
for name, grade in grades.items():
    print(f"{name}: {grade.points:g} of {grade.most:g}")
    for item in grade.items:
        if item.why:
            print(f"  {item_name(item.name, 'en')}: {sentence(item, grade, 'en')}")
assert [grade.points for grade in grades.values()] == [10, 7, 3]

"""Twelve assignments of different kinds, each with at least forty submissions whose marks are written here.

A submission is a right program, or one with a single fault, in one of four styles: one file, other names and layout,
the kernels in a header beside main.cu, and two sources in an archive. The style changes no mark.
`python tests/support/course_assignments.py` grades them all and prints every mark that is not as written.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

HOST = """
// main
int main(int argc, char** argv)
{
    int n = atoi(argv[1]);
    unsigned s = atoi(argv[2]);
    int size = @SIZE@, results = @RESULTS@;
    float *in = (float*)malloc(size * sizeof(float)), *out = (float*)malloc(results * sizeof(float));
    for (int i = 0; i < size; ++i) {
        s = s * 1664525u + 1013904223u;
        in[i] = @VALUE@;
    }
    float *din, *dout;
    cudaMalloc((void**)&din, size * sizeof(float));
    cudaMalloc((void**)&dout, results * sizeof(float));
    cudaMemcpy(din, in, size * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(dout, 0, results * sizeof(float));
    @LAUNCH@
    cudaMemcpy(out, dout, results * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < results; ++i)
        printf("%g\\n", out[i]);
    cudaFree(din);
    cudaFree(dout);
    free(in);
    free(out);
    return 0;
}
"""
HEAD = "#include <cstdio>\n#include <cstdlib>\n"
POINTS = {"faults": 2.0, "kernels": 1.0, "leak": 1.0, "small": 2.0, "large": 4.0}
WRONG = {"small": 0.0, "large": 0.0}
RULES = """
title = "{title}"
kernels = {kernels}
seconds = 3
[points]
faults = 2
kernels = 1
leak = 1
[[test]]
name = "small"
points = 2
arguments = ["{small}", "{{seed}}"]
reference = "solution.cu"
tolerance = 1e-5
[[test]]
name = "large"
points = 4
arguments = ["{large}", "{{seed}}"]
reference = "solution.cu"
tolerance = 1e-5
"""

Files = dict[str, bytes]
Edit = tuple[str, str]


@dataclass(frozen=True)
class Course:
    """An assignment's files, its solution, and the variants of it with what they lose."""

    name: str
    files: Files
    solution: str
    full: dict[str, float]
    variants: dict[str, tuple[tuple[Edit, ...], dict[str, float]]]
    name_of_file: str = "main.cu"
    styles: tuple[str, ...] = ("plain", "renamed", "header", "archive")
    status: dict[str, str] = field(default_factory=dict)  # of a variant that is not graded

    def submissions(self) -> Iterator[tuple[str, str, Files, dict[str, float]]]:
        """Variant, style, files, marks."""
        for variant, (edits, lost) in self.variants.items():
            text = self.solution
            for old, new in edits:
                assert old in text, f"{self.name}, {variant}: {old!r} is not in the solution"
                text = text.replace(old, new, 1)
            nothing = dict.fromkeys(self.full, 0.0) if variant in self.status else {}
            for style in self.styles:
                yield variant, style, STYLES[style](text, self.name_of_file), self.full | lost | nothing


def one_file(text: str, name: str) -> Files:
    return {name: text.encode()}


def renamed(text: str, name: str) -> Files:
    """Other names, tabs, CRLF and a comment: the same program."""
    names = {"in": "source", "out": "target", "i": "index_1", "s": "state", "size": "count_of"}
    for old, new in names.items():
        text = re.sub(rf"(?<![\w.\"%#]){old}\b(?![\"%])", new, text)
    return {name: ("// by a student\n" + text.replace("    ", "\t")).replace("\n", "\r\n").encode()}


def in_header(text: str, name: str) -> Files:
    kernels, _, main = text.partition("// main\n")
    if not main:
        return {"code/" + name: text.encode()}
    return {"kernels.cuh": ("#pragma once\n" + kernels).encode(), name: f'#include "kernels.cuh"\n{main}'.encode()}


def archived(text: str, name: str) -> Files:
    """A zip with a folder; where kernels and main are apart, in two sources and a header of declarations."""
    kernels, _, main = text.partition("// main\n")
    signatures = re.findall(r"__global__ void \w+\([^)]*\)", kernels)
    parts = {name: text}
    plain = "__constant__" not in text and "#define" not in text and "template" not in text and "struct" not in text
    if main and signatures and plain:
        declared = HEAD + "".join(f"{one};\n" for one in signatures)
        parts = {"kernels.h": declared, "kernels.cu": kernels, name: f'#include "kernels.h"\n{main}'}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, part in parts.items():
            archive.writestr(f"work/{path}", part)
    return {"work.zip": out.getvalue()}


STYLES: dict[str, Callable[[str, str], Files]] = {
    "plain": one_file, "renamed": renamed, "header": in_header, "archive": archived,
}  # fmt: skip


def course(
    name: str, kernel: str, launch: str, *, right: Edit, wrong: Edit, edge: tuple[Edit, dict[str, float]],
    kernels: str, results: str = "n", size: str = "n", value: str = "(float)(s >> 28)", small: int = 50,
    large: int = 700,
) -> Course:  # fmt: skip
    """A program around one array in and one out, and the faults that each such program may have."""
    host = HOST
    for key, text in (("SIZE", size), ("RESULTS", results), ("VALUE", value), ("LAUNCH", launch)):
        host = host.replace(f"@{key}@", text)
    solution = HEAD + kernel.strip("\n") + "\n" + host
    rules = RULES.format(title=name, kernels=f'["{kernels}"]', small=small, large=large)
    variants = {
        "right": ((), {}),
        "another-right": ((right,), {}),
        "wrong-sum": ((wrong,), WRONG),
        "edge": ((edge[0],), edge[1]),
        "not-launched": (((launch, ""),), WRONG | {"kernels": 0.0}),
        "status": ((("return 0;\n}", "return 1;\n}"),), WRONG),
        "syntax": ((("int n = atoi", "int n atoi"),), {}),
        "direction": ((("cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost"),), WRONG | {"faults": 0.0}),
        "bytes": ((("dout, results * sizeof(float), cuda", "dout, results, cuda"),), WRONG | {"faults": 0.0}),
        "leaky": ((("cudaFree(dout);", ""),), {"leak": 0.0}),
    }
    files = {"assignment.toml": rules.encode(), "solution.cu": solution.encode()}
    return Course(name, files, solution, POINTS, variants, status={"syntax": "refused"})


BOUND = {"faults": 0.0}


def courses() -> list[Course]:
    return [
        course(
            "vecAdd",
            """
__global__ void add(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] + in[n + i];
}
""",
            "add<<<(n + 63) / 64, 64>>>(din, dout, n);", kernels="add", size="2 * n",
            right=("if (i < n)", "for (; i < n; i += gridDim.x * blockDim.x)"), wrong=("in[i] + in", "in[i] - in"),
            edge=(("if (i < n)", "if (i <= n)"), BOUND),
        ),
        course(
            "reduction",
            """
__global__ void reduce(const float* in, float* out, int n)
{
    __shared__ float part[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    part[t] = i < n ? in[i] : 0;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half)
            part[t] += part[t + half];
    }
    if (t == 0)
        atomicAdd(out, part[0]);
}
""",
            "reduce<<<(n + 63) / 64, 64>>>(din, dout, n);", kernels="reduce", results="1",
            right=("half /= 2", "half >>= 1"), wrong=("half /= 2", "half /= 4"),
            edge=(("        __syncthreads();\n", ""), BOUND),
        ),
        course(
            "scan",
            """
__global__ void scan(const float* in, float* out, int n)
{
    __shared__ float sums[1024];
    int t = threadIdx.x;
    sums[t] = t < n ? in[t] : 0;
    __syncthreads();
    for (int step = 1; step < blockDim.x; step *= 2) {
        float before = t >= step ? sums[t - step] : 0;
        __syncthreads();
        sums[t] += before;
        __syncthreads();
    }
    if (t < n)
        out[t] = sums[t];
}
""",
            "scan<<<1, 1024>>>(din, dout, n);", kernels="scan", right=("step *= 2", "step += step"),
            wrong=("t >= step", "t > step"), edge=(("if (t < n)\n", "if (t <= n)\n"), BOUND), large=400,
        ),
        course(
            "histogram",
            """
__global__ void histogram(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&out[(int)in[i]], 1.0f);
}
""",
            "histogram<<<(n + 63) / 64, 64>>>(din, dout, n);", kernels="histogram", results="16",
            right=("&out[(int)in[i]]", "out + (int)in[i]"), wrong=("1.0f", "2.0f"),
            edge=(("atomicAdd(&out[(int)in[i]], 1.0f)", "atomicAdd(&out[(int)in[i] + 1], 1.0f)"), WRONG | BOUND),
        ),
        course(
            "transpose",
            """
__global__ void transpose(const float* in, float* out, int n)
{
    __shared__ float tile[8][9];
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < n && y < n)
        tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 8 + threadIdx.x;
    y = blockIdx.x * 8 + threadIdx.y;
    if (x < n && y < n)
        out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
""",
            "transpose<<<dim3((n + 7) / 8, (n + 7) / 8), dim3(8, 8)>>>(din, dout, n);", kernels="transpose",
            results="n * n", size="n * n", small=5, large=19, right=("tile[8][9]", "tile[8][8]"),
            wrong=("= in[y * n + x];", "= in[y * n + x] + 1;"),
            edge=(("    __syncthreads();\n", ""), BOUND),
        ),
        course(
            "convolution",
            """
__constant__ float weights[5] = {1, 2, 3, 2, 1};
__global__ void convolve(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = -2; k <= 2; ++k)
        if (i + k >= 0 && i + k < n)
            sum += weights[k + 2] * in[i + k];
    if (i < n)
        out[i] = sum;
}
""",
            "convolve<<<(n + 31) / 32, 32>>>(din, dout, n);", kernels="convolve",
            right=("i + k >= 0 && i + k < n", "!(i + k < 0 || i + k > n - 1)"), wrong=("k <= 2", "k < 2"),
            edge=(("i + k >= 0 && i + k < n", "i + k >= 0 && i + k <= n"), BOUND | WRONG),  # what lies there is added
        ),
        course(
            "stencil",
            """
__global__ void relax(const float* in, float* out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    out[y * n + x] = 0.25f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] + in[(y + 1) * n + x]);
}
""",
            "relax<<<dim3((n + 7) / 8, (n + 7) / 8), dim3(8, 8)>>>(din, dout, n);", kernels="relax",
            results="n * n", size="n * n", small=6, large=20, right=("0.25f * (", "(1 / 4.0f) * ("),
            wrong=("(y - 1) * n", "(y + 1) * n"), edge=(("y >= n - 1)", "y >= n)"), BOUND | WRONG),
        ),
        course(
            "spmv",
            """
// four entries a row: columns (5 r + 3 j) % n, values from in; in[4 n ...] is the vector
__global__ void spmv(const float* in, float* out, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < n) {
        float sum = 0;
        for (int j = 0; j < 4; ++j)
            sum += in[4 * row + j] * in[4 * n + (5 * row + 3 * j) % n];
        out[row] = sum;
    }
}
""",
            "spmv<<<(n + 63) / 64, 64>>>(din, dout, n);", kernels="spmv", size="5 * n", large=300,
            right=("++j", "j += 1"), wrong=("j < 4", "j < 3"), edge=(("row < n)", "row < n + 1)"), BOUND),
        ),
        _streams(),
        _tiled(),
        _two_files(),
        _reading(),
    ]  # fmt: skip


def _streams() -> Course:
    made = course(
        "streams",
        """
__global__ void square(const float* in, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] * in[i];
}
""",
        """cudaStream_t one, two;
    cudaStreamCreate(&one);
    cudaStreamCreate(&two);
    int half = n / 2;
    cudaMemcpyAsync(din, in, half * sizeof(float), cudaMemcpyHostToDevice, one);
    cudaMemcpyAsync(din + half, in + half, (n - half) * sizeof(float), cudaMemcpyHostToDevice, two);
    square<<<(half + 63) / 64, 64, 0, one>>>(din, dout, half);
    square<<<(n - half + 63) / 64, 64, 0, two>>>(din + half, dout + half, n - half);
    cudaDeviceSynchronize();
    cudaStreamDestroy(one);
    cudaStreamDestroy(two);""",
        kernels="square", right=("in[i] * in[i]", "1 * in[i] * in[i]"), wrong=("in[i] * in[i]", "in[i] + in[i]"),
        edge=(("if (i < n)", "if (i <= n)"), {"faults": 0.0}),
    )  # fmt: skip
    rules = made.files["assignment.toml"].replace(b"[points]", b'required = ["cudaMemcpyAsync"]\n[points]\ncalls = 3')
    variants = dict(made.variants)
    edits, lost = variants["not-launched"]
    variants["not-launched"] = (edits, lost | {"calls": 0.0})
    variants["direction"] = (
        (("in, half * sizeof(float), cudaMemcpyHostToDevice", "in, half * sizeof(float), cudaMemcpyDeviceToHost"),),
        {"faults": 0.0},  # the first copy, of the whole array, was right
    )  # fmt: skip
    return Course(
        "streams", {**made.files, "assignment.toml": rules}, made.solution, {"calls": 3.0, **made.full}, variants,
        status=made.status,
    )  # fmt: skip


def _tiled() -> Course:
    from class_of_submissions import ASSIGNMENT, FULL, TILED
    from class_of_submissions import cases as of_kernels

    wanted = ("right", "no-tiles", "fake-tiles", "no-first-barrier", "phases-round-down", "int-sum", "swapped",
              "half-the-terms", "never-stored", "atomics")  # fmt: skip
    chosen = {c.name: c for c in of_kernels()}
    variants = {}
    for name in wanted:
        lost = {k: float(v) for k, v in chosen[name].wanted.items()}
        variants[name] = (((TILED, str(chosen[name].text)),), lost)
    full = {k: float(v) for k, v in FULL.items()}
    return Course("tiled", {"assignment.toml": ASSIGNMENT.encode()}, TILED, full, variants)


def _two_files() -> Course:
    """The lecturer's main with the student's kernel.cu."""
    kernel = """
#include "kernel.h"
__global__ void saxpy(float a, const float* x, float* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

void launch(float a, const float* x, float* y, int n)
{
    saxpy<<<(n + 31) / 32, 32>>>(a, x, y, n);
}
"""
    main = """
#include <cstdio>
#include <cstdlib>
#include "kernel.h"
int main(int argc, char** argv)
{
    int n = atoi(argv[1]);
    float *x, *y;
    cudaMallocManaged(&x, n * sizeof(float));
    cudaMallocManaged(&y, n * sizeof(float));
    for (int i = 0; i < n; ++i) { x[i] = i; y[i] = 1; }
    launch(2, x, y, n);
    cudaDeviceSynchronize();
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += y[i];
    printf("sum %g last %g\\n", sum, y[n - 1]);
    cudaFree(x);
    cudaFree(y);
    return 0;
}
"""
    rules = """
title = "two files"
provided = ["main.cu", "kernel.h"]
kernels = ["saxpy"]
seconds = 3
[points]
faults = 3
kernels = 1
[[test]]
name = "ten"
points = 2
arguments = ["10"]
expected = "sum 100 last 19"
[[test]]
name = "many"
points = 4
arguments = ["100"]
expected = "sum 10000 last 199"
"""
    lost = {"ten": 0.0, "many": 0.0}
    variants = {
        "right": ((), {}),
        "grid-stride": ((("if (i < n)", "for (; i < n; i += gridDim.x * blockDim.x)"),), {}),
        "own-main": (((kernel[-3:], kernel[-3:] + "int main() { return 3; }\n"),), {}),
        "edge": ((("if (i < n)", "if (i <= n)"),), {"faults": 0.0}),
        "minus": ((("+ y[i]", "- y[i]"),), lost),
        "one-block": ((("(n + 31) / 32", "1"),), {"many": 0.0}),
        "not-launched": ((("saxpy<<<(n + 31) / 32, 32>>>(a, x, y, n);", ""),), lost | {"kernels": 0.0}),
        "rounded-down": ((("(n + 31) / 32", "(n + 22) / 32"),), {"many": 0.0}),
        "syntax": ((("int i =", "int i"),), {}),
        "other-name": ((("void launch(", "void start("),), {}),
    }
    files = {
        "assignment.toml": rules,
        "main.cu": main,
        "kernel.h": "void launch(float a, const float* x, float* y, int n);\n",
    }
    return Course(
        "two-files", {name: text.encode() for name, text in files.items()}, kernel,
        {"faults": 3.0, "kernels": 1.0, "ten": 2.0, "many": 4.0}, variants, "kernel.cu",
        status={"syntax": "refused", "other-name": "refused"},
    )  # fmt: skip


def _reading() -> Course:
    """A whole program that reads one file and writes another."""
    solution = """
#include <cstdio>
#include <cstdlib>
#include <vector>
__global__ void brighten(const int* in, int* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = min(255, in[i] + 40);
}
// main
int main()
{
    FILE* file = fopen("image.bin", "rb");
    if (!file)
        return 2;
    int n;
    if (fread(&n, sizeof(int), 1, file) != 1)
        return 3;
    std::vector<int> in(n), out(n);
    if (fread(in.data(), sizeof(int), n, file) != n)
        return 4;
    fclose(file);
    int *din, *dout;
    cudaMalloc(&din, n * sizeof(int));
    cudaMalloc(&dout, n * sizeof(int));
    cudaMemcpy(din, in.data(), n * sizeof(int), cudaMemcpyHostToDevice);
    brighten<<<(n + 63) / 64, 64>>>(din, dout, n);
    cudaMemcpy(out.data(), dout, n * sizeof(int), cudaMemcpyDeviceToHost);
    FILE* result = fopen("bright.bin", "wb");
    fwrite(out.data(), sizeof(int), n, result);
    fclose(result);
    printf("%d pixels\\n", n);
    cudaFree(din);
    cudaFree(dout);
    return 0;
}
"""
    rules = """
title = "reading a file"
kernels = ["brighten"]
seconds = 3
[points]
faults = 2
kernels = 1
leak = 1
[[test]]
name = "pixels"
points = 4
inputs = ["make.py:image"]
output = "bright.bin"
dtype = "int32"
property = "make.py:brighter"
[[test]]
name = "count"
points = 2
inputs = ["make.py:image"]
property = "make.py:counted"
"""
    make = """
import random
import struct


def image(seed):
    dice = random.Random(seed)
    pixels = [dice.randrange(256) for _ in range(150)]
    return {"image.bin": struct.pack("<151i", 150, *pixels)}


def brighter(outcome):
    pixels = struct.unpack("<151i", outcome.inputs["image.bin"])[1:]
    return outcome.output == struct.pack("<150i", *(min(255, p + 40) for p in pixels)) or "a pixel is wrong"


def counted(outcome):
    return outcome.text.split() == ["150", "pixels"] or f"it prints {outcome.text!r}"
"""
    full = {"faults": 2.0, "kernels": 1.0, "leak": 1.0, "pixels": 4.0, "count": 2.0}
    variants = {
        "right": ((), {}),
        "clamped": ((("min(255, in[i] + 40)", "in[i] + 40 > 255 ? 255 : in[i] + 40"),), {}),
        "not-clamped": ((("min(255, in[i] + 40)", "in[i] + 40"),), {"pixels": 0.0}),
        "edge": ((("if (i < n)", "if (i <= n)"),), {"faults": 0.0}),
        "silent": ((('printf("%d pixels\\n", n);', ""),), {"count": 0.0}),
        "other-file": ((('"bright.bin"', '"light.bin"'),), {"pixels": 0.0}),
        "not-launched": ((("brighten<<<(n + 63) / 64, 64>>>(din, dout, n);", "cudaMemset(dout, 0, n * sizeof(int));"),), {"pixels": 0.0, "kernels": 0.0}),  # noqa: E501
        "cannot-open": ((('"image.bin"', '"picture.bin"'),), {"pixels": 0.0, "count": 0.0, "kernels": 0.0}),
        "leaky": ((("    cudaFree(dout);\n", ""),), {"leak": 0.0}),
        "syntax": ((("if (!file)", "if !file"),), {}),
    }  # fmt: skip
    files = {"assignment.toml": rules, "make.py": make}
    encoded = {name: text.encode() for name, text in files.items()}
    return Course("reading", encoded, solution, full, variants, status={"syntax": "refused"})


def write(folder: Path, made: Course) -> list[tuple[str, dict[str, float]]]:
    """The assignment, and a folder of its class; the name of each submission with its marks."""
    for name, data in made.files.items():
        (folder / name).write_bytes(data)
    marks = []
    for variant, style, files, wanted in made.submissions():
        home = folder / "class" / f"{variant}-{style}"
        for name, data in files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        marks.append((home.name, wanted))
    return marks


def graded(folder: Path, made: Course, jobs: int = 2, only: Callable[[str], bool] = lambda name: True) -> list[str]:
    """Every mark that is not as written."""
    from tilewise.teaching.course.assignment import read_assignment
    from tilewise.teaching.course.submissions import collect
    from tilewise.teaching.course.workers import grade_all

    marks = dict(write(folder, made))
    assignment = read_assignment(folder / "assignment.toml")
    found = [one for one in collect([str(folder / "class")]) if only(one.name.split("/")[0])]
    out = []
    for grade in grade_all(found, assignment, 7, jobs, 30.0):
        wanted = marks[grade.name.split("/")[0]]
        have = {item.name: item.points for item in grade.items}
        wrong = {k: (have.get(k), v) for k, v in wanted.items() if have.get(k) != v}
        if wrong:
            why = grade.trouble or [(i.name, i.why, dict(i.values)) for i in grade.items if i.why]
            out.append(f"{made.name}/{grade.name}: {wrong} ({grade.status}: {why})")
    if len(found) != len([name for name in marks if only(name)]):
        out.append(f"{made.name}: {len(found)} submissions of {len(marks)}")
    return out


if __name__ == "__main__":
    import sys
    import tempfile
    import time

    chosen = [made for made in courses() if made.name in sys.argv[1:] or len(sys.argv) == 1]
    started, count, wrong = time.monotonic(), 0, 0
    for made in chosen:
        with tempfile.TemporaryDirectory() as place:
            problems = graded(Path(place), made)
        count += len(list(made.submissions()))
        wrong += len(problems)
        took = f"{time.monotonic() - started:.0f} s"
        print(made.name, count, took, *problems, sep="\n  ", flush=True)
    print(f"{count} submissions, {wrong} marks not as written, {took}")
    sys.exit(1 if wrong else 0)

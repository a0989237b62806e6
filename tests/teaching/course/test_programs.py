"""An assignment may be any program: its output, its files, its kernels, each for its own points."""

from __future__ import annotations

import pytest

from class_of_submissions import TILED
from tilewise.errors import UsageError
from tilewise.teaching.course import Assignment, grade_text, read_assignment
from tilewise.teaching.course.assignment import Test
from tilewise.teaching.course.comparing import same_text
from tilewise.teaching.course.grading import grade
from tilewise.teaching.course.submissions import Submission

KERNEL = """
__global__ void scale(const float* a, float* b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) b[i] = 2 * a[i];
}
"""
MAIN = """
#include <cstdio>
#include <cstdlib>
int main(int argc, char** argv) {
    int n = atoi(argv[1]);
    float *a = new float[n], *b = new float[n], *da, *db;
    for (int i = 0; i < n; ++i) { if (scanf("%f", &a[i]) != 1) a[i] = i; }
    cudaMalloc(&da, n * sizeof(float)); cudaMalloc(&db, n * sizeof(float));
    cudaMemcpy(da, a, n * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<(n + 31) / 32, 32>>>(da, db, n);
    cudaMemcpy(b, db, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) printf("%.3f\\n", b[i]);
    FILE* f = fopen("b.bin", "wb"); fwrite(b, sizeof(float), n, f); fclose(f);
    cudaFree(da); cudaFree(db); delete[] a; delete[] b;
    return 0;
}
"""
RULES = """
title = "scale"
kernels = ["scale"]
[points]
faults = 2
kernels = 1
leak = 1
[[test]]
name = "numbers"
points = 2
arguments = ["3"]
stdin = "1.5 2 3"
expected = "3 4 6"
tolerance = 1e-3
[[test]]
name = "file"
points = 4
arguments = ["40"]
reference = "ours.cu"
output = "b.bin"
dtype = "float32"
partial = true
title = { en = "The file", pt = "O arquivo" }
message = { en = "Is each element written?" }
"""


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "a.toml").write_text(RULES)
    (tmp_path / "ours.cu").write_text(KERNEL + MAIN)
    return read_assignment(tmp_path / "a.toml")


def points(made):
    return {item.name: item.points for item in made.items}


FULL = {"faults": 2, "kernels": 1, "leak": 1, "numbers": 2, "file": 4}


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", {}),
        ("if (i < n)", "if (i <= n)", {"faults": 0}),
        ("2 * a[i]", "a[i]", {"numbers": 0, "file": 0.1}),  # twice 0 is 0, in one of the ten blocks of four values
        ("cudaFree(db);", "", {"leak": 0}),
        ("scale<<<(n + 31) / 32, 32>>>(da, db, n);", "cudaMemset(db, 0, n * 4);", {"kernels": 0, "numbers": 0, "file": 0.1}),  # noqa: E501
        ('"b.bin"', '"c.bin"', {"file": 0}),
        ("return 0;", "return 3;", {"numbers": 0, "file": 0}),
    ],
)  # fmt: skip
def test_each_property_has_its_own_points(rules, old, new, wanted):
    made = grade_text((KERNEL + MAIN).replace(old, new), rules, 5, "x", "x.cu")
    assert points(made) == pytest.approx(FULL | wanted), [item for item in made.items if item.why]


def test_a_program_that_cannot_be_read_and_one_that_never_ends(rules, tmp_path):
    broken = grade_text((KERNEL + MAIN).replace("int n = atoi", "int n = = atoi"), rules, 5)
    assert (broken.status, broken.points, broken.line) == ("refused", 0, 10)
    kernel = grade_text(KERNEL.replace("x * blockDim.x", "x blockDim.x") + MAIN, rules, 5, "x", "x.cu")
    assert (kernel.status, kernel.line) == ("refused", 3)
    assert kernel.trouble.endswith(" is expected here, not blockDim")  # the reason, not only that there is one
    (tmp_path / "b.toml").write_text(RULES.replace('title = "scale"', "seconds = 1"))
    late = grade_text(
        (KERNEL + MAIN).replace("int n =", "while (argc); int n ="), read_assignment(tmp_path / "b.toml"), 5
    )
    assert (late.status, late.points) == ("stopped", 0)


def test_points_for_the_program_alone(tmp_path):
    """No kernel has to be a matrix product."""
    only = Assignment(points={"program": 10.0}, arguments=("7",))
    assert grade_text(KERNEL + MAIN, only, 1).points == 10
    assert grade_text((KERNEL + MAIN).replace("i < n) b", "i <= n) b"), only, 1).points == 0


def test_a_kernel_beside_main_belongs_to_it(rules):
    for files in (
        {"main.cu": '#include "scale.cuh"\n' + MAIN, "scale.cuh": "#pragma once\n" + KERNEL},
        {"main.cu": "__global__ void scale(const float* a, float* b, int n);\n" + MAIN, "kernel.cu": KERNEL},
        {"src/main.cu": '#include "scale.cuh"\n' + MAIN, "include/scale.cuh": KERNEL},
    ):
        made = grade(Submission("x", "x", {name: text.encode() for name, text in files.items()}), rules, 5)
        assert points(made) == FULL, made
    tiled = {"main.cu": b'#include "t.cuh"\nint main() { return 0; }\n', "t.cuh": TILED.encode()}
    assert grade(Submission("x", "x", tiled), Assignment(), 5).full
    tiled["t.cuh"] = TILED.replace("__syncthreads();", "", 1).encode()
    found = grade(Submission("x", "x", tiled), Assignment(), 5).found
    assert {(f.file, TILED.split("\n")[f.line - 1].strip()[:9]) for f in found} == {("t.cuh", "for (int ")}


def test_the_lecturer_s_main_replaces_the_student_s(tmp_path):
    (tmp_path / "main.cu").write_text("__global__ void scale(const float*, float*, int);\n" + MAIN)
    (tmp_path / "a.toml").write_text(
        'provided = ["main.cu"]\n[[test]]\narguments = ["2"]\nexpected = "0.000 2.000"\npoints = 3\n'
    )
    rules = read_assignment(tmp_path / "a.toml")
    cheat = KERNEL.replace("2 * a[i]", "7") + '#include <cstdio>\nint main() { printf("0.000 2.000"); return 0; }\n'
    assert grade_text(KERNEL + "int main() { return 1; }\n", rules, 1, "x", "kernel.cu").points == 3
    assert grade_text(cheat, rules, 1, "x", "kernel.cu").points == 0


LAUNCHED = """
int main() {
    int n = 40; float *a, *b, *c;
    cudaMalloc(&a, n * n * 4); cudaMalloc(&b, n * n * 4); cudaMalloc(&c, n * n * 4);
    cudaMemset(a, 0, n * n * 4); cudaMemset(b, 0, n * n * 4);
    product<<<dim3(3, 3), dim3(TILE_WIDTH, TILE_WIDTH)>>>(a, b, c, n, n, n);
    cudaDeviceSynchronize(); cudaFree(a); cudaFree(b); cudaFree(c); return 0;
}
"""


@pytest.mark.parametrize(("width", "full"), [(16, 10), (64, 1)])
def test_a_launch_that_fails_earns_no_product_whatever_the_grader_s_tile_is(width, full):
    text = TILED.replace("TILE_WIDTH 16", f"TILE_WIDTH {width}") + LAUNCHED
    made = grade_text(text, Assignment(tile=4), 3)
    assert made.points == full, made.items
    assert any(f.kind == "launch" for f in made.found) == (width == 64)


@pytest.mark.parametrize(
    ("have", "want", "tolerance", "share"),
    [
        ("1 2 3", "1  2\n3\n", 0, 1), ("sum = 1.0001", "sum=1", 1e-3, 1), ("sum = 1.1", "sum = 1", 1e-3, 2 / 3),
        ("1 2 3 4", "1 2 3", 0, 2 / 3), ("1 2", "1 2 3", 0, 2 / 3), ("nan", "1", 1e9, 0), ("inf", "inf", 1e-3, 1),
    ],
)  # fmt: skip
def test_outputs_are_compared_token_by_token(have, want, tolerance, share):
    assert same_text(have, want, Test("t", tolerance=tolerance, partial=True)).share == pytest.approx(share)


def test_a_property_is_the_lecturer_s_function(tmp_path):
    (tmp_path / "p.py").write_text(
        "def rises(outcome):\n    v = list(map(float, outcome.text.split()))\n    return v == sorted(v) or 'it falls'\n"
        "def inputs(seed):\n    return {'in.txt': str(seed % 7).encode()}\n"
    )
    (tmp_path / "a.toml").write_text(
        '[[test]]\npoints = 1\nproperty = "p.py:rises"\narguments = ["4"]\ninputs = ["p.py:inputs"]\n'
    )
    rules = read_assignment(tmp_path / "a.toml")
    assert grade_text(KERNEL + MAIN, rules, 5).points == 1
    falling = grade_text((KERNEL + MAIN).replace("2 * a[i]", "-a[i]"), rules, 5)
    assert falling.items[0].values == {"text": "it falls"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[test]]\nanswer = 3", "'answer' is not known; a test has name, points"),
        ('[[test]]\nexpected = "3"\nreference = "a.toml"', "reference and expected cannot both be given"),
        ('[[test]]\nreference = "no.cu"', "test 1: reference no.cu is not beside it"),
        ('[[test]]\nname = "a"\n[[test]]\nname = "a"', "'a' is used twice"),
        ("[[test]]\npoints = true", "test 1: points must be a number"),
        ('memory = "much"', "is no amount of memory"),
        ("[points]\nleek = 1", "points for 'leek' are not known; there are parses"),
    ],
)  # fmt: skip
def test_a_wrong_test_is_one_sentence(tmp_path, text, sentence):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_assignment(tmp_path / "a.toml")
    assert sentence in str(caught.value)

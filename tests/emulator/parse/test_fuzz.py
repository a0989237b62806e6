"""Any text: no crash, no time beyond the limits, only TilewiseErrors."""

from __future__ import annotations

import json
import os
import random
import time

import pytest
from fuzz import bent

from tilewise.emulator.limits import Limits
from tilewise.emulator.source.source import decode
from tilewise.errors import KernelError, TilewiseError
from tilewise.teaching.page.views import trace
from tilewise.teaching.trace import check
from tilewise.teaching.trace.sanitizer import report_sanitizer
from tilewise.teaching.trace.sarif import report_sarif

LIMITS = Limits(steps=3000, seconds=0.5, memory=1 << 26, tokens=20_000, touches=4, printf=5)
PATIENCE = 20.0  # seconds for one input: the limits allow about one, the rest is for a busy machine
IN_CI, IN_ALL, CHUNKS = 60, 100_000, 50


def feed(number, text):
    """Parse, run, judge and report one input; whether it ran."""
    start, refused = time.perf_counter(), None
    try:
        if number % 8 == 1:
            drawn = trace(text, shape=(3, 3, 3), tile=2, blocks="all", limits=LIMITS)
            json.dumps([drawn.text(), drawn.to_json()])
        else:
            shape = None if number % 8 == 2 else (3, 3, 3)
            report = check(text, shape=shape, tile=2, limits=LIMITS, adversarial=number % 8 == 0)
            json.dumps([report.text(costs=True), report_sanitizer(report), report_sarif(report, True)])
    except TilewiseError as error:
        refused = error
    except BaseException as error:
        raise AssertionError(f"input {number} ends with {type(error).__name__}: {error}\n{text!r}") from error
    taken = time.perf_counter() - start
    assert taken < PATIENCE, f"input {number} takes {taken:.1f} s\n{text!r}"
    if isinstance(refused, KernelError):
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert 0 <= refused.line <= len(lines) + 1, f"input {number}: there is no line {refused.line}\n{text!r}"
    return refused is None


def test_some_hundreds():
    first = int(os.environ["TILEWISE_TEST_SEED"])
    print("from", first)
    ran = sum(feed(number, bent(number)) for number in range(first, first + IN_CI))
    assert ran > IN_CI // 50  # not all of them stop at the first token


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_hundred_thousand(chunk):
    size = IN_ALL // CHUNKS
    for number in range(chunk * size, (chunk + 1) * size):
        feed(number, bent(number))


def test_any_bytes_can_be_read():
    r = random.Random(0)
    for number in range(300):
        data = bytes(r.randrange(256) for _ in range(r.randrange(200)))
        feed(number, decode(data) + "\n")


def test_an_input_can_be_made_again():
    assert bent(17) == bent(17)
    assert len({bent(n) for n in range(100)}) > 95


BODY = (
    "{ int i = threadIdx.y, j = threadIdx.x; for (int l = 0; l < n; ++l) C[i * n + j] = A[i * n + l] * B[l * n + j]; }"
)
FOUND = {
    "a block of no threads in a grid that cannot be known": (
        f"__global__ void k(float* A, float* B, float* C, int n) {BODY}\n"
        "void run(float* a, float* b, float* c) { int w = 0; k<<<dim3(8 / w, 1), dim3(w, w)>>>(a, b, c, 4); }",
        "no side may be zero",
    ),
    "a template argument past 32 bits": (
        "template <int W> __global__ void k(float* A, float* B, float* C, int n) { C[W] = A[n] * B[n]; }\n"
        "void run(float* a, float* b, float* c) { k<68719476724><<<1, 1>>>(a, b, c, 4); }",
        "does not fit an int",
    ),
    "a function that gives a struct returns without a value": (
        "struct V { int a, b; }; __device__ V f(int x) { V v; v.a = x; v.b = 2; return ; }\n"
        "__global__ void k(int* A, int* B, int* C, int n) { C[0] = A[0] * B[0] + f(n).a; }\n",
        "return needs a value: the function gives V",
    ),
    "two parameters of one name": (
        "__global__ void k(int* n, int* B, int* C, int n) { C[0] = B[n]; }\n",
        "the parameter n is declared twice",
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_faults_found_by_earlier_runs_are_reported(what):
    text, words = FOUND[what]
    with pytest.raises(TilewiseError, match=words):
        check(text, shape=(3, 3, 3))


def test_a_vector_load_from_less_than_a_vector_is_a_fault_and_no_crash():
    text = "__global__ void k(float* A, float* B, float* C, int n) { float4 v = *reinterpret_cast<float4*>(&A[0]);"
    text += " for (int l = 0; l < n; ++l) C[threadIdx.x * n] = v.x * B[l * n]; }"
    report = check(text, shape=(1, 1, 1), grid=(1, 1), block=(1, 1))
    assert "out-of-bounds" in {f.kind for f in report.findings}

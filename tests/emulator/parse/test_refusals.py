"""Unsupported text is refused with file, line, column and the line itself."""

from __future__ import annotations

import pytest
from simt_support import KERNELS, course

from tilewise.errors import KernelError, LimitError, TilewiseError
from tilewise.teaching.trace import check, trace


def refusal(text, **options):
    with pytest.raises(KernelError) as caught:
        check(text, **options)
    return caught.value


def test_the_mistake_of_the_notes_is_located():
    with pytest.raises(KernelError) as caught:
        trace(KERNELS / "slip.cu", shape=(3, 3, 3), tile=2)
    error = caught.value
    line = course("slip").splitlines()[error.line - 1]
    assert error.message == "t is not declared"
    assert line[error.column - 1 :].startswith("t * TILE_WIDTH+tx")
    quoted = str(error).splitlines()
    assert quoted[1] == line
    assert quoted[2].index("^") == error.column - 1


def test_a_comparison_is_no_template_call():
    text = """__global__ void k(float* A, float* B, float* C, int n) {
        int i = threadIdx.y, j = threadIdx.x, m = 0;
        if (i < n && j > (m)) C[i * n + j] = 0; else if (i < n && j < n) C[i * n + j] = 0; }"""
    assert trace(text, shape=(2, 2, 2), tile=2).counters["stores"] == 4


@pytest.mark.parametrize(
    ("body", "message", "column_of"),
    [
        ("int x = y;", "y is not declared", "y"),
        ("int x = 1", "';' is missing after this", "1"),
        ("__match_any_sync(0, 1);", "__match_any_sync is not supported on the machine", "__match"),
        ("wmma::fragment<wmma::matrix_a, 16, 16, 16, half> f;", "the type wmma::fragment is not declared", "wmma"),
        ('asm("nop");', "inline assembly is not supported", "asm"),
        ("goto end;", "goto is not supported", "goto"),
        ("float x; x.y = 1;", "it has no members", "x.y"),
        ("Foo f;", "the type Foo is not declared", "Foo"),
        ("int x = 3; x();", "the function x is not known", "x()"),
        ("float a[n];", "is not known before running", "n]"),
        ("int i = 5 $ 3;", "not $", "$"),
    ],
)
def test_refusals_point_at_the_token(body, message, column_of):
    text = f"__global__ void k(float* A, float* B, float* C, int n) {{\n  {body}\n}}"
    error = refusal(text)
    assert message in error.message
    assert error.line == 2
    assert error.text[error.column - 1 :].startswith(column_of)


def test_a_store_through_const_is_refused():
    assert "const" in refusal("__global__ void k(const float* A, float* B, float* C, int n) { A[0] = 1; }").message


def test_unclosed_things():
    for text in (
        "__global__ void k(float* A) {",
        "__global__ void k() { int x = (1; }",
        "/* __global__\n",
        '__global__ "',
    ):
        with pytest.raises(TilewiseError):
            check(text)


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void k(float* A, float* B, float* C, int n) { while (true) { } }",
        "__global__ void k(float* A, float* B, float* C, int n) { for (;;) C[0] = 1; }",
        "__global__ void k(float* A, float* B, float* C, int n) { int x = " + "(" * 500 + "1" + ")" * 500 + "; }",
        "__global__ void k(float* A, float* B, float* C, int n) " + "{" * 500 + "}" * 500,
        "#define A B B\n#define B C C\n#define C D D\n"
        + "".join(f"#define {chr(68 + i)} {chr(69 + i)} {chr(69 + i)}\n" for i in range(20))
        + "__global__ void k(float* M, float* N, float* P, int n) { A }",
    ],
)
def test_infinite_loops_are_stopped(text):
    from tilewise.emulator.limits import Limits

    with pytest.raises((LimitError, KernelError)) as caught:
        check(text, shape=(3, 3, 3), limits=Limits(steps=4_000, tokens=50_000))
    assert "\n" not in str(caught.value) or isinstance(caught.value, KernelError)


def test_recursion_is_refused():
    text = "__device__ int f(int n) { return n ? f(n - 1) : 0; }"
    text += "__global__ void k(float* A, float* B, float* C, int n) { C[0] = f(n); }"
    assert "calls itself" in refusal(text).message


def test_refusals_at_run_time_have_a_line():
    text = """__global__ void k(float* A, float* B, float* C, int n) {
        float* p = A;
        if (threadIdx.x) p = B;
        C[threadIdx.x] = p[0]; }"""
    error = refusal(text, shape=(3, 3, 3))
    assert "different arrays for different threads" in error.message
    assert error.line == 3


def test_jumps_need_a_loop():
    assert "outside a loop" in refusal("__global__ void k(float* A, float* B, float* C, int n) { continue; }").message


def test_a_bracket_too_many_is_reported_where_it_stands():
    text = "__global__ void f(int* a) {\n    a[0] = (1 + 2));\n    a[1] = 3;\n}\n"
    assert refusal(text).line == 2
    assert refusal(text.replace("(1 + 2))", "(1 + 2")).line == 2


@pytest.mark.parametrize(
    "declaration", ["void show(number* a, number n);", "int twice(number x) { return 2; }", "void f(int n, number m);"]
)
def test_a_parameter_of_an_unknown_type_is_named(declaration):
    error = refusal(f"{declaration}\n__global__ void k(number* a) {{ a[0] = 1; }}\n")
    assert error.message == "number is not a type that is known here"

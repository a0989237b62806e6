"""C's arithmetic, not Python's."""

from __future__ import annotations

import numpy as np
import pytest
from simt_support import evaluate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("7 / -2", -3),
        ("2147483647 + 1", -(2**31)),
        ("1 << 31", -(2**31)),
        ("-8 >> 1", -4),
        ("(unsigned char)300", 44),
        ("(signed char)200", -56),
        ("(int)3.99f", 3),
        ("(int)-3.99", -3),
        ("5 > 4 > 3", 0),
        ("-1 > 1u", 1),
        ("sizeof(float4) + sizeof(long long)", 24),
        ("'A' + 1", 66),
        ("0x1F | 010", 31),
        ("3 & 5 ^ 1", 0),
        ("!0 + !5", 1),
        ("~0", -1),
        ("1 ? 2 : 3, 4", 2),
        ("(1, 4)", 4),
        ("min(3, -2) + max(4, 9)", 7),
        ("(int)ceil(7 / 2)", 3),
        ("(int)ceilf(7 / 2.0f)", 4),
        ("10 - 4 - 3", 3),
        ("2 + 3 * 4 % 5", 4),
        ("(int)1e20f", 2**31 - 1),
        ("static_cast<int>(2.5f) + int(3.5)", 5),
    ],
)
def test_integer_expressions(expression, value):
    assert evaluate(expression if "," not in expression or "(" in expression[:1] else f"({expression})") == (
        4 if expression == "1 ? 2 : 3, 4" else value
    )


def test_float_products_are_rounded_to_float():
    third = evaluate("1.0f / 3.0f", "float", np.float32)
    assert third == np.float32(1) / np.float32(3)
    assert evaluate("0.1f + 0.2f", "float", np.float32) == np.float32(0.1) + np.float32(0.2)
    assert evaluate("0.1 + 0.2", "double", np.float64) == 0.1 + 0.2
    assert evaluate("16777216.0f + 1.0f", "float", np.float32) == 16777216


def test_unsigned_wraps_and_narrow_types_promote():
    assert evaluate("x - 1", "unsigned int", np.uint32, "unsigned int x = 0;") == 2**32 - 1
    assert evaluate("a + b", "int", np.int32, "unsigned char a = 200, b = 100;") == 300
    assert evaluate("x * x", "long long", np.int64, "int x = 65536;") == 0
    assert evaluate("(long long)x * x", "long long", np.int64, "int x = 65536;") == 2**32
    assert evaluate("n - 1 < 0", "int", np.int32, "size_t n = 0;") == 0


def test_bit_casts_and_half():
    assert evaluate("__uint_as_float(0x7f800000u)", "float", np.float32) == np.inf
    assert evaluate("__longlong_as_double(0x7ff0000000000000ll)", "double", np.float64) == np.inf
    assert evaluate("__half2float(__float2half(0.1f))", "float", np.float32) == np.float32(np.float16(0.1))


def test_fmin_skips_nan():
    assert evaluate("fminf(__uint_as_float(0x7fc00000u), 2.0f)", "float", np.float32) == 2


def test_a_type_function_and_a_macro():
    top = "#define SQUARE(x) ((x) * (x))\ntemplate <typename T> __device__ T twice(T x) { return x + x; }"
    assert evaluate("SQUARE(1 + 2) + twice(4)", top=top) == 17


def test_minus_zero_is_below_zero():
    assert evaluate("__float_as_uint(fmaxf(-0.0f, 0.0f))", "unsigned", np.uint32) == 0
    assert evaluate("__float_as_uint(fminf(0.0f, -0.0f))", "unsigned", np.uint32) == 0x80000000

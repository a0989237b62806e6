"""Expression trees as CUDA C: the prelude of a kernel, with its types, constants and small functions.

NVRTC needs no header for it and the emulator no special case: half precision is passed as bits, infinities are bit
patterns, signed integers wrap through unsigned arithmetic (signed overflow is undefined in C).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import (
    BITWISE,
    COMPARISONS,
    Apply,
    Constant,
    Expression,
    Extreme,
    Number,
    Variable,
    constant_over,
    is_truth,
)
from tilewise.algebra.no_edge import NoEdge, no_edge_of
from tilewise.algebra.semiring import Algebra
from tilewise.errors import DtypeError

C_NAMES = {
    "bool": "bool",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
    "float16": "unsigned short",  # as bits: no header needed
    "bfloat16": "unsigned short",  # as bits
    "float8_e4m3fn": "unsigned char",  # as bits
    "float8_e5m2": "unsigned char",  # as bits
    "float32": "float",
    "float64": "double",
    "complex64": "float2",
    "complex128": "double2",
}

FUNCTION = "static __device__ __forceinline__"

HALF_TO_FLOAT = f"""{FUNCTION} float half_to_float(unsigned short bits) {{
#ifdef __CUDACC_RTC__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    return __half2float(__ushort_as_half(bits));
#endif
}}
"""

FLOAT_TO_HALF = f"""{FUNCTION} unsigned short float_to_half(float value) {{
#ifdef __CUDACC_RTC__
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    return __half_as_ushort(__float2half_rn(value));
#endif
}}
"""

BFLOAT_TO_FLOAT = f"""{FUNCTION} float bfloat_to_float(unsigned short bits) {{
    return __uint_as_float((unsigned int)bits << 16);
}}
"""

# an 8-bit float is the upper part of a float16, but for the bias of e4m3fn's exponent, and its one NaN
FLOAT8_TO_FLOAT = {
    "float8_e5m2": f"""{FUNCTION} float float8_to_float(unsigned char bits) {{
    return half_to_float((unsigned short)(bits << 8));
}}
""",
    "float8_e4m3fn": f"""{FUNCTION} float float8_to_float(unsigned char bits) {{
    if ((bits & 0x7f) == 0x7f) return __uint_as_float(0x7fffffffu);
    return 256.0f * half_to_float((unsigned short)((bits & 0x80) << 8 | (bits & 0x7f) << 7));
}}
""",
}

FLOAT_TO_BFLOAT = f"""{FUNCTION} unsigned short float_to_bfloat(float value) {{
    unsigned int bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (unsigned short)0x7fff;  // NaN stays NaN
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // to nearest, ties to even
}}
"""


def c_name(dtype: DType) -> str:
    """The C type of a dtype."""
    if dtype.name not in C_NAMES:
        raise DtypeError(f"a card has no {dtype}: use device='cpu', or convert the operands to float64 or complex128")
    return C_NAMES[dtype.name]


def literal(value: Number, dtype: DType) -> str:
    """A number as CUDA C, exactly."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "c":
        z = complex(value)
        part = np.dtype("float32" if dtype.name == "complex64" else "float64")
        make = "make_float2" if dtype.name == "complex64" else "make_double2"
        return f"{make}({_real(z.real, part)}, {_real(z.imag, part)})"
    if dtype.kind == "f":
        return _real(float(value.real), dtype.numpy)
    suffix = {("i", 8): "ll", ("u", 8): "ull", ("u", 4): "u"}.get((dtype.kind, dtype.itemsize), "")
    if value == dtype.smallest() and dtype.kind == "i" and dtype.itemsize >= 4:
        return f"(-{dtype.largest()}{suffix} - 1)"  # C has no negative literals, and 2147483648 is no int
    text = f"{int(value.real)}{suffix}"
    return f"(({c_name(dtype)}){text})" if dtype.itemsize < 4 else text


def _real(value: float, dtype: np.dtype[np.generic]) -> str:
    single = dtype.itemsize == 4
    if value != value:
        return "__uint_as_float(0x7fffffffu)" if single else "__longlong_as_double(0x7fffffffffffffffll)"
    if value in (float("inf"), float("-inf")):
        infinity = "__uint_as_float(0x7f800000u)" if single else "__longlong_as_double(0x7ff0000000000000ll)"
        return infinity if value > 0 else f"(-{infinity})"
    text = repr(float(dtype.type(value)))
    if "." not in text and "e" not in text:
        text += ".0"
    text += "f" if single else ""
    return f"({text})" if value < 0 else text


def cuda_expression(tree: Expression, dtype: DType, names: Mapping[str, str] | None = None) -> str:
    """A tree over `dtype` as one C expression of x and y; `names` renames them."""
    if isinstance(tree, Variable):
        return tree.name if names is None else names[tree.name]
    if isinstance(tree, (Constant, Extreme)):
        return literal(constant_over(tree, dtype), dtype)
    assert isinstance(tree, Apply)
    args = [cuda_expression(arg, dtype, names) for arg in tree.args]
    if tree.op in ("and", "or", "not"):
        truths = [_truth(arg, text, dtype) for arg, text in zip(tree.args, args, strict=True)]
        return {"and": "({0} && {1})", "or": "({0} || {1})", "not": "(!{0})"}[tree.op].format(*truths)
    if tree.op == "where":
        return f"({_truth(tree.args[0], args[0], dtype)} ? {args[1]} : {args[2]})"
    args = [
        f"({c_name(dtype)}){a}" if is_truth(t) and dtype.kind != "b" else a
        for t, a in zip(tree.args, args, strict=True)
    ]
    if dtype.kind == "b":
        return _boolean(tree.op, args)
    if dtype.kind == "c":
        return _complex(tree.op, args)
    if dtype.is_integer:
        return _integer(tree.op, args, dtype)
    return _floating(tree.op, args, dtype)


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"} | COMPARISONS
INTEGER_FUNCTIONS = {"mod": "modulo_of", "floordiv": "floor_divide_of", "shl": "shift_left_of", "shr": "shift_right_of"}


def _truth(tree: Expression, text: str, dtype: DType) -> str:
    return text if is_truth(tree) or dtype.kind == "b" else f"({text} != {literal(0, dtype)})"


def _boolean(op: str, args: list[str]) -> str:
    if op == "invert":
        return f"(!{args[0]})"
    same = {"add": "||", "max": "||", "bit_or": "||", "mul": "&&", "min": "&&", "bit_and": "&&", "bit_xor": "!="}
    infix = same.get(op) or _INFIX.get(op)
    return args[0] if op == "abs" else f"({args[0]} {infix} {args[1]})"


def _complex(op: str, args: list[str]) -> str:
    if op in ("eq", "ne"):
        return f"{'!' if op == 'ne' else ''}complex_eq({', '.join(args)})"
    return f"complex_{op}({', '.join(args)})"


def _integer(op: str, args: list[str], dtype: DType) -> str:
    name = c_name(dtype)
    if op in ("add", "sub", "mul", "neg"):
        wide = "unsigned long long" if dtype.itemsize == 8 else "unsigned int"
        if name == wide:
            return f"({args[0]} {_INFIX[op]} {args[1]})" if op != "neg" else f"(-{args[0]})"
        if op == "neg":
            return f"(({name})(0u - ({wide}){args[0]}))"
        return f"(({name})(({wide}){args[0]} {_INFIX[op]} ({wide}){args[1]}))"
    if op in BITWISE:
        return f"(({name})(~{args[0]}))" if op == "invert" else f"(({name})({args[0]} {BITWISE[op]} {args[1]}))"
    if op in INTEGER_FUNCTIONS:
        return f"{INTEGER_FUNCTIONS[op]}({', '.join(args)})"
    if op in ("min", "max", "abs"):
        return f"{op}imum_of({', '.join(args)})" if op != "abs" else f"absolute_of({args[0]})"
    return f"({args[0]} {_INFIX[op]} {args[1]})"


def _floating(op: str, args: list[str], dtype: DType) -> str:
    f = "f" if dtype.itemsize == 4 else ""
    if op in _INFIX:
        return f"({args[0]} {_INFIX[op]} {args[1]})"
    if op == "neg":
        return f"(-{args[0]})"
    if op == "logaddexp":
        return f"log_add_exp({', '.join(args)})"
    name = {"min": "fmin", "max": "fmax", "abs": "fabs"}.get(op, op)
    return f"{name}{f}({', '.join(args)})"


def _integer_functions(dtype: DType) -> dict[str, str]:
    """// % << >> of integers as NumPy defines them: division by 0 gives 0, and quotients round down."""
    if not dtype.is_integer:
        return {}
    t, bits = c_name(dtype), 8 * dtype.itemsize
    unsigned = "unsigned long long" if dtype.itemsize == 8 else "unsigned int"
    signed = dtype.kind == "i"
    minus_one = f"    if (y == ({t})-1) return MINUS_ONE;\n" if signed else ""
    down = "(r != 0 && (r < 0) != (y < 0))" if signed else "false"
    negated = f"({t})(0u - ({unsigned})x)"
    edge = "x < 0 ? -1 : 0" if signed else "0"
    return {
        "modulo_of(": f"""{FUNCTION} {t} modulo_of({t} x, {t} y) {{
    if (y == 0) return 0;
{minus_one.replace("MINUS_ONE", "0")}    {t} r = ({t})(x % y);
    return {down} ? ({t})(r + y) : r;
}}
""",
        "floor_divide_of(": f"""{FUNCTION} {t} floor_divide_of({t} x, {t} y) {{
    if (y == 0) return 0;
{minus_one.replace("MINUS_ONE", negated)}    {t} r = ({t})(x % y);
    return ({t})(x / y - ({down} ? 1 : 0));
}}
""",
        "shift_left_of(": f"""{FUNCTION} {t} shift_left_of({t} x, {t} y) {{
    return y < 0 || y >= {bits} ? ({t})0 : ({t})(({unsigned})x << y);
}}
""",
        "shift_right_of(": f"""{FUNCTION} {t} shift_right_of({t} x, {t} y) {{
    return y < 0 || y >= {bits} ? ({t})({edge}) : ({t})(x >> y);
}}
""",
    }


def _helpers(algebra: Algebra) -> list[str]:
    """Only the functions this algebra's expressions call."""
    t, dtype = c_name(algebra.partial), algebra.partial
    used = cuda_expression(algebra.semiring.add, dtype) + cuda_expression(algebra.semiring.mul, dtype)
    f = "f" if dtype.itemsize == 4 else ""

    def pairwise(name: str, sign: str) -> str:
        body = f"{t} z; z.x = x.x {sign} y.x; z.y = x.y {sign} y.y; return z;"
        return f"{FUNCTION} {t} complex_{name}({t} x, {t} y) {{ {body} }}\n"

    known = {
        "minimum_of(": f"{FUNCTION} {t} minimum_of({t} x, {t} y) {{ return y < x ? y : x; }}\n",
        "maximum_of(": f"{FUNCTION} {t} maximum_of({t} x, {t} y) {{ return x < y ? y : x; }}\n",
        "absolute_of(": f"{FUNCTION} {t} absolute_of({t} x) {{ return x < 0 ? ({t})(0 - x) : x; }}\n",
        **_integer_functions(dtype),
        "complex_add(": pairwise("add", "+"),
        "complex_sub(": pairwise("sub", "-"),
        "complex_neg(": f"{FUNCTION} {t} complex_neg({t} x) {{ {t} z; z.x = -x.x; z.y = -x.y; return z; }}\n",
        "complex_eq(": f"{FUNCTION} bool complex_eq({t} x, {t} y) {{ return x.x == y.x && x.y == y.y; }}\n",
        "complex_mul(": f"""{FUNCTION} {t} complex_mul({t} x, {t} y) {{
    {t} z;
    z.x = x.x * y.x - x.y * y.y;
    z.y = x.x * y.y + x.y * y.x;
    return z;
}}
""",
        "log_add_exp(": f"""// max + log(1 + exp(-|x - y|)) never overflows; for equal infinities x - y would be NaN
{FUNCTION} {t} log_add_exp({t} x, {t} y) {{
    if (x == y) return x + {literal(float(np.log(2.0)), dtype)};
    return fmax{f}(x, y) + log1p{f}(exp{f}(-fabs{f}(x - y)));
}}
""",
    }
    return [text for call, text in known.items() if call in used]


def widened(dtype: DType, partial: DType) -> str:
    """The element x converted to the accumulator's dtype."""
    if partial.kind == "b" and dtype.kind != "b":
        if dtype.name in ("float16", "bfloat16"):
            return "(x & 0x7fff) != 0"  # neither +0 nor -0
        return "x.x != 0 || x.y != 0" if dtype.kind == "c" else "x != 0"
    return {"float16": "half_to_float(x)", "bfloat16": "bfloat_to_float(x)"}.get(dtype.name, "x")


def _encoded(edges: NoEdge) -> str:
    """A weight unchanged; any other value ("no edge") as one beyond every sum."""
    low, high, internal = (literal(x, edges.dtype) for x in (edges.min_weight, edges.max_weight, edges.internal))
    is_missing = f"x > {high}" if edges.min_weight == 0 else f"x < {low} || x > {high}"
    return f"{is_missing} ? {internal} : x"


def prelude(algebra: Algebra, *, index: str = "int", accumulate: bool | None = False, encodes: bool = True) -> str:
    """The prelude of a kernel: the four types, ZERO and the pads, widen, narrow, add, mul, and STORE. `encodes`: widen
    maps integers' "no edge" to a value whose sums cannot wrap, STORE maps it back; some kernels do this themselves.
    `accumulate`: whether STORE adds onto P; None: as the kernel's argument of that name says.
    """
    edges = no_edge_of(algebra) if encodes else None
    element, partial, result = algebra.element, algebra.partial, algebra.result
    head = [
        f"// {algebra.semiring.name} over {element}",
        f"typedef {c_name(element)} Element;  // {element}, as it lies in M and N",
        f"typedef {c_name(partial)} Partial;  // {partial}: what a thread adds up in",
        f"typedef {c_name(result)} Result;  // {result}, as it lies in P",
        f"typedef {index} Index;  // wide enough for every cell of M, N and P",
        f"#define ZERO {literal(algebra.zero, partial)}",
        f"#define PAD_M {literal(algebra.pad_m, partial)}",
        f"#define PAD_N {literal(algebra.pad_n, partial)}",
        "",
    ]
    widen = widened(element, partial) if edges is None else _encoded(edges)
    narrow = {"float16": "float_to_half(x)", "bfloat16": "float_to_bfloat(x)"}.get(result.name, "x")
    resume = widened(result, partial)
    text = "\n".join(head) + "\n"
    for call, definition in (
        ("half_to_float", HALF_TO_FLOAT),
        ("bfloat_to_float", BFLOAT_TO_FLOAT),
        ("float_to_half", FLOAT_TO_HALF),
        ("float_to_bfloat", FLOAT_TO_BFLOAT),
    ):
        if call in widen + narrow + resume:
            text += definition
    text += "".join(_helpers(algebra))
    text += f"{FUNCTION} Partial widen(Element x) {{ return {widen}; }}\n"
    text += f"{FUNCTION} Result narrow(Partial x) {{ return {narrow}; }}\n"
    if accumulate is not False:
        text += f"{FUNCTION} Partial resume(Result x) {{ return {resume}; }}\n"
    text += (
        f"{FUNCTION} Partial add(Partial x, Partial y) {{ return {cuda_expression(algebra.semiring.add, partial)}; }}\n"
    )
    text += (
        f"{FUNCTION} Partial mul(Partial x, Partial y) {{ return {cuda_expression(algebra.semiring.mul, partial)}; }}\n"
    )
    value = "value"
    if edges is not None:
        value, past = "leave(value)", ">" if edges.stored > 0 else "<"
        last = literal(edges.farthest, partial)
        text += "// beyond the farthest sum of two weights there is no edge\n"
        text += f"{FUNCTION} Partial leave(Partial x) {{ return x {past} {last} ? ZERO : x; }}\n"
    stored, onto = f"narrow({value})", f"narrow(add(resume(cell), {value}))"
    stored = f"accumulate ? {onto} : {stored}" if accumulate is None else onto if accumulate else stored
    return text + f"#define STORE(cell, value) cell = {stored}\n"

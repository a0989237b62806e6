"""Expression trees as LLVM IR over vectors, with the semantics of `to_numpy`.

A value is one register, or two for complex numbers (real parts, imaginary parts). bool is an i8 that holds 0 or 1.
min and max ignore NaN on either side; where one side is known to hold none, that takes one instruction.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.expression import (
    COMPARISONS,
    LOGIC,
    Apply,
    Constant,
    Expression,
    Extreme,
    Number,
    Variable,
    constant_over,
    is_plain,
)
from tilewise.algebra.llvm_exponentials import LN2, Exponentials
from tilewise.algebra.llvm_integer import integer_operation
from tilewise.errors import DtypeError

Value = tuple[str, ...]  # the registers of one value: two for complex numbers

KINDS = {
    "bool": "i8", "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
    "int64": "i64", "uint64": "i64", "float16": "i16", "bfloat16": "i16", "float32": "float", "float64": "double",
    "complex64": "float", "complex128": "double",
}  # fmt: skip

PARTS = {"complex64": DTYPES["float32"], "complex128": DTYPES["float64"]}


class Writer(Protocol):
    """The function that is being written, as rendering needs it."""

    def op(self, text: str) -> str: ...

    def call(self, result: str, name: str, args: list[tuple[str, str | int]]) -> str: ...


def scalar_kind(dtype: DType) -> str:
    """The LLVM type of one register lane; half precision is kept as its bits until it is widened."""
    if dtype.name not in KINDS:
        raise DtypeError(f"the cpu backend has no kernel for {dtype}: it runs in the reference backend")
    return KINDS[dtype.name]


def part(dtype: DType) -> DType:
    """What a register holds: the real dtype under a complex one."""
    return PARTS.get(dtype.name, dtype)


def vector(kind: str, lanes: int) -> str:
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def literal(value: Number, dtype: DType) -> str:
    """A real number as LLVM writes it, exactly."""
    if dtype.kind == "f":
        rounded = float(np.float32(value.real)) if dtype.itemsize == 4 else float(value.real)
        return f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
    return str(int(value.real))


def splat(text: str, kind: str, lanes: int) -> str:
    """A constant in every lane."""
    return text if lanes == 1 else f"splat ({kind} {text})"


def constant(value: Number, dtype: DType, lanes: int) -> Value:
    kind = scalar_kind(dtype)
    if dtype.kind == "c":
        z = complex(value)
        return tuple(splat(literal(x, part(dtype)), kind, lanes) for x in (z.real, z.imag))
    return (splat(literal(value, dtype), kind, lanes),)


@dataclass
class Renderer:
    """Renders trees over `dtype` into `writer`, `lanes` at a time."""

    writer: Writer
    dtype: DType
    lanes: int
    has_vrange: bool = False  # the target has vrangeps: min and max that skip NaN on either side
    has_fminnm: bool = False  # the target has fminnm, which skips quiet NaN on either side and quiets a signalling one
    quiet: bool = False  # the operands of mul hold no signalling NaN
    rounds_once: bool = False  # a multiply-add is fused on every target, in software where none has the instruction
    kind: str = field(init=False)
    type: str = field(init=False)
    mask: str = field(init=False)

    def __post_init__(self) -> None:
        self.kind = scalar_kind(self.dtype)
        self.type = vector(self.kind, self.lanes)
        self.mask = vector("i1", self.lanes)

    def value(self, tree: Expression, x: Value, y: Value, clean: str = "") -> Value:
        """The tree of x and y as a number; `clean` names the variables that never hold NaN (with "Q" none signals)."""
        truth, value = self._node(tree, x, y, clean)
        return self.number(value) if truth else value

    def accumulate(self, add: Expression, mul: Expression, total: Value, x: Value, y: Value) -> Value:
        """add(total, mul(x, y)), one step of a product; a sum of products becomes a fused multiply-add."""
        if is_plain(add, "add") and is_plain(mul, "mul"):
            if self.dtype.kind == "f":
                return (self._fma(x[0], y[0], total[0]),)
            if self.dtype.kind == "c":
                minus = self.writer.op(f"fneg {self.type} {x[1]}")
                real = self._fma(minus, y[1], self._fma(x[0], y[0], total[0]))
                return real, self._fma(x[1], y[0], self._fma(x[0], y[1], total[1]))
        # a running min or max never holds NaN, and a result of arithmetic never a signalling one
        quiet = "Q" if self.quiet or never_signals(mul) else ""
        return self.value(add, total, self.value(mul, x, y, quiet if self.quiet else ""), "x" + quiet)

    def _fma(self, a: str, b: str, c: str) -> str:
        t = self.type
        name = "fma" if self.rounds_once else "fmuladd"
        return self.writer.call(t, f"llvm.{name}.{self._suffix()}", [(t, a), (t, b), (t, c)])

    def _suffix(self) -> str:
        name = {"float": "f32", "double": "f64"}.get(self.kind, self.kind)
        return name if self.lanes == 1 else f"v{self.lanes}{name}"

    # nodes: (is a truth, registers) ---------------------------------------------------------------------------

    def _node(self, tree: Expression, x: Value, y: Value, clean: str) -> tuple[bool, Value]:
        if isinstance(tree, Variable):
            return False, (x if tree.name == "x" else y)
        if isinstance(tree, (Constant, Extreme)):
            return False, constant(constant_over(tree, self.dtype), self.dtype, self.lanes)
        assert isinstance(tree, Apply)
        parts = [self._node(arg, x, y, clean) for arg in tree.args]
        op = self.writer.op
        if tree.op in LOGIC:
            if self.dtype.kind == "b" and not any(truth for truth, _ in parts):
                return False, (self.logic(tree.op, [value[0] for _, value in parts], self.type),)
            return True, (self.logic(tree.op, [self._truth(p) for p in parts], self.mask),)
        if tree.op == "where":
            condition = self._truth(parts[0])
            yes, no = (self.number(v) if truth else v for truth, v in parts[1:])
            pairs = zip(yes, no, strict=True)
            return False, tuple(
                op(f"select {self.mask} {condition}, {self.type} {a}, {self.type} {b}") for a, b in pairs
            )
        numbers = [self.number(value) if truth else value for truth, value in parts]
        if tree.op in COMPARISONS:
            return True, (self.compare(tree.op, *numbers),)
        if self.dtype.kind == "c":
            return False, self._complex(tree.op, numbers)
        names = [value[0] for value in numbers]
        if self.dtype.kind == "b":
            return False, (self._boolean(tree.op, names),)
        if self.dtype.is_integer:
            return False, (self._integer(tree.op, names),)
        known = [_never_nan(arg, clean) for arg in tree.args]
        quiet = all(known[i] or never_signals(arg, clean) for i, arg in enumerate(tree.args))
        return False, (self._floating(tree.op, names, known, quiet),)

    def number(self, truth: Value) -> Value:
        """A truth as 0 or 1 of the dtype."""
        op = self.writer.op
        if self.dtype.kind in "fc":
            real = op(f"uitofp {self.mask} {truth[0]} to {self.type}")
            return (real,) if self.dtype.kind == "f" else (real, *constant(0, part(self.dtype), self.lanes))
        return (op(f"zext {self.mask} {truth[0]} to {self.type}"),)

    def _truth(self, node: tuple[bool, Value]) -> str:
        truth, value = node
        return value[0] if truth else self.nonzero(value)

    def nonzero(self, value: Value) -> str:
        """Which lanes are true: NaN is, −0 is not."""
        zero = constant(0, part(self.dtype), self.lanes)[0]
        compare = "fcmp une" if self.dtype.kind in "fc" else "icmp ne"
        found = [self.writer.op(f"{compare} {self.type} {v}, {zero}") for v in value]
        return found[0] if len(found) == 1 else self.writer.op(f"or {self.mask} {found[0]}, {found[1]}")

    def logic(self, name: str, args: list[str], kind: str) -> str:
        one = "true" if kind.endswith(("i1", "i1>")) else "1"
        element = "i1" if one == "true" else "i8"
        if name == "not":
            return self.writer.op(f"xor {kind} {args[0]}, {splat(one, element, self.lanes)}")
        return self.writer.op(f"{name} {kind} {args[0]}, {args[1]}")

    def compare(self, name: str, a: Value, b: Value) -> str:
        op = self.writer.op
        if self.dtype.kind in "fc":
            code = "une" if name == "ne" else f"o{name}"
            found = [op(f"fcmp {code} {self.type} {p}, {q}") for p, q in zip(a, b, strict=True)]
            if len(found) == 2:
                return op(f"{'and' if name == 'eq' else 'or'} {self.mask} {found[0]}, {found[1]}")
            return found[0]
        sign = "" if name in ("eq", "ne") else "s" if self.dtype.kind == "i" else "u"
        return op(f"icmp {sign}{name} {self.type} {a[0]}, {b[0]}")

    def _boolean(self, name: str, args: list[str]) -> str:
        if name == "abs":
            return args[0]
        if name in ("bit_xor", "invert"):
            return self.writer.op(f"xor {self.type} {args[0]}, {(*args, splat('1', 'i8', self.lanes))[1]}")
        how = "or" if name in ("add", "max", "bit_or") else "and"
        return self.writer.op(f"{how} {self.type} {args[0]}, {args[1]}")

    def _integer(self, name: str, args: list[str]) -> str:
        op, t = self.writer.op, self.type
        if name in ("add", "sub", "mul"):
            return op(f"{name} {t} {args[0]}, {args[1]}")  # without nsw: integers wrap
        if name == "neg":
            return op(f"sub {t} {splat('0', self.kind, self.lanes)}, {args[0]}")
        if name.startswith("bit_"):
            return op(f"{name.removeprefix('bit_')} {t} {args[0]}, {args[1]}")
        if name in ("invert", "mod", "floordiv", "shl", "shr"):
            return integer_operation(self, name, args)
        if name == "abs":
            if self.dtype.kind == "u":
                return args[0]
            return self.writer.call(t, f"llvm.abs.{self._suffix()}", [(t, args[0]), ("i1", "false")])
        sign = "s" if self.dtype.kind == "i" else "u"
        return self.writer.call(t, f"llvm.{sign}{name}.{self._suffix()}", [(t, args[0]), (t, args[1])])

    def _floating(self, name: str, args: list[str], clean: list[bool], quiet: bool) -> str:
        op, t = self.writer.op, self.type
        if name in ("add", "sub", "mul", "div"):
            return op(f"f{name} {t} {args[0]}, {args[1]}")
        if name == "neg":
            return op(f"fneg {t} {args[0]}")
        if name in ("min", "max"):
            return self._skip_nan(name, args[0], args[1], clean, quiet)
        if name == "logaddexp":
            return self._log_add_exp(args[0], args[1])
        if name == "log1p":
            return self._each_lane("log1p" if self.kind == "double" else "log1pf", args[0])
        return self.writer.call(t, f"llvm.{'fabs' if name == 'abs' else name}.{self._suffix()}", [(t, args[0])])

    def _skip_nan(self, name: str, a: str, b: str, clean: list[bool], quiet: bool) -> str:
        """fmin or fmax. vminps returns its second operand if either is NaN, so the clean one comes second. fminnm and
        vrangeps skip NaN on either side, but a signalling one makes their result NaN."""
        op, t = self.writer.op, self.type
        code = "olt" if name == "min" else "ogt"
        if quiet and self.has_fminnm:
            return self.writer.call(t, f"llvm.{name}num.{self._suffix()}", [(t, a), (t, b)])
        if clean[0] and not clean[1]:
            a, b = b, a
        elif not clean[1] and quiet and self.has_vrange and self.lanes * self.dtype.itemsize == 64:
            short, mask = ("ps", "i16") if self.kind == "float" else ("pd", "i8")
            control = 4 if name == "min" else 5
            rest: list[tuple[str, str | int]] = [("i32", control), (t, a), (mask, -1), ("i32", 4)]
            return self.writer.call(t, f"llvm.x86.avx512.mask.range.{short}.512", [(t, a), (t, b), *rest])
        better = op(f"select {self.mask} {op(f'fcmp {code} {t} {a}, {b}')}, {t} {a}, {t} {b}")
        if clean[0] or clean[1]:
            return better
        is_nan = op(f"fcmp uno {t} {b}, {b}")
        return op(f"select {self.mask} {is_nan}, {t} {a}, {t} {better}")

    def _log_add_exp(self, a: str, b: str) -> str:
        """max + log(1 + exp(−|a − b|)); equal values (infinities too) give a + log 2, a NaN gives NaN."""
        op, t = self.writer.op, self.type

        def number(value: float) -> str:
            return constant(value, self.dtype, self.lanes)[0]

        larger = op(f"select {self.mask} {op(f'fcmp ogt {t} {a}, {b}')}, {t} {a}, {t} {b}")
        distance = self.writer.call(t, f"llvm.fabs.{self._suffix()}", [(t, op(f"fsub {t} {a}, {b}"))])
        usual = op(
            f"fadd {t} {larger}, {Exponentials(self.kind, self.lanes, op, self._fma, number).softplus(distance)}"
        )
        same = op(f"fcmp oeq {t} {a}, {b}")
        found = op(f"select {self.mask} {same}, {t} {op(f'fadd {t} {a}, {number(LN2)}')}, {t} {usual}")
        is_nan = op(f"fcmp uno {t} {a}, {b}")
        return op(f"select {self.mask} {is_nan}, {t} {op(f'fadd {t} {a}, {b}')}, {t} {found}")

    def _each_lane(self, function: str, a: str) -> str:
        """A C library function without a vector form in LLVM, called for each lane."""
        call, op = self.writer.call, self.writer.op
        if self.lanes == 1:
            return call(self.kind, function, [(self.kind, a)])
        result = "poison"
        for lane in range(self.lanes):
            one = call(self.kind, function, [(self.kind, op(f"extractelement {self.type} {a}, i32 {lane}"))])
            result = op(f"insertelement {self.type} {result}, {self.kind} {one}, i32 {lane}")
        return result

    def _complex(self, name: str, args: list[Value]) -> Value:
        op, t = self.writer.op, self.type
        if name in ("add", "sub"):
            return tuple(op(f"f{name} {t} {a}, {b}") for a, b in zip(*args, strict=True))
        if name == "neg":
            return tuple(op(f"fneg {t} {a}") for a in args[0])
        if name == "mul":
            (a, b), (c, d) = args
            ac, bd, ad, bc = (op(f"fmul {t} {p}, {q}") for p, q in ((a, c), (b, d), (a, d), (b, c)))
            return op(f"fsub {t} {ac}, {bd}"), op(f"fadd {t} {ad}, {bc}")
        raise DtypeError(f"the cpu backend has no kernel for {name} of {self.dtype}: it runs in the reference backend")


def _never_nan(tree: Expression, clean: str) -> bool:
    if isinstance(tree, Variable):
        return tree.name in clean
    return isinstance(tree, Extreme) or (isinstance(tree, Constant) and tree.value == tree.value)


def never_signals(tree: Expression, clean: str = "") -> bool:
    """Whether a value is never a signalling NaN: arithmetic quiets them, loads and selects do not."""
    if isinstance(tree, Variable):
        return "Q" in clean or tree.name in clean
    return _never_nan(tree, clean) or (isinstance(tree, Apply) and tree.op in ("add", "sub", "mul", "div"))


def commutes(mul: Expression) -> bool:
    """Whether mul(x, y) is mul(y, x) by its form, so that a transposed product can use the same kernel."""
    commuting = ("add", "mul", "min", "max", "and", "or", "logaddexp", "bit_or", "bit_and", "bit_xor")
    return any(is_plain(mul, op) for op in commuting)


def operands_swapped(tree: Expression) -> Expression:
    """The tree with x and y operands_swapped."""
    if isinstance(tree, Variable):
        return Variable("y" if tree.name == "x" else "x")
    if isinstance(tree, Apply):
        return Apply(tree.op, tuple(operands_swapped(arg) for arg in tree.args))
    return tree

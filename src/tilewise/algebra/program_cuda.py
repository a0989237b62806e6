"""Programs as CUDA C: a local variable for each line."""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import COMPARISONS, Apply, Number, Variable
from tilewise.algebra.program import StraightLine, run, typed
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.algebra.to_cuda import FUNCTION, c_name, cuda_expression, literal
from tilewise.errors import DtypeError

LARGEST = 16  # bytes of a value: the size of one cp.async
PLAIN = ("add", "sub", "mul", "div", "neg", "bit_or", "bit_and", "bit_xor", "invert", "exp", "log", "log1p", "sqrt")


class Statements:
    """Values are names of local variables, and constants."""

    def __init__(self) -> None:
        self.body: list[str] = []

    def _put(self, kind: str, text: str) -> str:
        name = f"v{len(self.body)}"
        self.body.append(f"    const {kind} {name} = {text};")
        return name

    def constant(self, value: Number, dtype: DType) -> str:
        return literal(value, dtype)

    def operate(self, op: str, dtype: DType, args: list[str]) -> str:
        if op in ("min", "max"):  # one instruction, for floats too
            name = f"{'f' if dtype.kind == 'f' else ''}{op}{'f' if dtype.name == 'float32' else ''}"
            return self._put(c_name(dtype), f"{name}({args[0]}, {args[1]})")
        if op not in PLAIN:
            raise DtypeError(f"{op} of structured values has no kernel on a card: multiply host arrays")
        tree = Apply(op, (Variable("x"), Variable("y"))[: len(args)])
        return self._put(c_name(dtype), cuda_expression(tree, dtype, dict(zip("xy", args, strict=False))))

    def compare(self, op: str, dtype: DType, a: str, b: str) -> str:
        return self._put("bool", f"{a} {COMPARISONS[op]} {b}")

    def logic(self, op: str, args: list[str]) -> str:
        return self._put("bool", {"and": "{0} && {1}", "or": "{0} || {1}", "not": "!{0}"}[op].format(*args))

    def select(self, dtype: DType, truth: str, a: str, b: str) -> str:
        return self._put(c_name(dtype), f"{truth} ? {a} : {b}")

    def number(self, truth: str, dtype: DType) -> str:
        return self._put(c_name(dtype), f"({c_name(dtype)}){truth}")

    def truth(self, value: str, dtype: DType) -> str:
        return self.compare("ne", dtype, value, literal(0, dtype))


def value_bytes(dtypes: Sequence[DType]) -> int:
    """The size of a value on a card: aligned fields, rounded up to a power of two."""
    end = offsets(dtypes)[-1] + dtypes[-1].itemsize
    return max(4, 1 << (end - 1).bit_length())


def offsets(dtypes: Sequence[DType]) -> list[int]:
    """The offset of each field."""
    made, at = [], 0
    for dtype in dtypes:
        at = -(-at // dtype.itemsize) * dtype.itemsize
        made.append(at)
        at += dtype.itemsize
    return made


def structured_prelude(algebra: StructuredAlgebra) -> str:
    """The prelude of a plain kernel: values as structures, their zero, add, and the step."""
    dtypes, fields = algebra.dtypes, range(len(algebra.dtypes))
    size = value_bytes(dtypes)
    if size > LARGEST:
        names = ", ".join(f"{name} {d}" for name, d in zip(algebra.semiring.fields, dtypes, strict=True))
        raise DtypeError(f"{algebra.semiring} has values of {size} bytes ({names}), and a card takes up to {LARGEST}")
    members = " ".join(f"{c_name(d)} f{i};" for i, d in enumerate(dtypes))
    zero = ", ".join(literal(v, d) for v, d in zip(algebra.zero, dtypes, strict=True))

    def function(head: str, program: StraightLine, operands: Sequence[str], tail: str) -> str:
        body = Statements()
        inputs = {x: [f"{x}.f{i}" for i in fields] for x in operands}
        made = run(program, dtypes, inputs, body)
        body_text = [*body.body, *(f"    z.f{i} = {value};" for i, value in enumerate(made))]
        return "\n".join((f"{FUNCTION} {head} {{", "    Value z;", *body_text, f"    {tail}", "}", ""))

    ring = algebra.semiring
    return "\n".join(
        (
            f"// {ring} over {', '.join(d.name for d in dtypes)}",
            f"struct __align__({size}) Value {{ {members} }};",
            *(f"typedef Value {name};" for name in ("Element", "Partial", "Result", "Word", "Sum")),
            "typedef long long Index;",
            f"{FUNCTION} Value start() {{ return Value{{{zero}}}; }}",
            "#define ZERO start()",
            function("Value add(Value x, Value y)", ring.add, "xy", "return z;"),
            function("void step(Sum& t, Word x, Word y, int)", algebra.step, "txy", "t = z;"),
            f"{FUNCTION} Partial finish(Sum sum) {{ return sum; }}",
            "#define STORE(cell, value) cell = value",
            "",
        )
    )


def slots(algebra: StructuredAlgebra) -> float:
    """Issue slots of a step, in float32 multiply-adds: min, max, compares, selects and integers run at half rate, in
    parallel to them."""
    program = algebra.step
    kinds = typed(program, algebra.dtypes, str(algebra.semiring))
    total = slow = 0.0
    for line, kind in zip(program.lines, kinds, strict=True):
        if line.op in ("input", "constant") or kind is None:
            continue
        wide = 2.0 if kind.itemsize == 8 else 1.0
        total += wide
        slow += 0.0 if kind.kind == "f" and line.op in ("add", "sub", "mul", "neg") else 2 * wide
    return max(total, slow)

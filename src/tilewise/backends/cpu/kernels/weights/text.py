"""The check of two operands as LLVM IR: whether all of their integers are from the least weight to the greatest.

Relative to the least weight, lower values wrap to large unsigned ones: one unsigned maximum over each contiguous
operand decides.
"""

from __future__ import annotations

from tilewise.system.llvm_text import IRFunction, module

RECORD = ("count_m", "count_n", "lightest", "most")  # its fields: elements of each operand, and the range
VECTOR = 64  # bytes per vector


def weights_module(itemsize: int) -> str:
    """`within(record, M, N)` of elements at addresses, `within_arrays` of array objects: 1 where all are weights."""
    check = _Check(f"i{8 * itemsize}", VECTOR // itemsize)
    return module([check.farthest(), _within(), _within_arrays()])


class _Check:
    def __init__(self, kind: str, lanes: int) -> None:
        self.kind, self.lanes, self.vector = kind, lanes, f"<{lanes} x {kind}>"

    def farthest(self) -> IRFunction:
        """The greatest unsigned distance of `count` elements from the least weight."""
        f = IRFunction("farthest", "ptr X, i64 count, i64 lightest", result="i64")
        kind, vector = self.kind, self.vector
        lightest = "%lightest" if kind == "i64" else f.op(f"trunc i64 %lightest to {kind}")
        all_lightest = f.splat(kind, lightest, self.lanes)
        whole = f.mul(f.div("%count", self.lanes), self.lanes)
        with f.loop(0, whole, self.lanes, [(vector, "zeroinitializer")]) as v:
            x = f.load(vector, f.at(kind, "%X", v.index), 1)
            v.next = [self._higher(f, vector, f.op(f"sub {vector} {x}, {all_lightest}"), v.values[0])]
        most = f.call(kind, f"llvm.vector.reduce.umax.v{self.lanes}{kind}", [(vector, v.values[0])])
        with f.loop(whole, "%count", 1, [(kind, most)]) as s:
            x = f.load(kind, f.at(kind, "%X", s.index), 1)
            s.next = [self._higher(f, kind, f.op(f"sub {kind} {x}, {lightest}"), s.values[0])]
        f.do(f"ret i64 {s.values[0] if kind == 'i64' else f.op(f'zext {kind} {s.values[0]} to i64')}")
        return f

    def _higher(self, f: IRFunction, kind: str, x: str, y: str) -> str:
        shape = f"v{self.lanes}{self.kind}" if kind == self.vector else self.kind
        return f.call(kind, f"llvm.umax.{shape}", [(kind, x), (kind, y)])


def _within() -> IRFunction:
    f = IRFunction("within", "ptr record, ptr M, ptr N", public=True, result="i64")
    count_m, count_n, lightest, most = (f.load("i64", f.at("i64", "%record", number)) for number in range(len(RECORD)))
    sides = []
    for name, count in (("M", count_m), ("N", count_n)):
        far = f.op(f"call i64 @farthest(ptr %{name}, i64 {count}, i64 {lightest})")
        sides.append(f.test("ule", far, most))
    both = f.both(sides[0], sides[1])
    f.do(f"ret i64 {f.op(f'zext i1 {both} to i64')}")
    return f


def _within_arrays() -> IRFunction:
    f = IRFunction("within_arrays", "ptr record, ptr M, ptr N", public=True, result="i64")
    M, N = f.data_of("M", "N")
    f.do(f"ret i64 {f.op(f'call i64 @within(ptr %record, ptr {M}, ptr {N})')}")
    return f

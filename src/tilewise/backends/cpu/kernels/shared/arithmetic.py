"""The arithmetic of a kernel: the semiring's two trees, the dtypes at both ends, the target."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.expression import Apply, Expression, Number, Variable, is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_llvm import (
    KINDS,
    Renderer,
    Value,
    commutes,
    constant,
    never_signals,
    operands_swapped,
    part,
    scalar_kind,
    splat,
    vector,
)
from tilewise.backends.cpu.runtime.target import Target
from tilewise.core.blocking import AMX_TILE, is_heavy, register_tile
from tilewise.system.llvm_text import Around, IRFunction
from tilewise.system.once import once

NAN = {"float": "0x7FF8000000000000", "double": "0x7FF8000000000000"}  # quiet, positive, no payload, as LLVM writes it

X86_STATE = Around(
    """  %state = alloca [2 x i32]
  %usual = getelementptr i32, ptr %state, i64 1
  store i32 8064, ptr %usual
  call void @llvm.x86.sse.stmxcsr(ptr %state)
  call void @llvm.x86.sse.ldmxcsr(ptr %usual)
""",
    "  call void @llvm.x86.sse.ldmxcsr(ptr %state)\n",
    ("declare void @llvm.x86.sse.ldmxcsr(ptr)", "declare void @llvm.x86.sse.stmxcsr(ptr)"),
)
ARM_STATE = Around(
    "  %state = call i64 @llvm.aarch64.get.fpcr()\n  call void @llvm.aarch64.set.fpcr(i64 0)\n",
    "  call void @llvm.aarch64.set.fpcr(i64 %state)\n",
    ("declare i64 @llvm.aarch64.get.fpcr()", "declare void @llvm.aarch64.set.fpcr(i64)"),
)


@dataclass(frozen=True)
class Arithmetic:
    """P = M ⊗ N in `partial`, from elements of `source_m` and `source_n` to elements of `result`."""

    add: Expression
    mul: Expression
    zero: Number
    partial: DType
    source_m: DType
    source_n: DType
    result: DType
    target: Target
    tracks_arg: bool = False
    bits: bool = False  # a lane is a byte with eight columns of booleans
    k_pack: int = 1  # consecutive k in a 32-bit lane of a packed panel: 4 bytes or 2 of 16 bits
    pairs: bool = False  # complex numbers read in place: dtypes are those of a part, N and P have twice the columns
    amx: bool = False  # the microkernel multiplies AMX tiles, `k_pack` k to each word of 32 bits
    rounds: bool = False  # the microkernel has all k of its sums, and rounds them to P's elements
    ordered: bool = False  # sums are chains of fused multiply-adds in the order of k (`core.reproducible`)

    def __hash__(self) -> int:
        """Computed once: it is part of the key of every kernel."""
        return self._hash

    @once
    def _hash(self) -> int:
        return hash((self.add, self.mul, self.partial, self.source_m, self.source_n, self.result, self.target))

    @once
    def columns(self) -> int:
        """Columns of P per lane."""
        return 8 if self.bits else 1

    @once
    def width(self) -> int:
        """Lanes of a panel of N."""
        return self.tile[1] * self.lanes

    @once
    def lanes(self) -> int:
        return self.target.lanes(self.partial)

    @once
    def parts(self) -> int:
        """Registers a value takes: two for complex numbers."""
        return 2 if self.partial.kind == "c" else 1

    @once
    def sums_each(self) -> int:
        """Sums of a cell: by the real and by the imaginary parts of pairs."""
        return 2 if self.pairs else 1

    @once
    def kind(self) -> str:
        return scalar_kind(self.partial)

    @once
    def vector(self) -> str:
        return vector(self.kind, self.lanes)

    @once
    def bytes(self) -> int:
        """Bytes of one part in a packed panel."""
        return part(self.partial).itemsize

    @once
    def heavy(self) -> bool:
        """Whether a step calls the C library."""
        return is_heavy(self.add, self.mul)

    @once
    def tile(self) -> tuple[int, int]:
        """Rows and vectors of the register tile."""
        if self.amx:
            return AMX_TILE[0], AMX_TILE[1] // self.lanes
        machine = self.target.vector_bytes, self.target.registers
        return register_tile(*machine, self.partial, self.add, self.mul, tracks_arg=self.tracks_arg)

    @once
    def MR(self) -> int:
        return self.tile[0]

    @once
    def NR(self) -> int:
        return self.width * self.columns

    @once
    def spread(self) -> int:
        """How often a packed element of M is replicated: narrow integers fill 32 bits, which broadcast from memory
        without a vector port."""
        return 4 // self.bytes if self.bytes < 4 else 1

    @once
    def fused(self) -> bool:
        """Whether a step is one fused multiply-add."""
        return (
            is_plain(self.add, "add") and is_plain(self.mul, "mul") and (self.partial.kind in "fc" or self.k_pack > 1)
        )

    @once
    def compensates(self) -> bool:
        """Whether vpdpbusd, which takes one operand unsigned, multiplies two signed ones: M's sign bits are flipped
        (+128), and the panel of N begins with the compensation, from which sums start."""
        both = self.source_m.kind == self.source_n.kind == "i" and not self.amx
        return self.k_pack == 4 and both and self.result.itemsize > 1 and not self.target.by_lane

    @once
    def bounds_exponents(self) -> bool:
        """Whether packed panels begin with the lowest exponent of their elements: AMX flushes subnormal numbers."""
        return self.amx and self.partial.kind == "f"

    @once
    def splits(self) -> bool:
        """Whether AMX multiplies float32, each element as the sum of three bfloat16 (`interleaved/split.py`)."""
        return self.amx and self.source_m.name == "float32"

    @once
    def planes(self) -> int:
        """Packed values of an element, in planes of a panel one after the other."""
        return 3 if self.splits else 1

    @once
    def k_unit(self) -> int:
        """Panels are padded to a multiple of this many k: with AMX to whole tiles of 16 words."""
        return self.k_pack * (16 if self.amx else 1)

    def groups(self, k: int) -> int:
        """Elements or words per lane of a packed panel for this many k."""
        return -(-k // self.k_unit) * self.k_unit // self.k_pack

    def rows_m(self, k: int) -> int:
        """Rows of a packed panel of M for this many k; with the lowest exponent one more."""
        return self.planes * self.groups(k) + self.bounds_exponents

    def rows_n(self, k: int) -> int:
        """The same of N; with compensation one more, too."""
        return self.planes * self.groups(k) + (self.compensates or self.bounds_exponents)

    def emit_groups(self, f: IRFunction, k: str) -> str:
        if self.k_unit == 1:
            return k
        units = f.div(f.add(k, self.k_unit - 1), self.k_unit)
        return f.mul(units, 16) if self.amx else units

    def emit_rows_m(self, f: IRFunction, groups: str) -> str:
        return f.add(self._all_planes(f, groups), 1) if self.bounds_exponents else groups

    def emit_rows_n(self, f: IRFunction, groups: str) -> str:
        return f.add(self._all_planes(f, groups), 1) if self.compensates or self.bounds_exponents else groups

    def _all_planes(self, f: IRFunction, groups: str) -> str:
        return groups if self.planes == 1 else f.mul(groups, self.planes)

    @once
    def repeats(self) -> int:
        """How often packing replicates an element of M: once per lane, where a broadcast would take a vector port."""
        wide = self.target.by_lane and self.bytes >= 4 and not (self.fused or self.heavy or self.tracks_arg)
        return self.lanes if wide else 1

    @once
    def starts_from_p(self) -> bool:
        """Whether a packed tile's sums start from P's old cells, so that it ends with plain stores."""
        return self.repeats > 1 and (is_plain(self.add, "min") or is_plain(self.add, "max"))

    @once
    def packed_m_bytes(self) -> int:
        """Bytes of one part of one element in a packed panel of M."""
        return 4 if self.spread > 1 else self.bytes * self.repeats

    @once
    def packed_m_kind(self) -> str:
        """The type of that size."""
        return "i32" if self.spread > 1 else vector(self.kind, self.repeats)

    @once
    def float_state(self) -> Around | None:
        """Ordered products round to nearest and keep subnormal numbers, whatever state the calling thread is in."""
        return None if not self.ordered else ARM_STATE if self.target.by_lane else X86_STATE

    @once
    def sum_kind(self) -> str:
        """The type of an accumulator in a buffer, or in a P of that dtype: both parts of a complex number."""
        return self.kind if self.parts == 1 else f"[2 x {self.kind}]"

    @once
    def cell(self) -> str:
        """The type of what the microkernel of packed panels writes."""
        return self.element_p if self.rounds else self.sum_kind

    @once
    def same_storage(self) -> bool:
        """Whether M and N can be multiplied in place: no conversion, one register a value."""
        same = self.source_m == self.source_n == self.result == self.partial
        return same and self.partial.kind in "iuf" and self.partial.name in KINDS

    @once
    def element_m(self) -> str:
        """The LLVM type of M's elements in memory; and of N's, and of P's."""
        return scalar_kind(self.source_m)

    @once
    def element_n(self) -> str:
        return scalar_kind(self.source_n)

    @once
    def element_p(self) -> str:
        return scalar_kind(self.result)

    @once
    def quiets(self) -> bool:
        """Whether packing quiets signalling NaN: a min or max is then one instruction."""
        has_one = self.target.has_fminnm or self.target.has_vrange
        return has_one and self.partial.kind == "f" and not (self.heavy or never_signals(self.mul))

    def quiet(self, f: IRFunction, register: str, lanes: int) -> str:
        kind = vector(self.kind, lanes)
        suffix = ("" if lanes == 1 else f"v{lanes}") + f"f{8 * self.bytes}"
        return f.call(kind, f"llvm.canonicalize.{suffix}", [(kind, register)])

    def in_every_lane(self, f: IRFunction, register: str, number: int) -> str:
        """One lane of a vector, broadcast."""
        return f.shuffle(self.vector, register, "poison", [number] * self.lanes)

    def renderer(self, f: IRFunction, lanes: int, quiet: bool = False) -> Renderer:
        """`quiet`: the operands of mul hold no signalling NaN."""
        has = self.target.has_vrange, self.target.has_fminnm
        return Renderer(f, self.partial, lanes, *has, quiet, rounds_once=self.ordered)

    def canonical(self, f: IRFunction, value: Value, lanes: int) -> Value:
        """Ordered sums as they are stored: NaN has one bit pattern, and a min or max of zeros is +0."""
        if not self.ordered:
            return value
        kind, mask = vector(self.kind, lanes), vector("i1", lanes)
        if is_plain(self.add, "add"):
            nan = splat(NAN[self.kind], self.kind, lanes)
            return tuple(
                f.op(f"select {mask} {f.op(f'fcmp uno {kind} {x}, {x}')}, {kind} {nan}, {kind} {x}") for x in value
            )
        return tuple(
            f.op(f"fadd {kind} {x}, {zero}") for x, zero in zip(value, self.positive_zeros(lanes), strict=True)
        )

    def positive_zeros(self, lanes: int) -> Value:
        return constant(0.0, self.partial, lanes)

    @once
    def keeps_k_order(self) -> bool:
        """Whether a tile's loop over integers is unrolled over several k whose order LLVM must keep. AVX2: iterations
        are so short that the loop overhead takes their ports; on other targets LLVM spills even with a fixed order."""
        plain = any(is_plain(self.mul, op) for op in ("add", "min", "max"))
        selects = is_plain(self.add, "min") or is_plain(self.add, "max")
        narrow = self.partial.kind in "iu" and self.bytes == 4 and self.target.vector_bytes == 32
        return narrow and selects and plain and not (self.tracks_arg or self.bits)

    def pinned(self, f: IRFunction, registers: list[str]) -> list[str]:
        """The registers unchanged, through empty inline assembly: LLVM would reassociate chains of integer adds and
        hoist the loads of the next k above this one's sums; both need more registers than there are."""
        any_register = "w" if self.target.by_lane else "v" if self.target.registers >= 32 else "x"
        f.do('call void asm sideeffect "", "~{memory}"()')
        return [f.op(f'call {self.vector} asm "", "={any_register},0"({self.vector} {x})') for x in registers]

    def zeros(self, lanes: int) -> Value:
        return constant(self.zero, self.partial, lanes)

    def better(self, f: IRFunction, new: str, old: str, lanes: int) -> str:
        """Which lanes of `new` win over `old` in a min or max; a tie and a NaN lose."""
        assert isinstance(self.add, Apply)
        less = self.add.op == "min"
        kind = vector(self.kind, lanes)
        if self.partial.kind == "f":
            return f.op(f"fcmp {'olt' if less else 'ogt'} {kind} {new}, {old}")
        sign = "s" if self.partial.kind == "i" else "u"
        return f.op(f"icmp {sign}{'lt' if less else 'gt'} {kind} {new}, {old}")


@lru_cache(maxsize=1024)
def arithmetic(
    algebra: Algebra,
    source_m: DType,
    source_n: DType,
    target: Target,
    swapped: bool = False,
    arg: bool = False,
    bits: bool = False,
    k_pack: int = 1,
    pairs: bool = False,
    amx: bool = False,
    rounds: bool = False,
    ordered: bool = False,
) -> Arithmetic:
    """The arithmetic of an algebra. `swapped` computes Pᵀ = Nᵀ ⊗ Mᵀ: M and N are exchanged, and so are x and y of
    mul."""
    mul = algebra.semiring.mul
    if swapped:
        source_m, source_n = source_n, source_m
        mul = mul if commutes(mul) else operands_swapped(mul)
    add = algebra.semiring.add
    if bits:  # over bool every add and mul that is taken is or and and
        x, y = Variable("x"), Variable("y")
        add, mul = Apply("or", (x, y)), Apply("and", (x, y))
    if pairs:
        real = part(algebra.partial)
        return Arithmetic(add, mul, 0.0, real, real, real, real, target, pairs=True)
    partial = DTYPES["int32"] if k_pack > 1 and algebra.partial.kind in "iu" else algebra.partial
    dtypes = partial, source_m, source_n, algebra.result
    return Arithmetic(
        add, mul, algebra.zero, *dtypes, target, arg, bits, k_pack, amx=amx, rounds=rounds, ordered=ordered
    )

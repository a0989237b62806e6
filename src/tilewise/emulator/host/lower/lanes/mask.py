"""Which lanes run: a mask for each region, code that only the lanes run for which a condition holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.lanes.divergence import Divergence
from tilewise.emulator.host.lower.values import NotInLockstep
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Pointer, Scalar, Type

IN_LANES = (
    tree.Name, tree.Binary, tree.Ternary, tree.Index, tree.Member, tree.Unary, tree.Cast, tree.Construct, tree.Assign,
    tree.Step, tree.Call,
)  # fmt: skip


@dataclass(slots=True)
class Region:
    """Code that some of the lanes run: which, in `slot`; where it ends."""

    slot: str
    exit: str
    left: bool = False  # lanes may have left the region around it, too


@dataclass
class Lanes:
    """Of the kernel that is being lowered."""

    width: int
    rows: bool
    divergence: Divergence
    regions: list[Region] = field(default_factory=list)
    functions: dict[str, str] = field(default_factory=dict)  # text of what is called from here, by name
    index: dict[str, Any] = field(default_factory=dict)  # threadIdx
    spans: dict[str, tuple[Any, str, str]] = field(default_factory=dict)  # pointers: the variable, and its block's ends

    over: str = ""  # where it is noted that whole numbers of the host left their type

    @property
    def bits(self) -> str:
        return f"i{self.width}"

    def vector(self, llvm: str) -> str:
        return f"<{self.width} x {llvm}>"

    def varies(self, node: Any) -> bool:
        """Whether lanes may differ in this expression, which must be one of those that are known in lanes."""
        if id(node) not in self.divergence.varied:
            return False
        if not isinstance(node, IN_LANES):
            raise NotInLockstep(f"{type(node).__name__} at line {node.line}")
        return True

    def mask(self, b: Builder) -> str:
        return b.make(f"load {self.vector('i1')}, ptr {self.regions[-1].slot}")

    def mask_bits(self, b: Builder, mask: str = "") -> str:
        return b.make(f"bitcast {self.vector('i1')} {mask or self.mask(b)} to {self.bits}")

    def any(self, b: Builder, mask: str = "") -> str:
        return b.make(f"icmp ne {self.bits} {self.mask_bits(b, mask)}, 0")

    def all(self, b: Builder, mask: str = "") -> str:
        return b.make(f"icmp eq {self.bits} {self.mask_bits(b, mask)}, -1")

    def span(self, b: Builder, name: str) -> tuple[str, str] | None:
        """The ends of the block that the parameter of this name points into, where it has values everywhere."""
        found = self.spans.get(name)
        return found[1:] if found is not None and b.find(name) is found[0] else None

    def who(self, b: Builder) -> None:
        """Before a report: the thread that it names is the first lane that is active."""
        self.functions["first"] = ""
        b.emit(f"call void @first_lane({self.bits} {self.mask_bits(b)})")


def lanes_of(b: Builder) -> Lanes:
    found: Lanes = b.lanes
    return found


def register(type_: Type) -> str:
    """LLVM's type of one lane."""
    if isinstance(type_, Pointer):
        return "i64"
    if not isinstance(type_, Scalar) or type_.kind in ("void", "null"):
        raise NotInLockstep(f"a value of type {type_}")
    return type_.llvm


def vector(b: Builder, type_: Type) -> str:
    return lanes_of(b).vector(register(type_))


def opposite(b: Builder, mask: str) -> str:
    return b.make(f"xor {lanes_of(b).vector('i1')} {mask}, splat (i1 true)")


def enter(b: Builder, mask: str, exit_: str) -> Region:
    """A region of these lanes; it is left by taking it from `regions`."""
    truths = lanes_of(b).vector("i1")
    made = Region(b.alloca(truths), exit_)
    b.emit(f"store {truths} {mask}, ptr {made.slot}")
    lanes_of(b).regions.append(made)
    return made


@contextmanager
def region(b: Builder, condition: str) -> Iterator[None]:
    """Only the lanes for which the condition holds; skipped where there is none."""
    lanes = lanes_of(b)
    made = enter(b, b.make(f"and {lanes.vector('i1')} {lanes.mask(b)}, {condition}"), b.label())
    run = b.label()
    b.branch(lanes.any(b), run, made.exit)
    b.begin(run)
    yield
    lanes.regions.pop()
    b.begin(made.exit)
    leave_if_empty(b, made)


def leave_if_empty(b: Builder, inner: Region) -> None:
    """Behind a region in which lanes left the one around it too: on only where some are still here."""
    lanes = lanes_of(b)
    if not inner.left:
        return
    on = b.label()
    b.branch(lanes.any(b), on, lanes.regions[-1].exit)
    b.begin(on)


def narrow(b: Builder, inner: Region, condition: str) -> None:
    """Only lanes for which the condition holds stay in the region."""
    lanes = lanes_of(b)
    kept = b.make(f"and {lanes.vector('i1')} {lanes.mask(b)}, {condition}")
    b.emit(f"store {lanes.vector('i1')} {kept}, ptr {inner.slot}")


def leave_regions(b: Builder, regions: list[Region]) -> None:
    """The lanes that run here leave these regions; none is left in the innermost."""
    lanes = lanes_of(b)
    truths = lanes.vector("i1")
    others = opposite(b, lanes.mask(b))
    for r in regions:
        here = b.make(f"load {truths}, ptr {r.slot}")
        b.emit(f"store {truths} {b.make(f'and {truths} {here}, {others}')}, ptr {r.slot}")
    for r in regions[1:]:
        r.left = True
    b.jump(lanes.regions[-1].exit)

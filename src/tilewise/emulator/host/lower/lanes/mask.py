"""Masks of active lanes, one for each region: code that runs only for the lanes for which a condition holds."""

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
    """Code that some lanes run: the slot of its mask, and the label behind it."""

    slot: str
    exit: str
    left: bool = False  # a jump inside it may have deactivated lanes of the enclosing region


@dataclass
class Lanes:
    """State of the kernel that is being lowered."""

    width: int
    one_row: bool
    divergence: Divergence
    regions: list[Region] = field(default_factory=list)
    functions: dict[str, str] = field(default_factory=dict)  # texts of helper functions by name
    index: dict[str, Any] = field(default_factory=dict)  # threadIdx
    spans: dict[str, tuple[Any, str, str]] = field(default_factory=dict)  # pointers: the variable, its block's ends
    overflow: str = ""  # slot of the lanes in which host integer arithmetic overflowed

    @property
    def bits(self) -> str:
        return f"i{self.width}"

    def vector(self, llvm: str) -> str:
        return f"<{self.width} x {llvm}>"

    def varies(self, node: Any) -> bool:
        """Whether lanes may differ in this expression; raises if its kind of node cannot be lowered in lanes."""
        if id(node) not in self.divergence.varying_nodes:
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
        """Ends of the block that this pointer parameter points into, if the block is completely initialised."""
        found = self.spans.get(name)
        return found[1:] if found is not None and b.find(name) is found[0] else None

    def set_reporting_lane(self, b: Builder) -> None:
        """Before a report: set threadIdx to that of the first active lane."""
        self.functions["first"] = ""
        b.emit(f"call void @first_lane({self.bits} {self.mask_bits(b)})")


def lanes_of(b: Builder) -> Lanes:
    found: Lanes = b.lanes
    return found


def register(type_: Type) -> str:
    """LLVM type of one lane."""
    if isinstance(type_, Pointer):
        return "i64"
    if not isinstance(type_, Scalar) or type_.kind in ("void", "null"):
        raise NotInLockstep(f"a value of type {type_}")
    return type_.llvm


def vector(b: Builder, type_: Type) -> str:
    return lanes_of(b).vector(register(type_))


def inverted(b: Builder, mask: str) -> str:
    return b.make(f"xor {lanes_of(b).vector('i1')} {mask}, splat (i1 true)")


def enter(b: Builder, mask: str, exit_: str) -> Region:
    """Open a region of these lanes; the caller closes it by popping it from `regions`."""
    truths = lanes_of(b).vector("i1")
    made = Region(b.alloca(truths), exit_)
    b.emit(f"store {truths} {mask}, ptr {made.slot}")
    lanes_of(b).regions.append(made)
    return made


@contextmanager
def region(b: Builder, condition: str) -> Iterator[None]:
    """Run the body only in lanes for which the condition holds; skip it if there are none."""
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
    """Behind a region whose jumps deactivated lanes of the enclosing one: leave that, too, if no lane is active."""
    lanes = lanes_of(b)
    if not inner.left:
        return
    on = b.label()
    b.branch(lanes.any(b), on, lanes.regions[-1].exit)
    b.begin(on)


def narrow(b: Builder, inner: Region, condition: str) -> None:
    """Deactivate the lanes of the region for which the condition does not hold."""
    lanes = lanes_of(b)
    remaining = b.make(f"and {lanes.vector('i1')} {lanes.mask(b)}, {condition}")
    b.emit(f"store {lanes.vector('i1')} {remaining}, ptr {inner.slot}")


def leave_regions(b: Builder, regions: list[Region]) -> None:
    """Deactivate the currently active lanes in these regions, and jump behind the innermost, which is now empty."""
    lanes = lanes_of(b)
    truths = lanes.vector("i1")
    others = inverted(b, lanes.mask(b))
    for r in regions:
        here = b.make(f"load {truths}, ptr {r.slot}")
        b.emit(f"store {truths} {b.make(f'and {truths} {here}, {others}')}, ptr {r.slot}")
    for r in regions[1:]:
        r.left = True
    b.jump(lanes.regions[-1].exit)

"""Gathers and scatters without a check per lane, in blocks that are completely initialised.

One vector comparison shows that all lanes are active and all addresses are inside the block of a pointer parameter;
then each lane is loaded or stored, in order."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.lanes.linear import and_i1, broadcast
from tilewise.emulator.host.lower.lanes.mask import lanes_of
from tilewise.emulator.host.lower.values import Wide


def all_inside(b: Builder, address: Wide, span: tuple[str, str], size: int) -> str:
    """Whether all lanes are active and their bytes are inside the span; an unknown span is empty."""
    lanes = lanes_of(b)
    kind = lanes.vector("i64")
    length = b.make(f"sub i64 {span[1]}, {span[0]}")
    last = broadcast(b, "i64", b.make(f"sub i64 {length}, {size}"))
    offset = b.make(f"sub {kind} {address.vector}, {broadcast(b, 'i64', span[0])}")
    fine = lanes.all(b, b.make(f"icmp ule {kind} {offset}, {last}"))
    return and_i1(b, and_i1(b, fine, lanes.all(b)), b.make(f"icmp uge i64 {length}, {size}"))


def gather(b: Builder, llvm: str, address: Wide) -> str:
    lanes = lanes_of(b)
    kind, name = lanes.vector(llvm), f"gather_unchecked.{llvm}"
    if name not in lanes.functions:
        body, made = [], "poison"
        for lane in range(lanes.width):
            body += [*_address(lanes.vector("i64"), lane), f"  %x{lane} = load {llvm}, ptr %p{lane}, align 1"]
            body.append(f"  %m{lane} = insertelement {kind} {made}, {llvm} %x{lane}, i64 {lane}")
            made = f"%m{lane}"
        lanes.functions[name] = "\n".join(
            [f"define internal {kind} @{name}({lanes.vector('i64')} %a) #0 {{", *body, f"  ret {kind} {made}", "}"]
        )
    return b.make(f"call {kind} @{name}({lanes.vector('i64')} {address.vector})")


def scatter(b: Builder, llvm: str, address: Wide, text: str) -> None:
    """In the order of the lanes."""
    lanes = lanes_of(b)
    kind, name = lanes.vector(llvm), f"scatter_unchecked.{llvm}"
    if name not in lanes.functions:
        body = []
        for lane in range(lanes.width):
            body += [*_address(lanes.vector("i64"), lane), f"  %x{lane} = extractelement {kind} %v, i64 {lane}"]
            body.append(f"  store {llvm} %x{lane}, ptr %p{lane}, align 1")
        lanes.functions[name] = "\n".join(
            [f"define internal void @{name}({lanes.vector('i64')} %a, {kind} %v) #0 {{", *body, "  ret void", "}"]
        )
    b.emit(f"call void @{name}({lanes.vector('i64')} {address.vector}, {kind} {text})")


def _address(kind: str, lane: int) -> list[str]:
    return [f"  %a{lane} = extractelement {kind} %a, i64 {lane}", f"  %p{lane} = inttoptr i64 %a{lane} to ptr"]

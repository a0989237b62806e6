"""Divergent control flow: both sides of a branch run one after the other, each with the mask of its lanes."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder, Target
from tilewise.emulator.host.lower.conversion import convert, rvalue
from tilewise.emulator.host.lower.declare import condition
from tilewise.emulator.host.lower.lanes.linear import widen
from tilewise.emulator.host.lower.lanes.mask import (
    enter,
    inverted,
    lanes_of,
    leave_if_empty,
    leave_regions,
    narrow,
    region,
    vector,
)  # fmt: skip
from tilewise.emulator.host.lower.operands import common_type, unevaluated_type
from tilewise.emulator.host.lower.values import NotInLockstep, Value, Wide
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Array

LOGICAL = {"&&": "and", "||": "or"}


def _speculatable(b: Builder, node: Any) -> bool:
    """Whether it accesses no memory and has no side effect, so that inactive lanes may compute it, too."""
    if isinstance(node, tree.Name):
        local = b.find(node.name)
        return local is not None and not local.flag and not isinstance(local.type, Array)
    if isinstance(node, tree.Binary):
        return node.op != "," and _speculatable(b, node.left) and _speculatable(b, node.right)
    if isinstance(node, tree.Unary):
        return node.op in "+-!~" and _speculatable(b, node.operand)
    if isinstance(node, tree.Cast):
        return _speculatable(b, node.operand)
    if isinstance(node, tree.Member) and isinstance(node.base, tree.Name):
        return node.base.name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    return isinstance(node, tree.Number)


def _truths(b: Builder, node: Any) -> str:
    """An expression as a vector of i1."""
    return widen(b, convert(b, b.lower(node), types.BOOL)).vector


def logical(b: Builder, node: tree.Binary) -> Value:
    kind, op = lanes_of(b).vector("i1"), LOGICAL[node.op]
    left = _truths(b, node.left)
    if _speculatable(b, node.right):
        return Wide(types.BOOL, b.make(f"{op} {kind} {left}, {_truths(b, node.right)}"))
    slot = b.alloca(kind)
    b.emit(f"store {kind} {left}, ptr {slot}")
    with region(b, left if node.op == "&&" else inverted(b, left)):
        b.emit(f"store {kind} {b.make(f'{op} {kind} {left}, {_truths(b, node.right)}')}, ptr {slot}")
    return Wide(types.BOOL, b.make(f"load {kind}, ptr {slot}"))


def ternary(b: Builder, node: tree.Ternary) -> Value:
    condition, sides = _truths(b, node.condition), (node.yes, node.no)
    if _speculatable(b, node.yes) and _speculatable(b, node.no):
        made = [rvalue(b, b.lower(side)) for side in sides]
        type_ = common_type(b, *made)
        one, two = (widen(b, convert(b, value, type_)).vector for value in made)
    else:
        type_ = common_type(b, *(Value(unevaluated_type(b, side), "") for side in sides))
        slots = []
        for side, mask in zip(sides, (condition, inverted(b, condition)), strict=True):
            slots.append(b.alloca(vector(b, type_)))
            b.emit(f"store {vector(b, type_)} zeroinitializer, ptr {slots[-1]}")
            with region(b, mask):
                value = widen(b, convert(b, b.lower(side), type_))
                b.emit(f"store {vector(b, type_)} {value.vector}, ptr {slots[-1]}")
        one, two = (b.make(f"load {vector(b, type_)}, ptr {slot}") for slot in slots)
    kind = vector(b, type_)
    return Wide(type_, b.make(f"select {lanes_of(b).vector('i1')} {condition}, {kind} {one}, {kind} {two}"))


def branch(b: Builder, node: tree.If, test: Wide) -> None:
    truths = lanes_of(b).vector("i1")
    slot = b.alloca(truths)
    b.emit(f"store {truths} {test.vector}, ptr {slot}")
    for side in (node.yes, node.no):
        if side is not None:
            taken = b.make(f"load {truths}, ptr {slot}")
            with region(b, taken if side is node.yes else inverted(b, taken)), b.scope():
                b.statement(side)


def loop(b: Builder, node: Any) -> bool:
    """A loop whose lanes leave in different iterations: it runs while any lane is active. False for other loops."""
    lanes = lanes_of(b)
    if id(node) not in lanes.divergence.divergent_loops:
        return False
    head, check, body, step, go = (b.label() for _ in range(5))
    whole = enter(b, lanes.mask(b), b.label())
    if isinstance(node, tree.For) and node.init is not None:
        b.statement(node.init)
    if isinstance(node, tree.While) and node.after:
        b.jump(body)
    b.begin(head)
    if node.condition is not None:
        narrow(b, whole, widen(b, condition(b, node.condition)).vector)
    b.begin(check)
    b.branch(lanes.any(b), body, whole.exit)
    b.begin(body)
    enter(b, lanes.mask(b), step)
    b.loop_body(node.body, Target(whole.exit, step, len(b.scopes), len(lanes.regions), divergent=True))
    lanes.regions.pop()
    b.begin(step)
    b.branch(lanes.any(b), go, whole.exit)
    b.begin(go)
    if isinstance(node, tree.For) and node.step is not None:
        with b.full_expression():
            b.lower(node.step)
    b.jump(head)
    lanes.regions.pop()
    b.begin(whole.exit)
    leave_if_empty(b, whole)
    return True


def jump(b: Builder, node: tree.Jump) -> bool:
    """A divergent break or continue; False where all active lanes jump together."""
    target, regions = b.targets[-1], lanes_of(b).regions
    if target.divergent:
        b.clean_to(target.depth)
        leave_regions(b, regions[target.regions - (2 if node.keyword == "break" else 1) :])  # the loop's and its body's
    elif target.regions != len(regions):
        raise NotInLockstep(f"{node.keyword} at line {node.line}")
    return target.divergent

"""Class layout: bases first, then members, each at its alignment."""

from __future__ import annotations

from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Field, Record, Slot, Type, innermost
from tilewise.emulator.sema.constants import evaluate
from tilewise.emulator.sema.symbol_table import Environment, SymbolTable, Unknown

MAX_ALIGNMENT = 4096
DESTRUCTOR: Slot = ("~", (), False)


def lay_out(p: SymbolTable, record: Record) -> None:
    node = record.node
    record.laid_out = True
    if node is None:
        return
    if not node.complete:
        raise p.refusal(f"{record} is declared and never defined", node.line, max(1, node.column))
    env = p.record_environment(record)
    own = any("virtual" in m.specifiers or "pure" in m.specifiers for m in node.methods)
    bases = [p.resolve(written, env) for written in node.bases]
    if own and not any(isinstance(base, Record) and p.layout(base).vptr is not None for base in bases):
        record.vptr, record.align = 0, 8
    offset = 0 if record.vptr is None else 8
    for base in bases:
        if not isinstance(base, Record):
            raise p.refusal(f"{base} cannot be a base class", node.line, max(1, node.column))
        p.layout(base)
        at = -(-offset // base.align) * base.align
        record.bases.append((base, at))
        offset = at + (base.size if base.fields or base.bases or base.vptr is not None else 0)
        record.align = max(record.align, base.align)
        record.trivial = record.trivial and base.trivial
    plan_slots(p, record)
    record.trivial = record.trivial and record.vptr is None
    union_size = 0
    for item in node.fields:
        type_ = p.resolve(item.type, env)
        p.size_of(type_)
        align = max(1, type_.align)
        if node.keyword == "union":
            at, union_size = 0, max(union_size, type_.size)
        else:
            at = -(-offset // align) * align
            offset = at + type_.size
        record.align = max(record.align, align)
        record.trivial = record.trivial and is_trivial(p, type_)
        if item.name == "" and isinstance(type_, Record):  # members of an unnamed union
            record.fields += [Field(f.name, f.type, f.offset + at, f.init) for f in type_.fields]
        else:
            record.fields.append(Field(item.name, type_, at, item))
    aligned = node.alignment if isinstance(node.alignment, int) else _alignment(p, node, env)
    if aligned < 1 or aligned & (aligned - 1) or aligned > MAX_ALIGNMENT:
        raise p.refusal(f"{aligned} is no alignment", node.line, max(1, node.column))
    record.align = max(record.align, aligned)
    size = max(offset, union_size)
    record.size = max(1, -(-size // record.align) * record.align)
    if "~" in record.methods or any(copies(record, m) for m in record.methods.get("<new>", [])):
        record.trivial = False
    if any(copies(record, m) for m in record.methods.get("operator=", [])):
        record.trivial = False


def _alignment(p: SymbolTable, node: tree.Class, env: Environment) -> int:
    try:
        value = evaluate(p, node.alignment, env)[0]
    except Unknown:
        value = 0
    return value if isinstance(value, int) else 0


def copies(record: Record, method: object) -> bool:
    """Whether it is a user-defined copy or move operation."""
    assert isinstance(method, tree.Function)
    if len(method.parameters) != 1 or method.defaulted or method.deleted:
        return method.deleted and len(method.parameters) == 1
    written = method.parameters[0].type
    if not isinstance(written, tree.TypeReference):
        return False
    inner = written.to.of if isinstance(written.to, tree.TypeConst) else written.to
    if not isinstance(inner, tree.TypeName):
        return False
    own = record.node.name if record.node is not None else ""
    return inner.name.rpartition("::")[2] == own.rpartition("::")[2]


def is_trivial(p: SymbolTable, type_: Type) -> bool:
    """Whether it is copied byte by byte and has no destructor."""
    type_ = innermost(type_)
    return p.layout(type_).trivial if isinstance(type_, Record) else True


def slot_of(p: SymbolTable, method: tree.Function, record: Record) -> Slot:
    """The vtable slot: an overriding method has the same."""
    if method.name == "~":
        return DESTRUCTOR
    env = p.record_environment(record)
    parameters = tuple(str(p.resolve(q.type, env)) for q in method.parameters)
    return method.name, parameters, "const method" in method.specifiers


def plan_slots(p: SymbolTable, record: Record) -> None:
    """The vtable of a class whose bases are laid out: the slots of its first base with a vtable, then new ones."""
    for base, offset in record.bases:
        if base.vptr is not None and record.vptr is None:
            record.vptr, record.slots = offset + base.vptr, list(base.slots)
    inherited = {slot for base, _ in record.bases for slot in all_slots(base)}
    for method in record.node.methods if record.node is not None else ():
        if method.template or "static" in method.specifiers or method.name == "<new>":
            continue
        if not method.specifiers & {"virtual", "pure"}:
            continue
        slot = slot_of(p, method, record)
        if slot not in inherited and slot not in record.slots:
            record.slots.append(slot)


def all_slots(record: Record) -> set[Slot]:
    return set(record.slots).union(*(all_slots(base) for base, _ in record.bases))

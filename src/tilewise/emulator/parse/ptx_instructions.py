"""PTX instructions as C: FORMS[name](asm, parts of the opcode, operands) returns a statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.emulator.parse import ptx_tensor_cores
from tilewise.emulator.parse.ptx_operands import TYPES, UnknownInstructionError, address, elements

SPECIAL = {
    "laneid": "(unsigned int)(__thread_number() & 31)", "warpid": "(unsigned int)(__thread_number() >> 5)",
    "smid": "(__block_number() % 40u)", "nsmid": "40u", "clock": "(unsigned int)clock64()", "clock64": "clock64()",
    "globaltimer": "clock64()", "globaltimer_lo": "(unsigned int)clock64()", "gridid": "0", "warpsize": "32u",
    **{f"lanemask_{name}": f"__lane_bits({i})" for i, name in enumerate(("eq", "lt", "le", "gt", "ge"))},
    **{f"{short}.{c}": f"{name}.{c}" for short, name in
       (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim")) for c in "xyz"},
}  # fmt: skip
COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">",
            "hs": ">=", "equ": "==", "neu": "!="}  # fmt: skip
OPERATORS = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "div": "/", "rem": "%"}
FUNCTIONS = {"sqrt": "sqrt", "rsqrt": "rsqrt", "sin": "sin", "cos": "cos", "ex2": "exp2", "lg2": "log2",
             "tanh": "tanh", "abs": "fabs"}  # fmt: skip
ATOMIC = {"add": "atomicAdd", "min": "atomicMin", "max": "atomicMax", "exch": "atomicExch", "cas": "atomicCAS",
          "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor", "inc": "atomicInc", "dec": "atomicDec"}  # fmt: skip


def _type(opcode: list[str], which: int = -1) -> str:
    return [part for part in opcode if part in TYPES][which]


def _unsigned(type_: str) -> str:
    return type_.replace("s", "u") if type_[0] == "s" else type_


def _bits(type_: str) -> int:
    return int(type_[1:])


def _binary(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    mark = OPERATORS[opcode[0]]
    inner = type_ if mark in "/%" else _unsigned(type_)  # sums of int wrap in PTX
    return str(unit.write(o[0], type_, f"({TYPES[type_]})({unit.read(o[1], inner)} {mark} {unit.read(o[2], inner)})"))


def _product(unit: Any, opcode: list[str], a: str, b: str) -> tuple[str, str]:
    """A product's value and its type."""
    type_ = _type(opcode)
    if type_[0] == "f":
        return f"{unit.read(a, type_)} * {unit.read(b, type_)}", type_
    if "wide" in opcode:
        wide = f"{type_[0]}{2 * _bits(type_)}"
        return f"({TYPES[wide]}){unit.read(a, type_)} * ({TYPES[wide]}){unit.read(b, type_)}", wide
    if "hi" in opcode:
        if type_ not in ("u32", "s32"):
            raise UnknownInstructionError(".".join(opcode))
        name = "__umulhi" if type_ == "u32" else "__mulhi"
        return f"{name}({unit.read(a, type_)}, {unit.read(b, type_)})", type_
    inner = _unsigned(type_)
    return f"{unit.read(a, inner)} * {unit.read(b, inner)}", inner


def _mul(unit: Any, opcode: list[str], o: list[str]) -> str:
    value, type_ = _product(unit, opcode, o[1], o[2])
    return str(unit.write(o[0], type_, value))


def _mad(unit: Any, opcode: list[str], o: list[str]) -> str:
    if _type(opcode)[0] == "f":
        type_ = _type(opcode)
        name = "fmaf" if type_ == "f32" else "fma"
        return str(unit.write(o[0], type_, f"{name}({', '.join(unit.read(x, type_) for x in o[1:4])})"))
    value, type_ = _product(unit, opcode, o[1], o[2])
    inner = _unsigned(type_)
    return str(unit.write(o[0], type_, f"({TYPES[inner]})({value}) + {unit.read(o[3], inner)}"))


def _move(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    if o[1].startswith("{"):
        low, high = (x.strip() for x in o[1].strip("{}").split(","))
        half = f"b{_bits(type_) // 2}"
        wide = TYPES[_unsigned(type_)]
        value = f"({wide}){unit.read(low, half)} | ({wide}){unit.read(high, half)} << {_bits(half)}"
        return str(unit.write(o[0], type_, value))
    if o[0].startswith("{"):
        low, high = (x.strip() for x in o[0].strip("{}").split(","))
        half = f"b{_bits(type_) // 2}"
        value = unit.read(o[1], _unsigned(type_))
        return f"{unit.write(low, half, value)} {unit.write(high, half, f'{value} >> {_bits(half)}')}"
    return str(unit.write(o[0], type_, unit.read(o[1], type_)))


def _shift(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    bits, count = _bits(type_), unit.read(o[2], "u32")
    if opcode[0] == "shl":
        value = f"{count} > {bits - 1} ? 0 : {unit.read(o[1], _unsigned(type_))} << {count}"
    else:
        most = bits - 1 if type_[0] == "s" else -1
        value = f"{count} > {bits - 1} ? " + (f"{unit.read(o[1], type_)} >> {most}" if most > 0 else "0")
        value += f" : {unit.read(o[1], type_)} >> {count}"
    return str(unit.write(o[0], type_, value))


def _setp(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    return f"{unit.name(o[0])} = {unit.read(o[1], type_)} {COMPARED[opcode[1]]} {unit.read(o[2], type_)};"


def _selp(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    return str(unit.write(o[0], type_, f"{unit.name(o[3])} ? {unit.read(o[1], type_)} : {unit.read(o[2], type_)}"))


def _least(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    a, b = unit.read(o[1], type_), unit.read(o[2], type_)
    return str(unit.write(o[0], type_, f"{b} {'<' if opcode[0] == 'min' else '>'} {a} ? {b} : {a}"))


def _function(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    value = unit.read(o[1], type_)
    if opcode[0] == "abs" and type_[0] != "f":
        return str(unit.write(o[0], type_, f"{value} < 0 ? -{value} : {value}"))
    return str(unit.write(o[0], type_, f"{FUNCTIONS[opcode[0]]}{'f' if type_ == 'f32' else ''}({value})"))


def _unary(form: str) -> Callable[[Any, list[str], list[str]], str]:
    def made(unit: Any, opcode: list[str], o: list[str]) -> str:
        type_ = _type(opcode)
        return str(unit.write(o[0], type_, form.format(unit.read(o[1], type_))))

    return made


def _count(unit: Any, opcode: list[str], o: list[str]) -> str:
    name = {"popc": "__popc", "clz": "__clz"}[opcode[0]] + ("ll" if _bits(_type(opcode)) == 64 else "")
    return str(unit.write(o[0], "u32", f"{name}({unit.read(o[1], _type(opcode))})"))


def _field(unit: Any, opcode: list[str], o: list[str]) -> str:
    """bfe: extract a bit field."""
    type_ = _type(opcode)
    if _bits(type_) != 32:
        raise UnknownInstructionError(".".join(opcode))
    value, at, many = unit.read(o[1], "u32"), unit.read(o[2], "u32"), unit.read(o[3], "u32")
    part = f"((unsigned long){value} >> ({at} & 255) << 1 & ((2ul << ({many} & 255)) - 2)) >> 1"
    if type_[0] == "s":
        part = f"((long)(({part}) << (64 - ({many} & 63))) >> (64 - ({many} & 63)))"
    return str(unit.write(o[0], type_, f"{many} == 0 || {at} > 31 ? 0 : {part}"))


def _insert(unit: Any, opcode: list[str], o: list[str]) -> str:
    """bfi: insert a bit field."""
    if _type(opcode) != "b32":
        raise UnknownInstructionError(".".join(opcode))
    part, into, at, many = (unit.read(x, "u32") for x in o[1:5])
    mask = f"(unsigned int)(((1ul << ({many} & 63)) - 1) << ({at} & 63))"
    return str(unit.write(o[0], "b32", f"({into} & ~{mask}) | ({part} << ({at} & 31) & {mask})"))


ROUNDED = {"f16": "__half_bits", "bf16": "__bf16_bits", "tf32": "__tf32_bits"}  # functions of ptx.h
WIDENED = {"f16": "__half_value({})", "bf16": "__uint_as_float((unsigned int)({}) << 16)"}


def _convert_half(unit: Any, opcode: list[str], o: list[str]) -> str:
    """cvt to or from a half or tf32: to nearest, also two at once."""
    to, source = (part for part in opcode if part in TYPES or part.removesuffix("x2") in ROUNDED)
    if source in WIDENED and to == "f32":
        return str(unit.write(o[0], to, WIDENED[source].format(unit.read(o[1], "b16"))))
    if source != "f32" or not {"rn", "rna"}.intersection(opcode) or "relu" in opcode:
        raise UnknownInstructionError(".".join(opcode))
    parts = [f"{ROUNDED[to.removesuffix('x2')]}({unit.read(x, source)})" for x in o[1:]]
    if to.endswith("x2"):
        return str(unit.write(o[0], "b32", f"(unsigned int){parts[0]} << 16 | {parts[1]}"))
    return str(unit.write(o[0], "b32" if to == "tf32" else "b16", parts[0]))


def _convert(unit: Any, opcode: list[str], o: list[str]) -> str:
    if any(part.removesuffix("x2") in ROUNDED for part in opcode):
        return _convert_half(unit, opcode, o)
    to, source = _type(opcode, -2), _type(opcode)
    value = unit.read(o[1], source)
    rounding = {"rni": "rint", "rmi": "floor", "rpi": "ceil"}
    for part in opcode:
        if part in rounding:
            value = f"{rounding[part]}({value})"
    return str(unit.write(o[0], to, f"({TYPES[to]})({value})"))


def _load(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    at = address(unit, opcode, o[1], type_)
    return " ".join(unit.write(x, type_, f"({at})[{i}]") for i, x in enumerate(elements(o[0])))


def _store(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    at = address(unit, opcode, o[0], type_)
    return " ".join(f"({at})[{i}] = {unit.read(x, type_)};" for i, x in enumerate(elements(o[1])))


def _atomic(unit: Any, opcode: list[str], o: list[str]) -> str:
    type_ = _type(opcode)
    name = [ATOMIC[part] for part in opcode[1:] if part in ATOMIC][0]  # noqa: RUF015 - an IndexError is caught
    first = 1 if opcode[0] == "atom" else 0
    given = ", ".join(unit.read(x, type_) for x in o[first + 1 :])
    call = f"{name}({address(unit, opcode, o[first], type_)}, {given})"
    return str(unit.write(o[0], type_, call)) if first else f"{call};"


def _to_address(unit: Any, opcode: list[str], o: list[str]) -> str:
    """cvta: between generic and shared addresses."""
    type_ = _type(opcode)
    value = unit.name(o[1])
    if "shared" in opcode:
        call = "__cvta_generic_to_shared((const void*)({}))" if "to" in opcode else (
            "(unsigned long)__cvta_shared_to_generic((unsigned long)({}))"
        )  # fmt: skip
        value = call.format(value)
    return str(unit.write(o[0], type_, f"(unsigned long)({value})"))


def _copy(unit: Any, opcode: list[str], o: list[str]) -> str:
    """cp.async: of `size` bytes, of which those from the optional fourth operand on are zeros."""
    if "commit_group" in opcode:
        return "__pipeline_commit();"
    if "wait_group" in opcode:
        return f"__pipeline_wait_prior({unit.read(o[0], 's32')});"
    if "wait_all" in opcode:
        return "__pipeline_commit(); __pipeline_wait_prior(0);"
    to = address(unit, ["shared"], o[0], "u32")
    source = address(unit, [], o[1], "u32")
    size = unit.read(o[2], "s32")
    zeros = f"{size} - {unit.read(o[3], 's32')}" if len(o) > 3 else "0"
    return f"__pipeline_memcpy_async({to}, {source}, {size}, {zeros});"


def _nothing(unit: Any, opcode: list[str], o: list[str]) -> str:
    return ""


FORMS: dict[str, Callable[[Any, list[str], list[str]], str]] = {
    **dict.fromkeys(OPERATORS, _binary), **dict.fromkeys(("min", "max"), _least),
    **dict.fromkeys(FUNCTIONS, _function), **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("mad", "fma"), _mad), **dict.fromkeys(("atom", "red"), _atomic),
    **dict.fromkeys(("membar", "fence", "prefetch", "nanosleep", "griddepcontrol"), _nothing),
    **dict.fromkeys(("popc", "clz"), _count), "mul": _mul, "mov": _move, "setp": _setp, "selp": _selp,
    "neg": _unary("-{}"), "not": _unary("~{}"), "brev": _unary("__brev({})"), "rcp": _unary("1 / {}"),
    "bfe": _field, "bfi": _insert, "cvt": _convert, "cvta": _to_address, "ld": _load, "ldu": _load, "st": _store,
    "cp": _copy, "mma": ptx_tensor_cores.multiply, "ldmatrix": ptx_tensor_cores.load_matrices,
    "stmatrix": ptx_tensor_cores.store_matrices,
    "bar": lambda unit, opcode, o: "__syncwarp();" if "warp" in opcode else "__syncthreads();",
    "barrier": lambda unit, opcode, o: "__syncthreads();",
    "activemask": lambda unit, opcode, o: str(unit.write(o[0], "b32", "__activemask()")),
    "trap": lambda unit, opcode, o: "__trap();", "exit": lambda unit, opcode, o: "return;",
}  # fmt: skip

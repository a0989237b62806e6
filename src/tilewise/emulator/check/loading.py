"""From a file to a compiled kernel: constants overridden, the kernel chosen, its template arguments found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewise.emulator import budget
from tilewise.emulator.check.roles import matrix_struct
from tilewise.emulator.compile.kernel import DEFAULT_TILE, SUPPLIED, TILE_NAMES, Compiler, compile_kernel
from tilewise.emulator.host.launch_site import find_launches
from tilewise.emulator.host.translation_unit import Unit, kernel_unit
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.program import Program
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.parser import read_tokens
from tilewise.emulator.parse.tree import Function
from tilewise.emulator.parse.types import Record, Scalar, Type
from tilewise.emulator.sema.semantics import Semantics
from tilewise.emulator.sema.symbol_table import SymbolTable
from tilewise.emulator.sema.type_resolution import argument
from tilewise.emulator.source import literal
from tilewise.emulator.source.lexer import tokenize
from tilewise.emulator.source.preprocess import Macro
from tilewise.emulator.source.source import Source, Span, read_source
from tilewise.errors import KernelError, LimitError, UsageError


@dataclass
class Loaded:
    source: Source
    macros: dict[str, Macro]
    table: SymbolTable
    defines: dict[str, str | int]
    tile: int | None  # requested
    own_tile: int | None  # the file's
    limits: Limits
    integers: dict[str, int] = field(default_factory=dict)  # values of object-like macros and file-level constants

    @property
    def width(self) -> int:
        """The tile in force."""
        return self.tile or self.own_tile or DEFAULT_TILE

    @property
    def refused(self) -> dict[str, KernelError]:
        return self.table.entities.refused

    def compiler(self, bindings: Mapping[str, Any] | None = None) -> Compiler:
        made = Compiler(self.table, limits=self.limits, tile=self.tile)
        made.env.bindings = dict(bindings or {})
        return made


def load(kernel: str | Path, defines: Mapping[str, str | int] | None, tile: int | None, limits: Limits) -> Loaded:
    """Read, preprocess and parse; `tile` replaces the file's own tile constants."""
    if tile is not None and not (isinstance(tile, int) and 1 <= tile <= 32):
        raise UsageError(f"tile={tile!r} must be a whole number from 1 to 32: a block has at most 1024 threads")
    source = read_source(kernel)
    wanted: dict[str, str | int] = dict(defines or {})
    loaded = _parse(source, wanted, tile, limits)
    own = {n: loaded.integers[n] for n in TILE_NAMES if n in loaded.integers and n not in wanted}
    if own:
        loaded.own_tile = next(iter(own.values()))
    if tile is not None and own and loaded.own_tile != tile:
        same = {n for n, v in own.items() if v == loaded.own_tile}
        loaded = redefine(loaded, dict.fromkeys(same, tile))
    return loaded


def redefine(loaded: Loaded, values: Mapping[str, int]) -> Loaded:
    """The same file with some of its constants changed."""
    macros = {n: v for n, v in values.items() if n in loaded.macros}
    again = _parse(loaded.source, {**loaded.defines, **macros}, loaded.tile, loaded.limits)
    again.own_tile = loaded.own_tile
    for name, value in values.items():
        item = again.table.entities.variables.get(name)
        if item is not None:
            item.init = tree.Number(value, types.INT, line=item.line, column=item.column)
            again.integers[name] = value
    return again


def _parse(source: Source, defines: dict[str, str | int], tile: int | None, limits: Limits) -> Loaded:
    try:
        budget.enter("preprocessing")
        unit = kernel_unit(source, {k: str(v) for k, v in defines.items()}, limits)
        budget.enter("parsing")
        library = set(unit.declared.entities.order)
        supplied = _supply(unit)
        declared = read_tokens(unit.source, unit.tokens, unit.declared, library=False)
    except RecursionError:
        raise LimitError(f"{source.name}: nested too deep") from None
    budget.enter("compiling")
    table = Semantics(unit.source, declared.entities, declared.names)
    table.library_variables, table.supplied = library, supplied
    loaded = Loaded(unit.source, unit.macros, table, defines, tile, None, limits)
    for name, macro in unit.macros.items():
        body = macro.body
        while len(body) >= 3 and body[0].text == "(" and body[-1].text == ")":
            body = body[1:-1]
        if macro.parameters is None and len(body) == 1 and body[0].kind == "number":
            try:
                loaded.integers[name] = literal.integer_value(source, body[0])
            except KernelError:
                continue
    compiler = loaded.compiler()
    for name, item in table.entities.variables.items():
        if item.init is not None and name not in library:
            try:
                loaded.integers[name] = compiler.constant(item.init)
            except (KernelError, RecursionError):
                continue
    return loaded


def _supply(unit: Unit) -> set[str]:
    """Declare the types of missing course headers that the file uses and does not define; their names."""
    names = {t.text for t in unit.tokens if t.kind == "name" and t.text in SUPPLIED}
    texts = [t.text for t in unit.tokens]
    for i, text in enumerate(texts[1:], 1):
        if text in names and (
            texts[i - 1] in ("struct", "class", "union", "}", "using", "typename")
            or (texts[i + 1] == ";" and "typedef" in texts[max(0, i - 8) : i])
        ):
            names.discard(text)
    for name in names:
        kind, _, rest = SUPPLIED[name].partition(" ")
        text = f"struct {name} {rest};" if kind == "struct" else f"typedef {kind} {name};"
        read_tokens(unit.source, [t for t in tokenize(Source(name, text)) if t.kind != "newline"], unit.declared, True)
    return names


def choose(loaded: Loaded, entry: str | None) -> list[Function]:
    """The requested kernel, or all kernels of the file."""
    kernels = loaded.table.entities.kernels
    refused = loaded.refused
    if entry is not None:
        if entry in refused:
            raise refused[entry]
        chosen = [k for k in kernels if k.short == entry]
        if not chosen:
            names = ", ".join(k.short for k in kernels) or "none"
            raise UsageError(f"{loaded.source.name} has no kernel {entry}; it has {names}")
        return _of_launched_lengths(loaded, chosen)[:1]
    if not kernels and refused:
        raise next(iter(refused.values()))
    if not kernels:
        raise KernelError("there is no __global__ function in this file", loaded.source.name)
    return _of_launched_lengths(loaded, kernels)


def _of_launched_lengths(loaded: Loaded, kernels: list[Function]) -> list[Function]:
    """Of a kernel with a parameter pack the versions that a launch has arguments for; else that with one element."""
    out = [k for k in kernels if not k.of_pack]
    for name in dict.fromkeys(k.name for k in kernels if k.of_pack):
        versions = [k for k in kernels if k.of_pack and k.name == name]
        counts = {len(site.launch.arguments) for site in find_launches(loaded.table, versions[0].short)}
        out += [k for k in versions if len(k.parameters) in counts] or versions[1:2]
    return out


def uses_shared(function: Function) -> bool:
    return any(t.text == "__shared__" for t in tokens_of(function.tokens or []))


def template_values(loaded: Loaded, function: Function, launch: list[Any]) -> dict[str, Any]:
    """Template arguments of a kernel: the launch's, else the tile for numbers and float for types."""
    out: dict[str, Any] = {}
    numbers = [p.name for p in function.template if not p.is_type]
    for i, parameter in enumerate(function.template):
        if parameter.name == "<none>":
            continue
        given = launch[i] if i < len(launch) else None
        if parameter.name in loaded.defines:
            given = (int(loaded.defines[parameter.name]), types.INT)
        elif loaded.tile is not None and parameter.name in TILE_NAMES:
            given = (loaded.tile, types.INT)
        if given is None and parameter.default is not None:
            given = argument(loaded.table, parameter.default, loaded.compiler(out).env)
        if given is None and not parameter.is_type and len(numbers) > 1 and parameter.name not in TILE_NAMES:
            raise UsageError(
                f"{function.short} is a template and nothing in the file says what {parameter.name} is: "
                f"give it with -D {parameter.name}=…"
            )
        if given is None:
            given = types.FLOAT if parameter.is_type else (loaded.width, types.INT)
        if isinstance(given, tuple) and parameter.type is not None:
            type_ = loaded.table.resolve(parameter.type, loaded.compiler(out).env)
            if isinstance(type_, types.Scalar) and types.wrap(type_, given[0]) != given[0]:
                message = f"{parameter.name} = {given[0]} does not fit an {type_}"
                raise loaded.source.error(message, function.line, function.column)
        out[parameter.name] = given
    return out


def compile_entry(loaded: Loaded, function: Function, template: dict[str, Any]) -> Program:
    """Compile a kernel; integers that may be leading dimensions are tracked through indices."""
    return compile_kernel(
        loaded.table,
        function,
        template=template,
        tile=loaded.tile,
        dimensions=dimensions_of(loaded, function, template),
        limits=loaded.limits,
    )


def dimensions_of(loaded: Loaded, function: Function, template: dict[str, Any]) -> frozenset[str]:
    """Names that may be leading dimensions: parameters, their members, or constants of the file."""
    compiler = loaded.compiler(template)
    compiler.env.scope = function.scope
    dimensions: set[str] = set()
    sized = False
    for parameter in function.parameters:
        type_: Type = compiler.resolve(parameter.type)
        if isinstance(type_, types.Reference):
            type_ = type_.to
        struct = matrix_struct(type_)
        if isinstance(type_, Scalar) and not type_.floating and type_ is not types.BOOL:
            dimensions.add(parameter.name)
            sized = True
        elif struct is not None and isinstance(type_, Record):
            sized = True
            for f in struct.members:
                if isinstance(f.type, Scalar) and not f.type.floating:
                    dimensions.add(f"{parameter.name}.{f.name}")
        elif struct is not None:
            sized = True
    if not sized:
        dimensions |= {n for n in loaded.integers if n not in TILE_NAMES and n not in loaded.defines}
        dimensions |= {n for n in loaded.defines if n in loaded.integers and n not in TILE_NAMES}
    return frozenset(dimensions)


def place_of(span: Span, loaded: Loaded) -> Any:
    return loaded.source.place(span.line, span.column, span.length)

"""From a file to a program that can be launched: constants overridden, the kernel chosen, its launch found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilewise.emulator import budget
from tilewise.emulator.check.roles import matrix_like, matrix_struct
from tilewise.emulator.compile.dataflow import DataFlow
from tilewise.emulator.compile.kernel import DEFAULT_TILE, TILE_NAMES, Compiler, compile_kernel
from tilewise.emulator.frontend import ctype, literal
from tilewise.emulator.frontend.ctype import Scalar, Struct, Type
from tilewise.emulator.frontend.parser import Parser
from tilewise.emulator.frontend.preprocess import Preprocessed, Preprocessor
from tilewise.emulator.frontend.source import Source, read_source
from tilewise.emulator.frontend.spelling import with_known_spellings
from tilewise.emulator.frontend.syntax import File, Function, Number, Span
from tilewise.emulator.host.launch_site import LaunchSite, find_launches
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.program import Program
from tilewise.errors import KernelError, LimitError, UsageError


@dataclass
class Loaded:
    source: Source
    pre: Preprocessed
    file: File
    defines: dict[str, str | int]
    tile: int | None  # asked for
    own_tile: int | None  # the file's
    limits: Limits
    integers: dict[str, int] = field(default_factory=dict)  # object-like macros and constants that are integers

    @property
    def width(self) -> int:
        """The tile in force."""
        return self.tile or self.own_tile or DEFAULT_TILE


def load(kernel: str | Path, defines: Mapping[str, str | int] | None, tile: int | None, limits: Limits) -> Loaded:
    """Read, expand and parse; with `tile`, the file's own tile constants give way to it."""
    if tile is not None and not 1 <= tile <= 32:
        raise UsageError(f"tile must be from 1 to 32, not {tile}")
    source = read_source(kernel)
    wanted: dict[str, str | int] = dict(defines or {})
    loaded = _parse(source, wanted, tile, limits)
    own = {n: loaded.integers[n] for n in TILE_NAMES if n in loaded.integers and n not in wanted}
    if own:
        loaded.own_tile = next(iter(own.values()))
    if tile is not None and own:
        same = {n for n, v in own.items() if v == loaded.own_tile}
        loaded = redefine(loaded, dict.fromkeys(same, tile))
    return loaded


def redefine(loaded: Loaded, values: Mapping[str, int]) -> Loaded:
    """The same file with some of its constants changed."""
    macros = {n: v for n, v in values.items() if n in loaded.pre.macros}
    again = _parse(loaded.source, {**loaded.defines, **macros}, loaded.tile, loaded.limits)
    again.own_tile = loaded.own_tile
    for name, value in values.items():
        entry = again.file.variables.get(name)
        if entry is not None:
            entry[0].init = Number(ctype.INT, np.int32(value), span=entry[0].span)
            again.integers[name] = value
    return again


def _parse(source: Source, defines: dict[str, str | int], tile: int | None, limits: Limits) -> Loaded:
    try:
        budget.enter("preprocessing")
        pre = Preprocessor(source, defines, limits).run()
        budget.enter("parsing")
        file = Parser(source, with_known_spellings(pre.tokens), limits).parse()
    except RecursionError:
        raise LimitError(f"{source.name}: nested too deep") from None
    budget.enter("compiling")
    loaded = Loaded(source, pre, file, defines, tile, None, limits)
    for name, macro in pre.macros.items():
        body = macro.body
        while len(body) >= 3 and body[0].text == "(" and body[-1].text == ")":
            body = body[1:-1]
        if macro.parameters is None and len(body) == 1 and body[0].kind == "number":
            try:
                loaded.integers[name] = literal.integer_value(source, body[0])
            except KernelError:
                continue
    compiler = Compiler(source, file, DataFlow(), limits, tile)
    for name, (item, _words) in file.variables.items():
        if item.init is not None:
            try:
                loaded.integers[name] = compiler.constant(item.init)
            except (KernelError, RecursionError):
                continue
    for internal in ("__CUDACC__", "__CUDA_ARCH__", "__NVCC__", "__cplusplus"):
        loaded.integers.pop(internal, None)
    return loaded


def choose(loaded: Loaded, entry: str | None) -> list[Function]:
    """The kernels that are meant: the one named, or all of the file."""
    kernels = loaded.file.kernels
    refused = loaded.file.refused
    if entry is not None:
        if entry in refused:
            raise refused[entry]
        chosen = [k for k in kernels if k.name == entry]
        if not chosen:
            names = ", ".join(k.name for k in kernels) or "none"
            raise UsageError(f"{loaded.source.name} has no kernel {entry}; it has {names}")
        return chosen[:1]
    if not kernels and refused:
        raise next(iter(refused.values()))
    if not kernels:
        raise KernelError("there is no __global__ function in this file", loaded.source.name)
    return kernels


def uses_shared(function: Function) -> bool:
    return any(t.text == "__shared__" for t in function.tokens)


def template_values(loaded: Loaded, function: Function, launch: list[Any]) -> dict[str, Any]:
    """Template arguments of a kernel: the launch's, else the tile for numbers and float for types."""
    out: dict[str, Any] = {}
    compiler = Compiler(loaded.source, loaded.file, DataFlow(), loaded.limits, loaded.tile)
    numbers = [p.name for p in function.template if not p.is_type]
    for i, parameter in enumerate(function.template):
        if parameter.name == "<none>":
            continue
        given = launch[i] if i < len(launch) else None
        if parameter.name in loaded.defines:
            given = int(loaded.defines[parameter.name])
        elif loaded.tile is not None and parameter.name in TILE_NAMES:
            given = loaded.tile
        if given is None and parameter.default is not None:
            default = parameter.default
            given = compiler.resolve(default) if parameter.is_type else compiler.constant(default)
        if given is None and not parameter.is_type and len(numbers) > 1 and parameter.name not in TILE_NAMES:
            raise UsageError(
                f"{function.name} is a template and nothing in the file says what {parameter.name} is: "
                f"give it with -D {parameter.name}=…"
            )
        if given is None:
            given = ctype.FLOAT if parameter.is_type else loaded.width
        out[parameter.name] = given
    return out


def compile_entry(loaded: Loaded, function: Function, template: dict[str, Any]) -> Program:
    """Compile with every integer that may be a leading dimension followed through the indices."""
    compiler = Compiler(loaded.source, loaded.file, DataFlow(), loaded.limits, loaded.tile)
    compiler.template.append(template)
    dimensions: set[str] = set()
    sized = False
    for parameter in function.parameters:
        type_: Type = compiler.resolve(parameter.type)
        if isinstance(type_, ctype.Reference):
            type_ = type_.to
        struct = matrix_struct(type_) if matrix_like(type_) else None
        if isinstance(type_, Scalar) and not type_.floating and type_ is not ctype.BOOL:
            dimensions.add(parameter.name)
            sized = True
        elif struct is not None and isinstance(type_, Struct):
            sized = True
            for f in struct.fields:
                if isinstance(f.type, Scalar) and not f.type.floating:
                    dimensions.add(f"{parameter.name}.{f.name}")
        elif struct is not None:
            sized = True
    if not sized:
        dimensions |= {n for n in loaded.integers if n not in TILE_NAMES and n not in loaded.defines}
        dimensions |= {n for n in loaded.defines if n in loaded.integers and n not in TILE_NAMES}
    return compile_kernel(
        loaded.source,
        loaded.file,
        function,
        template=template,
        tile=loaded.tile,
        dimensions=frozenset(dimensions),
        limits=loaded.limits,
    )


def launches_of(loaded: Loaded, function: Function) -> list[LaunchSite]:
    return find_launches(loaded.file, function.name)


def here(span: Span, loaded: Loaded) -> Any:
    return loaded.source.place(span.line, span.column, span.length)

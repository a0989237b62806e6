"""A compiled kernel of a file, and the evaluation of the file's own <<<…>>>."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np

from tilewise.emulator.check.binding import Bound, Shape
from tilewise.emulator.check.loading import (
    Loaded,
    compile_entry,
    redefine,
    template_values,
)  # fmt: skip
from tilewise.emulator.check.own_binding import OwnLaunch
from tilewise.emulator.check.roles import (
    assign_matrices,
    matrix_struct,
    member_role,
    multiplies_elements,
    names_other_work,
    names_product,
    role_by_name,
    size_by_name,
    strides_of,
    three_sizes,
    two_sizes,
)  # fmt: skip
from tilewise.emulator.compile.kernel import TILE_NAMES
from tilewise.emulator.host.launch_site import HostNames, LaunchSite, LaunchValue, find_launches
from tilewise.emulator.machine.leaves import dtype_of
from tilewise.emulator.machine.program import Program, Variable
from tilewise.emulator.parse import types
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.parse.tree import Function, Name, TypeName
from tilewise.emulator.parse.types import Scalar
from tilewise.emulator.sema.bodies import body_of
from tilewise.emulator.sema.symbol_table import Environment
from tilewise.errors import UsageError


class Prepared:
    """A compiled kernel of a file, for any number of launches."""

    def __init__(self, loaded: Loaded, function: Function, own: OwnLaunch | None = None) -> None:
        """`own`: a launch in the program's run, whose template arguments the text may not tell."""
        self.loaded = loaded
        self.own = own
        self.function = function
        self.sites = find_launches(loaded.table, function.short)
        self.site = self.sites[0] if self.sites else None
        self.program = self._compile()
        self.matrices = assign_matrices(self.program) if not names_other_work(function.short) else None
        names = {v.name for v in (self.matrices or {}).values()}
        if names and not (names_product(function.short) or self._multiplies_elements(names)):
            self.matrices = None
        self.constants = self._constant_sizes()

    def _compile(self) -> Program:
        launch = self._host(self.site, {}).template if self.site is not None and self.function.template else []
        launch = self._recorded(self.site) or launch
        self.template = template_values(self.loaded, self.function, launch)
        return compile_entry(self.loaded, self.function, self.template)

    def _multiplies_elements(self, arrays: set[str]) -> bool:
        table = self.loaded.table

        def read(function: Function) -> Function:
            body = body_of(table, function, Environment(scope=function.scope), lenient=True)
            return function.updated(body=body)

        def called(name: str) -> list[Function]:
            found = table.functions_named(name, self.function.scope)[1]
            return [read(f) for f in found if f.tokens is not None and not f.library]

        return multiplies_elements(read(self.function).body, arrays, called)

    def _recorded(self, site: LaunchSite | None) -> list[Any]:
        """The template arguments that a launch had in the program's run."""
        if self.own is None or (site is not None and site.launch.line != self.own.line):
            return []
        return [self.own.template.get(t.name) for t in self.function.template]

    def launched_at(self, site: LaunchSite | None) -> Prepared:
        """The same kernel as another launch of the file uses it, perhaps with other template arguments."""
        one = copy(self)
        if site is not self.site:
            one.site = site
            one.program = one._compile() if self.function.template else one.program
        return one

    @property
    def multiplies(self) -> bool:
        return self.matrices is not None

    def _constant_sizes(self) -> dict[str, str]:
        """Sizes that are constants of the file, not parameters, and their meanings."""
        if self.matrices is None:
            return {}
        parameters = {v.name for v in self.program.parameters}
        walking = dict.fromkeys(self.program.symbols[s] for _, s in self.program.usage)
        names = [
            s for s in walking if isinstance(s, str) and s not in parameters and "." not in s and s not in TILE_NAMES
        ]
        fixed = [s for s in self.program.symbols if isinstance(s, int)]  # rows of `float A[N][N]`
        if fixed and not any(isinstance(s, str) for s in walking):  # else sizes are parameters; a tile is an int, too
            names = [n for n, v in self.loaded.integers.items() if v in fixed and n not in TILE_NAMES][:1]
        if not names:
            return {}
        named = {n: size_by_name(n) for n in names}
        if all(named.values()):
            return {n: str(v) for n, v in named.items()}
        letters = [n for n in ("M", "K", "N") if n in self.loaded.integers and n not in names]
        if 1 < len(names) + len(letters) <= 3 and all(n.upper() in ("M", "N", "K") for n in names):
            names += [n for n in letters if n not in names]
        used = strides_of(self.program, self.matrices)
        if len(names) == 3:
            return three_sizes(names, used)
        if len(names) == 2:
            return two_sizes(names, used)
        return {names[0]: "all"} if len(names) == 1 else {}

    def square(self) -> bool:
        """Whether one size is used for m, k and n."""
        if self.matrices is None:
            return False
        if "all" in self.constants.values():
            return True
        numbers = [
            v
            for v in self.program.parameters
            if isinstance(v.type, Scalar) and not v.type.floating and v.type is not types.BOOL
            if v.name not in TILE_NAMES
        ]
        structs = any(matrix_struct(v.type) is not None for v in self.program.parameters)
        return len(numbers) == 1 and not structs and size_by_name(numbers[0].name) is None

    def for_shape(self, shape: Shape | None) -> tuple[Prepared, dict[str, int]]:
        """The kernel compiled with its constant sizes set to the shape, and those sizes."""
        if shape is None or not self.constants:
            return self, {}
        m, k, n = shape
        if "all" in self.constants.values() and not (m == k == n):
            raise UsageError(f"{self.function.short} takes one size for all: the shape must be square, not {m}x{k}x{n}")
        table = {"m": m, "k": k, "n": n, "all": n}
        values = {name: table[meaning] for name, meaning in self.constants.items()}
        return self.with_constants(values), values

    def with_constants(self, values: Mapping[str, int]) -> Prepared:
        """The kernel compiled with some constants of the file changed."""
        fresh = redefine(self.loaded, values)
        function = next(f for f in fresh.table.entities.kernels if f.name == self.function.name)
        return Prepared(fresh, function, self.own)

    def passed_constants(self, bound: Bound) -> dict[str, int]:
        """Constants of the file that the launch passes as sizes, with the values that the shape requires."""
        out: dict[str, int] = {}
        if self.site is None:
            return out
        for parameter, name in zip(self.function.parameters, self.site.arguments, strict=False):
            size = bound.sizes.get(parameter.name)
            if size is not None and self.loaded.integers.get(name, size) != size:
                out[name] = size
        return out

    def literal_tile(self) -> int | None:
        """The side of the square tiles that the kernel itself declares in shared memory."""
        for _, _, dims, external in self.program.shared:
            if not external and len(dims) == 2 and 2 <= dims[0] <= 32 and dims[1] - dims[0] in (0, 1):
                return int(dims[0])
        return None

    @property
    def has_own_tile(self) -> bool:
        """Whether the kernel's tile is written in the file."""
        return self.loaded.own_tile is not None or self.literal_tile() is not None

    def widest_tile(self) -> int | None:
        sides = [d for _, _, dims, external in self.program.shared if not external for d in dims if len(dims) == 2]
        return max(sides) if sides else None

    # -- the file's own launch

    def _host(self, site: LaunchSite, forced: dict[str, Any]) -> LaunchValue:
        loaded = self.loaded
        supplied = {n: (loaded.width, types.INT) for n in TILE_NAMES if n not in loaded.integers}
        written = getattr(site.launch.kernel, "arguments", None) or []  # kernel<TILE> in a template of TILE
        for node, value in zip(written, self._recorded(site), strict=False):
            if isinstance(node, Name | TypeName) and isinstance(value, tuple):
                supplied[node.name] = value
        return HostNames(loaded.table, forced, supplied).at(site)

    def written_launch(self) -> OwnLaunch | None:
        """The launch as far as it can be evaluated without running `main`; None if its block is not known."""
        value = self._host(self.site, {}) if self.site is not None else None
        if self.site is None or value is None or value.block is None:
            return None
        line = self.site.launch.line
        return OwnLaunch(value.grid or (1, 1, 1), value.block, value.shared, line, value.arguments, self.site)

    def evaluate_launch(self, bound: Bound) -> LaunchValue | None:
        if self.site is None:
            return None
        forced: dict[str, Any] = {}
        parameters = self.function.parameters
        for parameter, name in zip(parameters, self.site.arguments, strict=False):
            value = bound.arguments.get(parameter.name)
            if name and isinstance(value, np.generic):
                forced[name] = _typed(value)
        if bound.matrices is not None and bound.shape is not None:
            m, k, n = bound.shape
            extents = {"M": (m, k), "N": (k, n), "P": (m, n)}
            for name in [a.split(".")[0] for a in self.site.arguments if a.endswith((".x", ".y"))]:
                role = role_by_name(name.removeprefix("dims").removeprefix("dim").removeprefix("size"))
                if role is not None:  # dimsA.x columns, dimsA.y rows, as in the SDK's sample
                    forced[f"{name}.x"] = (extents[role][1], types.UINT)
                    forced[f"{name}.y"] = (extents[role][0], types.UINT)
            for role, variable in bound.matrices.items():
                struct = matrix_struct(variable.type)
                if struct is None:
                    continue
                rows, cols = extents[role]
                table = {"rows": rows, "cols": cols, "pitch": cols}
                members = {f.name: table[r] for f in struct.members if (r := member_role(struct, f.name)) in table}
                names = [name for name in self.host_names() if role_by_name(name) == role]
                position = [p.name for p in parameters].index(variable.name)
                names += self.site.arguments[position : position + 1]
                forced |= {f"{name}.{member}": (size, types.INT) for name in names for member, size in members.items()}
        return self._host(self.site, forced)

    def host_names(self) -> list[str]:
        """Names in the host function that may be matrices: parameters, and locals of a class type."""
        assert self.site is not None
        names = [p.name for p in self.site.function.parameters]
        tokens = tokens_of(self.site.function.tokens or [])
        structs = set(self.loaded.table.entities.classes) | set(self.loaded.table.entities.aliases)
        names += [b.text for a, b in pairwise(tokens) if a.text in structs and b.kind == "name"]
        return names

    def _passed(self, variable: Variable) -> str:
        """The name that the launch passes for a parameter, or ""."""
        position = [p.name for p in self.function.parameters].index(variable.name)
        return self.site.arguments[position] if self.site and position < len(self.site.arguments) else ""

    def allocates_output(self, matrices: Any) -> bool:
        """Whether the function that launches also allocates P; otherwise its contents are not known. A kernel without a
        launch gets new memory."""
        if self.site is None or not matrices:
            return True
        name = self._passed(matrices["P"])
        texts = [t.text for t in tokens_of(self.site.function.tokens or [])]
        return any(t.startswith("cudaMalloc") and name in texts[i : i + 12] for i, t in enumerate(texts))

    def clears_output(self, bound_matrices: Any) -> bool:
        """Whether the host sets P before the launch: cudaMemset, or a copy to it from the host."""
        if self.site is None or not bound_matrices:
            return False
        name = self._passed(bound_matrices["P"])
        tokens = tokens_of(self.site.function.tokens or [])
        for i, token in enumerate(tokens):
            if token.text in ("cudaMemset", "cudaMemsetAsync", "cudaMemcpy") and i + 2 < len(tokens):
                if tokens[i + 2].text != name:
                    continue
                following = {t.text for t in tokens[i : i + 30]}
                if token.text != "cudaMemcpy" or "cudaMemcpyHostToDevice" in following:
                    return True
        return False


def _typed(value: np.generic) -> tuple[Any, types.Scalar]:
    kinds = (types.INT, types.UINT, types.LONG, types.ULONG, types.FLOAT, types.DOUBLE)
    return value.item(), next((t for t in kinds if dtype_of(t) == value.dtype), types.INT)

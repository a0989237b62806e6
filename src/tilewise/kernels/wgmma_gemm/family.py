"""Hopper's main loops, producers and consumers over mbarriers: what each takes, where it competes, how P is cut."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, ClassVar

from tilewise.core.machine import Machine
from tilewise.core.plan import Geometry, Plan
from tilewise.core.problem import Problem
from tilewise.kernels.by_configs import Arithmetic, ByConfigs, Table, Tabled, fastest
from tilewise.kernels.capabilities import HALVES, HOPPER, Capabilities, Condition
from tilewise.kernels.family import Searched, fused_notes, packed_operands, passes
from tilewise.kernels.shared.layouts import long_lines
from tilewise.kernels.shared.triangle import symmetric_note
from tilewise.kernels.transforms.sums import combine_text, render_add_parts
from tilewise.kernels.transforms.transpose import render_transpose
from tilewise.kernels.wgmma_gemm.bf16x6 import model as six
from tilewise.kernels.wgmma_gemm.bf16x6 import recipe as six_recipe
from tilewise.kernels.wgmma_gemm.bf16x6.text import render_bf16x6, render_split, render_unsafe_rows
from tilewise.kernels.wgmma_gemm.bulk_lines import model as bulk
from tilewise.kernels.wgmma_gemm.bulk_lines import recipe as bulk_recipe
from tilewise.kernels.wgmma_gemm.bulk_lines import search as bulk_search
from tilewise.kernels.wgmma_gemm.bulk_lines.text import render_bulk_lines
from tilewise.kernels.wgmma_gemm.k_major import model as k_major
from tilewise.kernels.wgmma_gemm.k_major import recipe as k_major_recipe
from tilewise.kernels.wgmma_gemm.k_major.text import texts as k_major_texts
from tilewise.kernels.wgmma_gemm.read_once import model as once
from tilewise.kernels.wgmma_gemm.read_once import recipe as once_recipe
from tilewise.kernels.wgmma_gemm.read_once.text import render_read_once, render_split_interleaved
from tilewise.kernels.wgmma_gemm.wgmma_half import model as half
from tilewise.kernels.wgmma_gemm.wgmma_half import recipe as half_recipe
from tilewise.kernels.wgmma_gemm.wgmma_half import texts as half_texts
from tilewise.kernels.wgmma_gemm.wgmma_half.grouped import waves_of
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import TensorConfig


class OnHopper(ByConfigs):
    """Those that report what is special about a configuration, and how operands reach it."""

    tensor = True

    def notes(self, problem: Problem, config: Any) -> list[str]:
        return list(config.notes())

    def passes(self, problem: Problem, machine: Machine, config: Any) -> int:
        return passes(config.routes, config.splits)


class WgmmaHalf(OnHopper, Tabled):
    """bfloat16 and float16, both operands from shared memory (wgmma, TMA)."""

    name = half.KERNEL
    kernels: ClassVar = {name: half.IDEA}
    launches = staticmethod(half_recipe.launches)
    can = Capabilities(
        HOPPER, own_arch=True, dtypes=HALVES, plus_times=True, groups=("rows", "k"),
        problem=(half.UNROUNDED, half.GROUPS), fuses=True, batch=True,
    )  # fmt: skip
    beside_tile = True

    def best(self, problem: Problem, machine: Machine, kernel: str | None = None) -> tuple[float, TensorConfig]:
        return half.best_config(problem, machine)

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return half.searched(problem, machine)

    def tables(self, problem: Problem, machine: Machine) -> list[Table]:
        return half.tables(problem, machine)

    def tuning_class(self, problem: Problem) -> str:
        return half.tuning_class(problem)

    def pinned(self, problem: Problem, machine: Machine, config: TensorConfig) -> Plan:
        return self.planned(problem, machine, self.name, None, 0.0, config)

    def geometry(self, problem: Problem, machine: Machine, config: TensorConfig) -> Geometry:
        return config.tile.geometry

    def notes(self, problem: Problem, config: TensorConfig) -> list[str]:
        notes = config.notes() + fused_notes(problem)
        sides = config.tile.rows * config.tile.cluster, config.tile.cols * config.tile.beside
        return [*notes, symmetric_note(problem.m, *sides)] if config.symmetric else notes

    def packs(self, problem: Problem, config: TensorConfig) -> tuple[str, ...]:
        return packed_operands(config.routes)

    def passes(self, problem: Problem, machine: Machine, config: TensorConfig) -> int:
        return passes(config.routes, config.passes)

    def tiles(self, problem: Problem, machine: Machine, config: TensorConfig) -> str:
        waves, chosen_by = waves_of(config, problem, machine.units), "tuned" if config.tuned else "by the model"
        return (
            f"{config.tile.rows}x{config.tile.cols} are {waves} waves on {machine.units} multiprocessors ({chosen_by})"
        )

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        name, groups = problem.dtype.name, problem.groups
        return half_texts.texts(name, problem.epilogue) if groups is None else half_texts.grouped_texts(name, groups)


class KMajor(OnHopper, Tabled):
    """tf32, 8-bit integers and 8-bit floats, which wgmma takes with k contiguous alone."""

    name = k_major.KERNEL
    kernels: ClassVar = {name: k_major.IDEA}
    launches = staticmethod(k_major_recipe.launches)
    can = Capabilities(HOPPER, own_arch=True, plus_times=True, kind=k_major.KIND, scales=True, batch=True)

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return k_major.searched(problem, machine)

    def arithmetic(self, problem: Problem, machine: Machine) -> Arithmetic:
        kind = k_major.kind_of(problem)
        assert kind is not None
        return Arithmetic(kind.rate * machine.tensor_rate("bfloat16"))

    def notes(self, problem: Problem, config: k_major.KMajorConfig) -> list[str]:
        notes = config.notes()
        return [*notes, symmetric_note(problem.m, *config.tile.together)] if config.symmetric else notes

    def geometry(self, problem: Problem, machine: Machine, config: k_major.KMajorConfig) -> Geometry:
        return config.tile.geometry(problem.dtype_m.itemsize)

    def tiles(self, problem: Problem, machine: Machine, config: k_major.KMajorConfig) -> str:
        waves = config.waves(problem.m, problem.n, machine.units)
        return f"{config.tile.rows}x{config.tile.cols} are {waves} waves on {machine.units} multiprocessors"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        return k_major_texts((problem.dtype_m.name, problem.dtype_n.name), problem.result.name)


class BF16x6(OnHopper, Tabled):
    """float32: three bfloat16 parts of each operand, six products of them."""

    name = six.KERNEL
    kernels: ClassVar = {name: six.IDEA}
    launches = staticmethod(six_recipe.launches)
    can = Capabilities(
        HOPPER, own_arch=True, dtypes=("float32",), float32_as=("high", "tf32"), plus_times=True,
        problem=(six.ORDERED,), batch=True,
    )  # fmt: skip
    falls_back = True

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return six.searched(machine)

    def arithmetic(self, problem: Problem, machine: Machine) -> Arithmetic:
        return Arithmetic(machine.tensor_rate("bfloat16"), six.PRODUCTS, halved=False)

    def geometry(self, problem: Problem, machine: Machine, config: six.SplitConfig) -> Geometry:
        return config.tile.geometry

    def packs(self, problem: Problem, config: six.SplitConfig) -> tuple[str, ...]:
        p = problem
        sides = ("M", p.layout_m, p.m, p.k, p.dtype_m), ("N", p.layout_n, p.k, p.n, p.dtype_n)
        return tuple(
            name
            for name, layout, rows, cols, dtype in sides
            if dtype != p.dtype or long_lines(layout, rows, cols) is None
        )

    def notes(self, problem: Problem, config: six.SplitConfig) -> list[str]:
        packs = self.packs(problem, config)
        packed = [f"{' and '.join(packs)} packed first: elements apart, or another dtype"] if packs else []
        return [*packed, *config.notes()]

    def passes(self, problem: Problem, machine: Machine, config: six.SplitConfig) -> int:
        return 2 + (config.splits > 1)

    def more(self, problem: Problem, config: six.SplitConfig) -> dict[str, Any]:
        return {"planes": six.PLANE_SHARE}

    def tiles(self, problem: Problem, machine: Machine, config: six.SplitConfig) -> str:
        waves = config.waves(problem.m, problem.n, machine.units, problem.members)
        return f"{config.tile.rows}x{config.tile.cols} are {waves} waves on {machine.units} multiprocessors"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        if problem.precision != "tf32":
            yield from (render_split.key(), render_split.key(True), render_unsafe_rows.key())
            yield from (combine_text(problem.algebra, share) for share in (1, 8))
            yield from (render_bf16x6.key(tile) for tile in six.TILES)


class ReadOnce(OnHopper, Tabled):
    """Few rows or columns of float32, the long operand from registers, read once as it lies."""

    name = once.KERNEL
    kernels: ClassVar = {name: once.IDEA}
    launches = staticmethod(once_recipe.launches)
    can = Capabilities(
        HOPPER, own_arch=True, dtypes=("float32",), one_dtype=True, same_result=True, float32_as=("high", "tf32"),
        plus_times=True, stacks=False, few=once.MOST_FEW, problem=(once.ONTO_P, once.LONG_SIDE),
    )  # fmt: skip

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return once.searched(problem, machine)

    def passes(self, problem: Problem, machine: Machine, config: once.OnceConfig) -> int:
        return once.passes(problem, config)

    def arithmetic(self, problem: Problem, machine: Machine) -> Arithmetic:
        kind, products = once.products_of(problem)
        return Arithmetic(machine.tensor_rate(kind), products, halved=False)

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        tf32 = problem.precision == "tf32"
        yield render_transpose.key(4) if tf32 else render_split_interleaved.key()
        yield from (render_add_parts.key(problem.dtype, problem.result, shares) for shares in (1, 8))
        for tile, lies in product(once.TILES["tf32" if tf32 else "high"], once.LONG_BYTES):
            yield render_read_once.key(tile, lies)


FEW = 256  # rows or columns of single products: of more, rows are realigned in little time


class BulkLines(Tabled):
    """Rows that start anywhere, of halves and tf32: bulk copies bring them as they lie, mma.sync multiplies."""

    name, tensor = bulk.KERNEL, True
    kernels: ClassVar = {name: bulk.IDEA}
    launches = staticmethod(bulk_recipe.launches)
    can = Capabilities(
        HOPPER, own_arch=True, dtypes=(*HALVES, "float32"), one_dtype=True, same_result=True, float32_as=("tf32",),
        plus_times=True, accumulates=False, unrounded=False, least_k=1, contiguous=True,
        problem=(Condition(lambda p: min(p.m, p.n) >= 1, "stores a P that is not empty"),), precisions=("tf32",),
    )  # fmt: skip

    def best(self, problem: Problem, machine: Machine, kernel: str | None = None) -> tuple[float, bulk.BulkConfig]:
        return fastest(bulk_search.tables(problem, machine, bulk_search.MOST_CUTS), problem.largest)

    def searched(self, problem: Problem, machine: Machine) -> list[Searched]:
        return bulk_search.searched(problem, machine, bulk_search.MOST_CUTS)

    def tables(self, problem: Problem, machine: Machine) -> list[Table]:
        return bulk_search.tables(problem, machine)

    def arithmetic(self, problem: Problem, machine: Machine) -> Arithmetic:
        kind = "tf32" if problem.dtype.itemsize == 4 else problem.dtype.name
        return Arithmetic(machine.tensor_rate(kind), halved=False)

    def geometry(self, problem: Problem, machine: Machine, config: bulk.BulkConfig) -> Geometry:
        return bulk.geometry(problem, config)

    def tiles(self, problem: Problem, machine: Machine, config: bulk.BulkConfig) -> str:
        return f"{config.tile.rows}x{config.tile.cols}, {config.resident} a multiprocessor"

    def texts(self, problem: Problem, machine: Machine) -> Iterable[str]:
        for tile, m_along_k, n_along_k in product(bulk.TILES, (True, False), (True, False)):
            yield render_bulk_lines.key(problem.dtype, tile, (m_along_k, n_along_k))

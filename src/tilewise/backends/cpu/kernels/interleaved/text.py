"""`interleaved`: the loops and the tile of `packed`; a lane of a panel is a 32-bit word of four bytes or two 16-bit
numbers that follow each other along k. The last word of a strip is padded with zeros."""

from __future__ import annotations

from tilewise.backends.cpu.kernels.interleaved.pack import interleave_function
from tilewise.backends.cpu.kernels.interleaved.pack_rows import pack_rows_function
from tilewise.backends.cpu.kernels.interleaved.split import split_functions
from tilewise.backends.cpu.kernels.packed.text import module_around, write_function
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic


def interleaved_module(a: Arithmetic) -> str:
    if a.splits:
        return module_around(a, split_functions(a), write_function(a))
    pack_m = pack_rows_function(a) if a.amx else interleave_function(a, "pack_m", a.MR, a.source_m, flips=a.compensates)
    pack_n = interleave_function(a, "pack_n", a.width, a.source_n, sums=a.compensates)
    return module_around(a, [pack_m, pack_n], write_function(a))

"""Building blocks of the kernels: IR, arithmetic, the register tile, packing, tasks."""

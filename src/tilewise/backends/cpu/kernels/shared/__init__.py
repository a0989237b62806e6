"""What kernels are written with: IR, arithmetic, the register tile, packing, tasks."""

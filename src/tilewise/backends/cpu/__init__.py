"""Packing, microkernels and threads: LLVM IR generated for this CPU and semiring on first use, run by `run.run`."""

"""Pack, micro-kernel, threads: machine code written for this CPU and this semiring on first use, run by `run.run`."""

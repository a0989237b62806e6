"""Pack, micro-kernel, threads: machine code written for this CPU and this semiring on first use."""

from tilewise.engines.cpu.run import run

__all__ = ["run"]

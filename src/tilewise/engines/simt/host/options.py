"""What a run may take and touch."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Options:
    """What a run may take and touch."""

    seconds: float = 20.0  # from the start of its process to its end
    interpret: float = 4.0  # seconds of kernels with every check; what is beyond runs as compiled code
    memory: int = 2 << 30
    output: int = 64 << 20
    card: str = "t4"
    real_time: bool = False
    folder: str = "."
    writable: list[str] = field(default_factory=list)
    defines: dict[str, str] = field(default_factory=dict)
    include: list[str] = field(default_factory=list)

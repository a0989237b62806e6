"""threadpoolctl lists and limits our pool, like those of BLAS and OpenMP.

It finds pools by the names of loaded shared libraries. Ours is JIT-compiled, so it is found by llvmlite's library.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec


def register(get: Callable[[], int], set: Callable[[int], None]) -> None:
    """Register the pool with threadpoolctl, where it is installed; called once, with the pool's first use."""
    if find_spec("threadpoolctl") is None:
        return
    import threadpoolctl

    from tilewise.system.version import __version__

    class Controller(threadpoolctl.LibController):  # type: ignore[misc, unused-ignore]
        """threadpoolctl's interface to a pool."""

        user_api = "tilewise"
        internal_api = "tilewise"
        filename_prefixes = ("libllvmlite", "llvmlite")

        def get_num_threads(self) -> int:
            return get()

        def set_num_threads(self, num_threads: int) -> None:
            set(num_threads)

        def get_version(self) -> str:
            return __version__

    threadpoolctl.register(Controller)

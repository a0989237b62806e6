"""The host program of the notes: allocate, copy in, launch, time with events, copy out, free.

P is copied in only with accumulate=True: otherwise the kernel writes every cell of P before any is read. Memory is
freed also after an error.
"""

from __future__ import annotations

from contextlib import ExitStack

from tilewise.algebra.dtypes import Array, dtype_of
from tilewise.arrays.card import default_stream
from tilewise.arrays.device_array import DeviceArray
from tilewise.backends.cuda.launcher import Launcher
from tilewise.backends.cuda.scratch import scratch
from tilewise.backends.cuda.timing import Stopwatch
from tilewise.core.machine import Times


def multiply_on_device(
    launcher: Launcher,
    accumulate: bool,
    M: Array,
    N: Array,
    P: Array,
    arg: Array | None = None,
    bias: Array | None = None,
) -> Times:
    """MatrixMulOnDevice: from arrays on the host to their product (and the k that won, in `arg`) on the host. The
    launcher is for contiguous copies; its kernels are compiled before the clock starts."""
    device = launcher.device
    stream = default_stream(device)
    given = {"M": M, "N": N, "P": P, "arg": arg, "bias": bias}
    with ExitStack() as memory:
        held = {
            name: memory.enter_context(DeviceArray(host.shape, dtype_of(host.dtype), device))
            for name, host in given.items()
            if host is not None
        }
        watch = Stopwatch(stream)
        for name, host in (("M", M), ("N", N), ("bias", bias), ("P", P if accumulate else None)):
            if host is not None:
                held[name].copy_from(host)
        watch.mark()
        handle = int(stream.handle)
        with scratch(launcher.scratch_bytes, "", device, handle) as address:
            launcher(handle, scratch=address, **{name: x.pointer for name, x in held.items()})
        watch.mark()
        P[...] = held["P"].numpy()
        if arg is not None:
            arg[...] = held["arg"].numpy()
        watch.mark()
        return Times(*watch.laps())

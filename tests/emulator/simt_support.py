"""Small kernels for the tests: the course's files, and one expression evaluated by one thread."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tilewise import emulator as simt

KERNELS = Path(__file__).parent / "kernels"


def course(name):
    return (KERNELS / f"{name}.cu").read_text(encoding="utf-8")


def evaluate(expression, ctype="int", dtype=np.int32, before="", top=""):
    """The value of a C expression, evaluated by one thread."""
    text = f"{top}\n__global__ void k({ctype}* out) {{ {before} out[0] = {expression}; }}"
    out = np.zeros(1, dtype)
    simt.launch(text, "k", (1,), (1,), [out])
    return out[0]


def per_thread(body, n=8, dtype=np.int32, ctype="int", top="", block=None, **options):
    """What each of n threads leaves in out[t]."""
    text = f"{top}\n__global__ void k({ctype}* out) {{ int t = threadIdx.x; {body} }}"
    out = np.zeros(n, dtype)
    simt.launch(text, "k", (1,), block or (n,), [out], **options)
    return out.tolist()

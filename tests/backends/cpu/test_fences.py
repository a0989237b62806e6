"""Kernels access no byte outside their operands: the pages next to them are unmapped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fenced import able
from poisoned import sets_here

from seeds import next_seed, sample_size

HERE = sets_here()
AND_HOST = HERE if "host" in HERE else ("host", *HERE)
SEED = int(os.environ.get("TILEWISE_TEST_SEED", next_seed() % 2**31))
FOLDER = Path(__file__).parent

pytestmark = pytest.mark.skipif(not able, reason="pages are closed by mprotect")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """In a child process, because an access outside an operand ends it."""
    return subprocess.run([sys.executable, *command], cwd=FOLDER, capture_output=True, text=True)


def products(name: str, count: int, *options: str) -> None:
    done = run("poisoned.py", name, "--seed", str(SEED), "--random", str(count), "--fence", *options)
    last = "\n".join(done.stderr.splitlines()[-8:])
    assert done.returncode == 0, (
        f"seed {SEED}, ended by {done.returncode}; the last product was the last of these:\n{last}"
    )


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", AND_HOST)
def test_random_products_touch_nothing_beside_their_operands(name: str) -> None:
    products(name, sample_size(12), "--kinds", "1")


@pytest.mark.slow
@pytest.mark.parametrize("name", AND_HOST)
def test_four_thousand_random_products_touch_nothing_beside_their_operands(name: str) -> None:
    products(name, 4000)


@pytest.mark.parametrize(("behind", "byte"), [(True, 24), (False, -1)])
def test_a_byte_beside_an_operand_ends_the_process(behind: bool, byte: int) -> None:
    code = "import ctypes, sys, numpy as np\nfrom fenced import fenced\n"
    code += f"x = fenced(np.arange(6.0, dtype='f4').reshape(2, 3), {behind})\nassert x.sum() == 15\n"
    code += "ctypes.string_at(x.ctypes.data, 24)\nprint('inside', flush=True)\n"
    done = run("-c", code + f"ctypes.string_at(x.ctypes.data + {byte}, 1)\n")
    assert (done.stdout, done.returncode < 0) == ("inside\n", True), done.stderr

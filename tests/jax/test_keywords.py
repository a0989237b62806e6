"""Every keyword of every function, alone and in pairs: JAX's arrays, and inside jit."""

from __future__ import annotations

import jax
import pytest
from jax import numpy as jnp

import tilewise as tw
from keyword_pairs import CALLS, PAIRS, check, check_function


@pytest.fixture(autouse=True)
def on_the_cpu():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.mark.drawn(50)
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_of_arrays(names):
    check(names, lambda M, N, keywords: tw.matmul(M, N, **keywords), jnp.asarray)


@pytest.mark.drawn(30)
@pytest.mark.parametrize("names", PAIRS, ids="+".join)
def test_inside_jit(names):
    check(names, lambda M, N, keywords: jax.jit(lambda M, N: tw.matmul(M, N, **keywords))(M, N), jnp.asarray)


def of_arrays(call, x):
    return call(x)


def of_a_program(call, x):
    return jax.jit(call)(x)


@pytest.mark.drawn(20)
@pytest.mark.parametrize("run", [of_arrays, of_a_program])
@pytest.mark.parametrize(("name", "names"), CALLS, ids=str)
def test_of_every_function(name, names, run):
    with jax.enable_x64(True):
        computed = check_function(name, names, jnp.asarray, jnp.asarray, run)
    assert computed or names

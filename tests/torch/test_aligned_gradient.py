"""A gradient that both products of backward read, copied to aligned rows once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from host_card import put_on_the_host
from tilewise.core.machine import KNOWN_CARDS
from tilewise.core.tuning import table_for
from tilewise.torch import aligned_gradient, choice

H200 = replace(KNOWN_CARDS["h200"], arch="sm_90a", tuned=table_for("NVIDIA H200"))


def drawn(rows, inputs, outputs, dtype=torch.bfloat16):
    """Tensors without memory: M, N (a weight, transposed) and dP."""
    shapes = (rows, inputs), (outputs, inputs), (rows, outputs)
    M, weight, dP = (torch.empty(shape, dtype=dtype, device="meta") for shape in shapes)
    return M, weight.mT, dP


@pytest.mark.parametrize(
    ("sizes", "when", "lead"),
    [
        ((8192, 768, 50257), "plan", 50304),  # the head of GPT-2, whose other matrices lie well
        ((8192, 768, 50264), "plan", 0),  # on 16 bytes as it is
        ((8192, 768, 50257), "never", 0),  # torch's products would not be faster
    ],
)
def test_a_copy_is_made_where_two_products_win_by_it(sizes, when, lead, monkeypatch):
    for module in (aligned_gradient, choice):
        monkeypatch.setattr(module, "machine_of", lambda device: H200)
    M, N, dP = drawn(*sizes)
    assert aligned_gradient.lead_for_both(choice.Account(when), M, N, dP) == lead
    assert aligned_gradient.lead_for_both(choice.Account(when), M, N.contiguous(), dP) == 0, "no layer's weight"
    assert aligned_gradient.lead_for_both(choice.Account(when), M, N, dP.float()) == 0


def test_one_product_alone_realigns_its_own():
    account = choice.Account()
    dP = SimpleNamespace(
        is_cuda=True, dim=lambda: 2, numel=lambda: 1 << 24, element_size=lambda: 2, data_ptr=lambda: 256
    )
    for wanted in ((True, False, False), (False, True, False)):
        assert aligned_gradient.aligned_for_both(account, None, None, dP, wanted) is dP
    small = SimpleNamespace(is_cuda=True, dim=lambda: 2, numel=lambda: 99, element_size=lambda: 2)
    assert aligned_gradient.aligned_for_both(account, None, None, small, (True, True, True)) is small


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_the_copy_is_whole(monkeypatch, tmp_path):
    put_on_the_host(monkeypatch, tmp_path)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=0))
    aligned_gradient._launcher.cache_clear()
    for rows, cols in ((37, 523), (5, 3079)):
        x = torch.randn(rows, cols).bfloat16()
        made = aligned_gradient.copied(x, -(-cols // 64) * 64)
        assert torch.equal(made, x)
    aligned_gradient._launcher.cache_clear()

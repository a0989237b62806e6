"""patch(): a model's layers become ours in place, and nothing of it is changed after unpatch()."""

from __future__ import annotations

import contextlib
import copy

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import tilewise as tw
from seeds import next_seed
from tilewise.torch import choice
from tilewise.torch.patching import PatchedLinear


class Tied(torch.nn.Module):
    """An odd width drawn at random, and a head tied to its embedding."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        tokens, width, hidden = (2 * int(x) + 3 for x in torch.randint(2, 20, (3,)))
        self.embedding = torch.nn.Embedding(tokens, width)
        self.up, self.down = torch.nn.Linear(width, hidden), torch.nn.Linear(hidden, width)
        self.head = torch.nn.Linear(width, tokens, bias=False)
        self.head.weight = self.embedding.weight
        self.saves = False

    def part(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))

    def forward(self, x):
        made = self.embedding(x)
        made = made + (checkpoint(self.part, made, use_reentrant=False) if self.saves else self.part(made))
        return self.head(made)


@pytest.fixture
def seed():
    drawn = next_seed() % 2**31
    print("seed", drawn)
    return drawn


def step(model, x):
    model.zero_grad()
    made = model(x)
    made.float().square().mean().backward()
    return [made.detach(), *(p.grad.clone() for p in model.parameters())]


def close(got, expected, **how):
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, **how)


def tokens_of(model):
    return torch.randint(model.embedding.num_embeddings, (2, 5))


@pytest.mark.parametrize("number", range(3))
def test_random_models_train_equally_and_are_restored(number, seed):
    model = Tied(seed + number)
    x = tokens_of(model)
    before = {name: list(layer.__dict__) for name, layer in model.named_modules()}
    kinds = [type(layer) for layer in model.modules()]
    state, expected = copy.deepcopy(model.state_dict()), step(model, x)
    taken = tw.torch.choices("always").routed
    assert tw.torch.patch(model, "always") is model
    assert type(model.head) is PatchedLinear
    assert isinstance(model.head, torch.nn.Linear)
    close(step(model, x), expected)
    assert tw.torch.choices("always").routed == taken + 9, "three layers, three products each"
    assert model.head.weight is model.embedding.weight
    assert list(model.state_dict()) == list(state)
    copied = copy.deepcopy(model)
    copied.load_state_dict(state)
    tw.torch.unpatch(model)
    assert [type(layer) for layer in model.modules()] == kinds
    assert {name: list(layer.__dict__) for name, layer in model.named_modules()} == before
    close(step(model, x), expected, rtol=0, atol=0)


def test_checkpointing_and_autocast(seed):
    model = Tied(seed)
    x = tokens_of(model)
    model.saves = True
    expected = step(model, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        narrow = step(model, x)
    tw.torch.patch(model, "always")
    close(step(model, x), expected)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        close(step(model, x), narrow, rtol=5e-2, atol=5e-2)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_torch_func_over_a_patched_model(seed):
    model = Tied(seed)
    x = tokens_of(model)
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights):
        return torch.func.functional_call(model, weights, (x,)).square().mean()

    expected = torch.func.grad(loss)(weights)
    moved = torch.func.jvp(loss, (weights,), (weights,))
    tw.torch.patch(model, "always")
    got = torch.func.grad(loss)(weights)
    close(got.values(), expected.values())
    close(torch.func.jvp(loss, (weights,), (weights,)), moved)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_an_exported_model_chooses_when_it_runs(seed):
    model = Tied(seed)
    x = tokens_of(model)
    expected = model(x)
    tw.torch.patch(model, "always")
    exported = torch.export.export(model, (x,))
    named = {str(node.target) for node in exported.graph.nodes}
    assert "tilewise.routed_matmul.default" in named
    close([exported.module()(x)], [expected])


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_ddp_of_one_rank(seed, tmp_path):
    model = Tied(seed)
    x = tokens_of(model)
    expected = step(model, x)
    tw.torch.patch(model, "always")
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/here", rank=0, world_size=1)
    try:
        wrapped = torch.nn.parallel.DistributedDataParallel(model)
        close(step(wrapped, x), expected)
        tw.torch.unpatch(wrapped)
        assert type(model.head) is torch.nn.Linear
        del wrapped  # its reducer, as the group's last owner, would join gloo's threads while it holds Python's lock
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_fsdp_of_one_rank(seed, tmp_path):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    if not hasattr(torch.cpu.Stream, "record_event"):
        pytest.skip("fully_shard of this torch shards on cards only")
    model = Tied(seed)
    x = tokens_of(model)
    expected = step(model, x)
    left = tw.torch.choices().left
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/here", rank=0, world_size=1)
    try:
        fully_shard(tw.torch.patch(model), mesh=init_device_mesh("cpu", (1,)))
        got = step(model, x)
        close([got[0], *(grad.full_tensor() for grad in got[1:])], expected)
        assert tw.torch.choices().left == left + 9
        tw.torch.unpatch(model)
        assert type(model.head) is torch.nn.Linear
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("method", ["patch", "Linear", "accelerate"])
def test_a_layer_that_torch_keeps_for_every_input_is_known_by_its_weight(seed, method, monkeypatch):
    torch.manual_seed(seed)
    inputs, outputs = (8 * int(x) for x in torch.randint(1, 9, (2,)))
    layer = torch.nn.Linear(inputs, outputs).to(torch.bfloat16)
    account = tw.torch.accelerate() if method == "accelerate" else tw.torch.choices()
    row = f"mx{inputs}x{outputs}"
    before = sum(c.calls for c in account.choices if c.shape == row and c.dtype == "bfloat16")
    cached = set(account.cached)
    layer = {"patch": tw.torch.patch, "Linear": tw.torch.Linear.of, "accelerate": lambda x: x}[method](layer)
    monkeypatch.setattr(choice, "problem_of", None)  # nothing is planned, nor even described
    many = [int(x) for x in torch.randint(1, 50, (6,))]
    with account if method == "accelerate" else contextlib.nullcontext():
        for m in many:
            x = torch.randn(m, inputs, dtype=torch.bfloat16, requires_grad=bool(m % 2))
            assert "Addmm" in layer(x).grad_fn.name(), "torch's own function runs"
    found = [c for c in account.choices if c.shape == row and c.dtype == "bfloat16"]
    counted = 1 if method == "patch" else len(many)  # a patched one runs torch's own forward, and counts when patched
    assert [(c.calls, c.routed) for c in found] == [(before + counted, False)]
    assert set(account.cached) == cached, "what grows with every new m costs a server memory"


def test_patched_layers_that_torch_keeps_run_its_own_forward(seed):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 9), torch.nn.Linear(9, 8))
    tw.torch.patch(tw.torch.patch(model))
    own = torch.nn.Linear.forward
    assert [type(layer).forward is own for layer in model] == [True, False, False]
    assert all(isinstance(layer, PatchedLinear) for layer in model)
    tw.torch.patch(model, "always")
    assert not any(type(layer).forward is own for layer in model), "all are requested"
    tw.torch.unpatch(tw.torch.patch(model))
    assert all(type(layer) is torch.nn.Linear and "when" not in vars(layer) for layer in model)


def test_only_widths_of_whole_16_bytes_are_kept_by_their_weight(seed):
    torch.manual_seed(seed)
    for inputs, outputs, dtype in ((8, 9, torch.bfloat16), (12, 16, torch.float16), (8, 8, torch.float32)):
        for when in ("plan", "always"):
            account = choice.Account(when)
            assert not account.keeps_layer(torch.empty(outputs, inputs, dtype=dtype)), (inputs, outputs, dtype, when)
    assert not choice.Account("always").keeps_layer(torch.empty(8, 8, dtype=torch.bfloat16))
    assert choice.Account().keeps_layer(torch.empty(8, 8, dtype=torch.bfloat16))


def test_layers_of_other_kinds_are_left(seed):
    model = torch.nn.Sequential(torch.nn.MultiheadAttention(6, 2), torch.nn.Linear(6, 3), tw.torch.Linear(3, 2))
    kinds = [type(layer) for layer in model.modules()]
    tw.torch.patch(model)
    changed = [layer for layer in model.modules() if type(layer) is PatchedLinear]
    assert changed == [model[1]]
    tw.torch.unpatch(model)
    assert [type(layer) for layer in model.modules()] == kinds


def test_what_is_no_model_is_refused():
    with pytest.raises(tw.UsageError, match=r"takes a torch\.nn\.Module, got dict"):
        tw.torch.patch({})
    with pytest.raises(tw.UsageError, match="when='often'"):
        tw.torch.patch(torch.nn.Linear(2, 2), "often")


class Conv1D(torch.nn.Module):
    """As transformers defines GPT-2's linear layers."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight, self.bias = torch.nn.Parameter(torch.randn(nx, nf)), torch.nn.Parameter(torch.randn(nf))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.size()[:-1], self.nf)


class Block(torch.nn.Module):
    """GPT-2's: an embedding, layers with transposed weights, a head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table, self.mix = torch.nn.Embedding(9, 7), torch.nn.Bilinear(1, 1, 2)
        self.up, self.down, self.head = Conv1D(33, 7), Conv1D(8, 33), torch.nn.Linear(8, 16)

    def forward(self, x):
        return self.head(self.down(torch.nn.functional.gelu(self.up(x))))


@pytest.mark.parametrize("when", ["plan", "always"])
def test_transposed_layers_are_taken_and_come_back(when):
    model, x = Block(), torch.randn(2, 3, 7)
    before = [model(x)]
    assert tw.torch.patch(model, when=when) is model
    assert isinstance(model.up, Conv1D)
    assert type(model.up) is not Conv1D
    close([model(x)], before, rtol=1e-4, atol=1e-5)
    model(x).sum().backward()
    assert all(p.grad is not None for p in (model.up.weight, model.up.bias, model.down.weight))
    tw.torch.unpatch(model)
    assert type(model.up) is type(model.down) is Conv1D
    assert not {"when", "kept", "__module__"} & set(model.up.__dict__)
    close([model(x)], before)


def test_the_report_names_every_layer_and_its_reason():
    report = tw.torch.patch(Block(), report=True)
    assert report.taken == ["up", "down"]
    assert report.left == ["table", "mix", "head"]
    why = {layer.name: layer.why for layer in report.layers}
    assert "multiples of 8" in why["head"]
    assert why["table"] == "a table of rows, no product"
    assert why["mix"] == "no linear layer"
    assert str(report).startswith("2 layers taken, 3 left\ntable (Embedding): left")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(
    "record",
    [torch.fx.symbolic_trace, torch.jit.script, lambda model: torch.jit.trace(model, (torch.zeros(2, 3, 7),))],
    ids=["fx", "script", "trace"],
)
def test_a_patched_model_is_recorded(record):
    model, x = Block(), torch.randn(2, 3, 7)
    want = model(x)
    close([record(tw.torch.patch(model, when="always"))(x)], [want], rtol=1e-4, atol=1e-5)
    if record is torch.fx.symbolic_trace:
        assert sum(node.op == "call_module" for node in record(model).graph.nodes) == 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_quantising_a_patched_model_is_refused():
    model = tw.torch.patch(Block())
    with pytest.raises(tw.UsageError, match=r"quantise tw\.torch\.unpatch\(model\)"):
        torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear})
    made = torch.ao.quantization.quantize_dynamic(tw.torch.unpatch(model), {torch.nn.Linear})
    assert "quantized" in type(made.head).__module__

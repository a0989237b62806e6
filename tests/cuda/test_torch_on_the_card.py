"""torch's operator on the card: gradients, opcheck, torch.compile, CUDA graphs, streams, autocast, accelerate."""

from __future__ import annotations

import pytest

import tilewise as tw
from seeds import next_seed

torch = pytest.importorskip("torch")
pytest.importorskip("tilewise.torch")  # registers the operator
call_sites = pytest.importorskip("tilewise.torch.call_sites")

RAGGED = [(300, 257, 129), (129, 64, 257), (64, 64, 64)]


def operands(m, k, n, dtype, seed=0):
    torch.manual_seed(seed)
    M = torch.randn(m, k, device="cuda").to(dtype).requires_grad_()
    N = torch.randn(k, n, device="cuda").to(dtype).requires_grad_()
    return M, N


def close(got, exact, bound):
    return (got.double() - exact.double()).norm() <= bound * exact.double().norm()


@pytest.mark.parametrize("shape", RAGGED, ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_product_and_gradients(shape, dtype):
    M, N = operands(*shape, dtype)
    dP = torch.randn(shape[0], shape[2], device="cuda").to(dtype)
    P = tw.matmul(M, N)
    dM, dN = torch.autograd.grad(P, (M, N), dP)
    bound = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 1e-5}[dtype]
    m, n, d = (x.detach().double() for x in (M, N, dP))
    assert close(P, m @ n, bound)
    assert close(dM, d @ n.T, bound)
    assert close(dN, m.T @ d, bound)
    assert (dM.dtype, dN.dtype) == (dtype, dtype)


@pytest.mark.parametrize("semiring", [name for name in tw.semirings if name != "lor_land"])
def test_gradients_over_every_semiring(semiring):
    M, N = operands(9, 7, 5, torch.float64)
    assert torch.autograd.gradcheck(lambda M, N: tw.matmul(M, N, semiring=semiring), (M, N))


def test_the_k_that_won_is_the_one_the_host_finds():
    M, N = (x.detach() for x in operands(65, 33, 17, torch.float32))
    for semiring in ("min_plus", "max_times"):
        P, k = tw.torch.matmul(M, N, semiring=semiring, return_arg=True)
        host_p, host_k = tw.matmul(M.cpu(), N.cpu(), semiring=semiring, return_arg=True)
        assert torch.equal(P.cpu(), host_p)
        assert torch.equal(k.cpu(), host_k)


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "logaddexp_plus"])
def test_opcheck(semiring):
    M, N = operands(5, 7, 3, torch.float32)
    found = torch.library.opcheck(torch.ops.tilewise.matmul.default, (M, N, semiring, "high"))
    assert set(found.values()) == {"SUCCESS"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_compiled_without_a_graph_break_it_gives_the_eager_results(dtype):
    torch._dynamo.reset()
    M, N = operands(65, 129, 33, dtype)

    def step(M, N):
        return tw.matmul(M * 2, N).float() / 100

    compiled = torch.compile(step, fullgraph=True)
    results = []
    for run in (step, compiled):
        P = run(M, N)
        results.append((P.detach(), *torch.autograd.grad(P.square().sum(), (M, N))))
    assert torch.equal(results[0][0], results[1][0]), "the same product"
    for eager, other in zip(*results, strict=True):  # inductor keeps float32 where eager rounds
        assert close(other, eager, 1e-2)


@pytest.mark.parametrize("shape", [(256, 256, 256), (300, 257, 129)], ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus"])
def test_a_graph_replays_the_product(shape, dtype, semiring):
    M, N = (x.detach() for x in operands(*shape, dtype))
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(3):
            tw.matmul(M, N, semiring=semiring)
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        P = tw.matmul(M, N, semiring=semiring)
        Q = P * 2
    for seed in (1, 2):
        fresh = [x.detach() for x in operands(*shape, dtype, seed)]
        M.copy_(fresh[0])
        N.copy_(fresh[1])
        graph.replay()
        eager = tw.matmul(*fresh, semiring=semiring)
        assert torch.equal(P, eager)
        assert torch.equal(Q, eager * 2)


def test_a_training_step_in_a_graph():
    layer = tw.torch.Linear(64, 129, bias=False, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(32, 64, device="cuda", dtype=torch.bfloat16)

    def step():
        layer.zero_grad(set_to_none=False)
        layer(x).float().square().mean().backward()

    layer.weight.grad = torch.zeros_like(layer.weight)
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(warm)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    x.copy_(torch.randn_like(x))
    graph.replay()
    replayed = layer.weight.grad.clone()
    step()
    assert torch.equal(replayed, layer.weight.grad)


def test_two_streams_do_not_wait_for_each_other_and_are_both_right():
    M, N = (x.detach() for x in operands(1025, 1025, 1025, torch.bfloat16))
    streams = [torch.cuda.Stream() for _ in range(2)]
    torch.cuda.synchronize()
    made = []
    for turn in range(6):
        with torch.cuda.stream(streams[turn % 2]):
            made.append((turn, tw.matmul(M * (turn + 1), N)))
    torch.cuda.synchronize()
    for turn, P in made:
        assert close(P, (M * (turn + 1)).double() @ N.double(), 1e-2), turn


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    M, N = operands(33, 65, 17, torch.float32)
    with torch.autocast("cuda", dtype=dtype):
        P = tw.matmul(M, N)
        assert P.dtype == torch.matmul(M, N).dtype == dtype
    P.float().sum().backward()
    assert M.grad.dtype == torch.float32


def test_accelerate_takes_the_cliff_and_leaves_the_rest():
    layer = torch.nn.Linear(1024, 5027, bias=False, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(4096, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    layer(x).float().square().mean().backward()
    expected = (x.grad.clone(), layer.weight.grad.clone())
    x.grad = layer.weight.grad = None
    with tw.torch.accelerate() as done:
        layer(x).float().square().mean().backward()
        torch.mm(x, x.T[:, :4096])
    print(done)
    assert (done.routed, done.left) == (3, 3)  # a product with gradients is three
    assert close(x.grad, expected[0], 1e-2)
    assert close(layer.weight.grad, expected[1], 1e-2)


def test_cupys_stream_and_pool_are_used():
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        M = cupy.random.standard_normal((1025, 1025), dtype=cupy.float32)
        pool = cupy.get_default_memory_pool()
        before = pool.used_bytes()
        P = tw.matmul(M, M * 2)
        assert pool.used_bytes() - before >= P.nbytes, "the product lies in CuPy's own pool"
        Q = P + 0
    stream.synchronize()
    cupy.testing.assert_allclose(Q, M @ (M * 2), rtol=1e-3, atol=1e-2)


def test_rows_with_spare_room_leave_by_the_copy_engine_and_sums_stay_unrounded():
    seed = next_seed() % 2**31
    print("seed", seed)
    torch.manual_seed(seed)
    for _ in range(8):
        m, k, n = (int(x) for x in torch.randint(130, 900, (3,)))
        lead = -(-n // 64) * 64
        M, N = torch.randn(m, -(-k // 8) * 8, device="cuda").bfloat16()[:, :k], torch.randn(k, lead, device="cuda")
        N = N.bfloat16()[:, :n]
        memory = torch.full((m + 1, lead), 7.0, device="cuda").bfloat16()
        P = memory[:m, :n]
        assert call_sites.into(M, N, P, spare=True)
        wanted = M.float() @ N.float()
        torch.testing.assert_close(P.float(), wanted, rtol=2e-2, atol=0.5)
        assert (memory[:m, -(-n // 8) * 8 :] == 7).all(), "no more than the 16 bytes a row ends in"
        assert (memory[m:] == 7).all()
        sums = torch.empty(m, n + n % 2, device="cuda")[:, :n]
        assert call_sites.into(M, N, sums, sums="first")
        assert call_sites.into(M, N, sums, sums="more")
        torch.testing.assert_close(sums, 2 * wanted, rtol=1e-3, atol=5e-2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
def test_a_compiled_model_of_odd_widths_steps_as_torch_does():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.LayerNorm(770), torch.nn.Linear(770, 1031), torch.nn.GELU())
    net = torch.nn.Sequential(net, torch.nn.Linear(1031, 770)).cuda().bfloat16()
    x = torch.randn(3, 341, 770, device="cuda").bfloat16()

    def step(run):
        net.zero_grad()
        made = run(x)
        made.float().square().mean().backward()
        return [made.detach(), *(p.grad.clone() for p in net.parameters())]

    expected = step(net)
    tw.torch.patch(net, "always")
    call_sites.SITES.clear()
    got = step(torch.compile(net))
    for a, b in zip(got, expected, strict=True):
        assert a.stride() == b.stride()
        assert float((a.float() - b.float()).norm() / b.float().norm()) < 2e-2
    assert len(call_sites.SITES) == 6  # two products forward; of each backward two, as the norm has weights

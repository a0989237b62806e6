"""X·Xᵀ on a card beside torch.mm and our general product, Newton–Schulz iterations and Muon steps beside torch's.

`python docs/how/symmetric_speed.py [gram|muon] [tf32|…] [gpt2|llama|odd] [compile]`: all by default, but torch.compile
only where it is requested. Products by CUDA graphs, steps by events.
"""

import statistics
import sys
import time

import torch

import tilewise as tw

SHAPES = ((4096, 4096), (8192, 2048), (2048, 2048), (4096, 1024), (768, 3072), (1600, 6400), (4097, 4097), (1001, 3001))
KINDS = (("bfloat16", "high"), ("float16", "high"), ("float32", "tf32"), ("float32", "high"), ("float64", "high"))
GPT2 = [(2304, 768), (768, 768), (3072, 768), (768, 3072)] * 12
LLAMA = [(2048, 2048), (2048, 2048), (512, 2048), (512, 2048), (8192, 2048), (8192, 2048), (2048, 8192)] * 16
QUINTIC = (3.4445, -4.7750, 2.0315)
ODD = [(1001, 333), (770, 3001), (99, 2050), (1537, 769), (640, 641), (50, 50), (2049, 1023)] * 4

LISTS = {"gpt2": GPT2, "llama": LLAMA, "odd": ODD}


def chosen(name, among):
    requested = [x for x in sys.argv if x in among]
    return not requested or name in requested


def microseconds(works, rounds=7):
    """Medians of interleaved graphs of five calls each."""
    graphs = {}
    for name, work in works.items():
        for _ in range(2):
            work()
        torch.cuda.synchronize()
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name]):
            for _ in range(5):
                work()
    return by_events({name: graph.replay for name, graph in graphs.items()}, rounds, 5)


def by_events(works, rounds, each=1):
    took = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(rounds):
        for name, work in works.items():
            time.sleep(0.005)
            start, stop = torch.cuda.Event(True), torch.cuda.Event(True)
            start.record()
            work()
            stop.record()
            torch.cuda.synchronize()
            took[name].append(start.elapsed_time(stop) * 1e3 / each)
    return {name: statistics.median(times) for name, times in took.items()}


def gram():
    for name, precision in [kind for kind in KINDS if chosen(kind[1], ("tf32", "high"))]:
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        for m, k in SHAPES:
            if name == "float64" and m * k > 2**22:
                continue
            X = torch.randn(m, k, device="cuda").to(getattr(torch, name))
            other, P = X.clone(), torch.empty(m, m, device="cuda", dtype=X.dtype)
            how = {"out": P} if precision == "high" else {"out": P, "precision": precision}
            took = microseconds(
                {
                    "ours": lambda X=X, how=how: tw.matmul(X, X.mT, **how),
                    "general": lambda X=X, other=other, how=how: tw.matmul(X, other.mT, **how),
                    "torch": lambda X=X, P=P: torch.mm(X, X.mT, out=P),
                }
            )
            plan = tw.plan(X, X.mT, precision=precision)
            note = plan.notes[-1] if plan.notes and plan.notes[-1].startswith("symmetric") else ""
            print(
                f"{name:9} {precision:5} {m:5}x{k:<5} {took['ours']:8.1f} us, {took['torch'] / took['ours']:5.2f} of "
                f"torch.mm, {took['general'] / took['ours']:5.2f} of the general product  {note}",
                flush=True,
            )


def muon():
    compiled = torch.compile(torch.optim._muon._zeropower_via_newtonschulz, dynamic=False)
    for name, shapes in [each for each in LISTS.items() if chosen(each[0], LISTS)]:
        given = [torch.randn(shape, device="cuda") for shape in shapes]
        took = by_events(
            {
                "ours": lambda given=given: tw.torch.newton_schulz(given, dtype=torch.bfloat16),
                "eager": lambda given=given: [
                    torch.optim._muon._zeropower_via_newtonschulz(x, QUINTIC, 5, 1e-7) for x in given
                ],
                **(
                    {"compiled": lambda given=given: [compiled(x, QUINTIC, 5, 1e-7) for x in given]}
                    if "compile" in sys.argv
                    else {}
                ),
            },
            5,
        )
        steps = {}
        for label, kind in (("ours", tw.torch.Muon), ("torch", torch.optim.Muon)):
            params = [torch.nn.Parameter(x.clone()) for x in given]
            for p in params:
                p.grad = torch.randn_like(p)
            steps[label] = kind(params, lr=1e-3).step
        both = by_events(steps, 5)
        print(
            f"{name:14} iterations {took['ours'] / 1e3:7.2f} ms, "
            + ", ".join(f"{took[x] / took['ours']:5.2f} of torch {x}" for x in took if x != "ours")
            + f"; a step {both['ours'] / 1e3:7.2f} ms, {both['torch'] / both['ours']:5.2f} of torch.optim.Muon",
            flush=True,
        )


for name in [x for x in sys.argv[1:] if x in ("gram", "muon")] or ["gram", "muon"]:
    {"gram": gram, "muon": muon}[name]()

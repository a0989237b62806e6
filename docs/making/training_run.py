"""A small GPT trained for a few thousand steps, by torch and by ours: `python docs/making/training_run.py`.

Widths, vocabulary and sequence are odd; every product of the layers is ours (`when="always"`), nothing is left to
torch. The yardstick is torch itself from two seeds. Writes docs/benchmarks/training.json and training.png, or, given a
folder, there; `--plot` draws again what was measured.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

STEPS, EVERY, LIMIT = 3000, 25, 18.0  # steps, of which each such many are averaged; seconds of one run
RUNS = (("torch, seed 0", 0, False), ("tilewise, seed 0", 0, True), ("torch, seed 1", 1, False))


def train(name: str, seed: int, ours: bool) -> dict[str, Any]:
    """Losses of one run, averaged over EVERY steps."""
    import torch

    import tilewise.torch
    from tilewise.bench.models import Sizes, batch_of, make_model

    card = torch.cuda.is_available()
    device, sizes = ("cuda" if card else "cpu"), Sizes(509, 258, 127, 16, 3, 6, 1031)
    model = make_model(sizes, seed).to(device, torch.bfloat16 if card else torch.float32)
    if ours:
        tilewise.torch.patch(model, when="always")
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=card)
    batches = [tuple(x.to(device) for x in batch_of(sizes, number)) for number in range(256)]
    held, curve, started = torch.zeros((), device=device), [], time.perf_counter()
    early = []
    for step in range(1, STEPS + 1):
        optimiser.zero_grad(set_to_none=True)
        loss = model(*batches[(step * 7 + seed) % len(batches)])
        loss.backward()
        optimiser.step()
        held += loss.detach()
        if step == 20:
            early.append(float(loss.detach()))
        if step % EVERY == 0:
            curve.append(float(held) / EVERY)
            held.zero_()
            if time.perf_counter() - started > LIMIT:
                break
    seconds = time.perf_counter() - started
    routed = tilewise.torch.choices("always").routed if ours else 0
    return {"name": name, "losses": curve, "seconds": seconds, "loss_after_20": early, "products_of_ours": routed}


def draw(runs: list[dict[str, Any]], path: Path) -> None:
    """The curves over one another, and below them how far they lie apart."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (top, low) = pyplot.subplots(
        2, 1, figsize=(8, 6), sharex=True, height_ratios=(2, 1), constrained_layout=True
    )
    count = min(len(run["losses"]) for run in runs)
    steps = [EVERY * (i + 1) for i in range(count)]
    for run, style in zip(runs, ("-", "--", ":"), strict=True):
        top.plot(steps, run["losses"][:count], style, label=run["name"], linewidth=1.8)
    first = runs[0]["losses"]
    for run, style in zip(runs[1:], ("--", ":"), strict=True):
        low.plot(steps, [a - b for a, b in zip(run["losses"][:count], first, strict=False)], style, label=run["name"])
    top.set_ylabel("loss")
    low.set_ylabel(f"minus {runs[0]['name']}")
    low.set_xlabel("step")
    top.legend()
    low.legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    folders = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    folder = Path(folders[0]) if folders else Path(__file__).parents[1] / "benchmarks"
    document = folder / "training.json"
    if "--plot" not in sys.argv:
        runs = []
        for run in RUNS:
            runs.append(train(*run))
            document.write_text(json.dumps(runs) + "\n", encoding="utf-8")
            last = runs[-1]
            print(
                f"{last['name']}: {len(last['losses']) * EVERY} steps in {last['seconds']:.1f} s, loss after 20 steps"
            )
            print(f"  {last['loss_after_20']}, at the end {last['losses'][-1]:.4f}, ours {last['products_of_ours']}")
    runs = json.loads(document.read_text(encoding="utf-8"))
    if "--no-plot" not in sys.argv:
        draw(runs, folder / "training.png")


if __name__ == "__main__":
    main()

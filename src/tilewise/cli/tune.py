"""`tilewise tune`: measure which configs are fastest on this card, for later plans."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tilewise.cli.output import json_option, print_json, print_table, progress, remark
from tilewise.core.machine import Machine
from tilewise.core.tuning import TunedTable, slug, table_of
from tilewise.system.cache import cache_folder
from tilewise.system.output import check_output, write_whole
from tilewise.system.version import __version__

# what `--share` writes of a card
SHARED = ("name", "arch", "units", "bandwidth", "resident_threads", "step_rates", "tensor_rates", "source")


@click.command("tune")
@click.option("--dtype", "dtypes", default="bfloat16,float64", show_default=True, help="Comma-separated dtypes.")
@click.option("--shapes", help="Shapes instead of those of `bench shapes`: 4096x4096x4096,1000x500x700.")
@click.option("--seconds", default=600.0, show_default=True, help="Stop after this long; the next run continues.")
@click.option("--rounds", default=7, show_default=True, help="Timings of each config, interleaved.")
@click.option("--restart", is_flag=True, help="Measure again what was measured before.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of the plans' one.")
@click.option("--calibrate", is_flag=True, help="Time every kernel on drawn products, and correct the cost models.")
@click.option("--share", type=click.Path(path_type=Path), help="Write the card's figures and the table to this file.")
@click.option("--seed", type=click.IntRange(0), help="Seed of the drawn products; by default the time.")
@json_option
def command(
    dtypes: str, shapes: str | None, seconds: float, rounds: int, restart: bool, output: Path | None, calibrate: bool,
    share: Path | None, seed: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Measure the configs that the cost model expects to be near the best, and record the fastest.

    Plans use that table first; `tilewise plan` then prints "tuned". It is written after every product, so an
    interrupted run loses nothing, and the next one continues.

    With --calibrate products of every dtype, semiring and size are drawn for --seconds, every kernel that takes one is
    timed, and the fitted error of each cost model goes into the table and corrects expected times.

    With --share the card's figures and everything in its table are also written to a file, for plans of a card that the
    reader does not have: no name of a user, a host or a folder is in it.
    """
    from tilewise.algebra.dtypes import dtype_named
    from tilewise.backends.cuda.device import describe
    from tilewise.bench.tune import suite, tune
    from tilewise.core.problem import parse_shape

    if share:
        check_output(share)
    if calibrate:
        machine, table = _calibrate(seconds, int(time.time()) if seed is None else seed, output, as_json)
        _share(share, machine, table)
        return
    wanted = tuple(dtype_named(name.strip()).name for name in dtypes.split(","))
    products = suite(wanted, tuple(parse_shape(text) for text in shapes.split(",")) if shapes else ())
    machine = describe("cuda:0")
    path = _table_path(output, machine)
    table = (None if restart else _read(path)) or TunedTable(machine.name, {})
    started, rows = time.monotonic(), []
    bar, task = progress(len(products), "tune")
    with bar:
        steps = tune(products, machine, table, rounds, lambda: time.monotonic() - started > seconds)
        for (case, dtype), key, entry, grown in steps:
            bar.advance(task)
            if entry is None:
                continue
            table = grown
            _write(path, table.to_json())
            rows.append(_row(f"{dtype} {case.name}", key, entry))
    describe.cache_clear()
    _share(share, machine, table)
    _print(machine.name, path, rows, len(table.entries), as_json)


def _print(name: str, path: Path, rows: list[dict[str, Any]], classes: int, as_json: bool) -> None:
    gains = [row["gain"] for row in rows]
    mean = math.exp(sum(map(math.log, gains)) / len(gains)) if gains else 1.0
    if as_json:
        print_json({"table": str(path), "measured": rows, "geometric_mean_gain": mean, "classes": classes})
        return
    head = ["product", "model's config", "µs", "fastest config", "µs", "gain"]
    cells = [
        [row["product"], row["model_way"], f"{row['model_seconds'] * 1e6:.1f}", row["way"],
         f"{row['seconds'] * 1e6:.1f}", f"{row['gain']:.3f}"]
        for row in rows
    ]  # fmt: skip
    print_table(f"{name}: gains over the cost model's choice", head, cells)
    remark(f"{len(rows)} measured, {classes} classes in {path}; geometric mean of the gains {mean:.3f}")


def _row(name: str, key: str, entry: Any) -> dict[str, Any]:
    return {
        "product": name,
        "class": key,
        "way": entry.spec,
        "seconds": entry.seconds,
        "model_way": entry.model_spec,
        "model_seconds": entry.model_seconds,
        "gain": entry.gain,
    }


def _table_path(output: Path | None, machine: Machine) -> Path:
    if output:
        check_output(output, ())
    return output or cache_folder() / "tuned" / f"{slug(machine.name)}.json"


def _read(path: Path) -> TunedTable | None:
    try:
        return table_of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _write(path: Path, document: Any) -> None:
    """Write under a temporary name, then rename: readers see the old table or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1, ensure_ascii=False)
    weights = r"\[\s+(-?[\d.e-]+(?:,\s+-?[\d.e-]+)+)\s+\]"  # on one line
    text = re.sub(weights, lambda found: f"[{' '.join(found[1].split())}]", text)
    write_whole(path, text + "\n")


def _share(path: Path | None, machine: Machine, table: TunedTable) -> None:
    """Write a card's figures and its table, if a file was given."""
    if path is None:
        return
    figures = {name: getattr(machine, name) for name in SHARED}
    _write(path, {"tilewise": __version__, "figures": figures, "table": table.to_json()})
    remark(f"{machine.name}: its figures and {len(table.entries)} classes are in {path}")


def _calibrate(seconds: float, seed: int, output: Path | None, as_json: bool) -> tuple[Machine, TunedTable]:
    from tilewise.backends.cuda.device import describe
    from tilewise.bench.calibrate import measured
    from tilewise.kernels.calibration import corrected_seconds, with_fits

    machine = describe("cuda:0")
    path = _table_path(output, machine)
    table = _read(path) or machine.tuned or TunedTable(machine.name, {})
    remark(f"seed {seed}")
    found = []
    bar, task = progress(None, "calibrate")
    with bar:
        for _, timed in measured(seconds, seed, replace(machine, tuned=replace(table, fits={}))):
            found.append(timed)
            bar.advance(task)
    table = with_fits(table, [pair for timed in found for pair in timed])
    _write(path, table.to_json())
    describe.cache_clear()
    rows = []
    for tuned in (None, replace(machine, tuned=table)):
        losses = []
        for timed in found:
            expected = [corrected_seconds(replace(plan, machine=tuned or plan.machine)) for plan, _ in timed]
            _, chosen = timed[expected.index(min(expected))]
            losses.append(chosen / min(t for _, t in timed))
        near = sum(loss < 1.1 for loss in losses) / max(1, len(losses))
        rows.append(
            {"corrected": tuned is not None, "within_a_tenth_of_the_best": near, "worst": max(losses, default=1)}
        )
    if as_json:
        print_json({"table": str(path), "seed": seed, "products": len(found), "choices": rows})
        return machine, table
    for row in rows:
        models = "corrected models" if row["corrected"] else "models as they are"
        share = f"{row['within_a_tenth_of_the_best']:.0%} of choices within a tenth of the best kernel"
        remark(f"{models}: {share}, the worst {row['worst']:.2f} times its time")
    remark(f"{len(found)} products, {len(table.fits)} fits in {path}")
    return machine, table

"""`tilewise tune`: which way is the fastest, measured on this card, for plans to come."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import click

from tilewise.cli.output import json_option, print_json, print_table, progress, remark
from tilewise.system.output import check_output, write_whole


@click.command("tune")
@click.option("--dtype", "dtypes", default="bfloat16,float64", show_default=True, help="Of the products, by commas.")
@click.option("--shapes", help="Instead of the suite of `bench shapes`: 4096x4096x4096,1000x500x700.")
@click.option("--seconds", default=600.0, show_default=True, help="Stop after so long; run again, it goes on.")
@click.option("--rounds", default=7, show_default=True, help="Of interleaved timings of each way.")
@click.option("--restart", is_flag=True, help="Measure again what was measured before.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Another file than the one plans are made from.")
@json_option
def command(
    dtypes: str, shapes: str | None, seconds: float, rounds: int, restart: bool, output: Path | None, as_json: bool
) -> None:
    """Measure the ways that the model expects to be near the best, and keep which one was the fastest.

    Plans consult that table first: `tilewise plan` says "tuned" where it did. It is written after every product, so an
    interrupted run loses nothing, and the next one goes on behind it.
    """
    from tilewise.algebra.dtypes import dtype_named
    from tilewise.bench.tune import suite, tune
    from tilewise.cache import cache_folder
    from tilewise.engines.cuda.device import describe
    from tilewise.problem import parse_shape
    from tilewise.tuning import Table, slug, table_of

    wanted = tuple(dtype_named(name.strip()).name for name in dtypes.split(","))
    products = suite(wanted, tuple(parse_shape(text) for text in shapes.split(",")) if shapes else ())
    machine = describe("cuda:0")
    path = output or cache_folder() / "tuned" / f"{slug(machine.name)}.json"
    if output:
        check_output(output, ())
    table = None if restart else _read(path, table_of)
    table = table or Table(machine.name, {})
    started, rows = time.monotonic(), []
    bar, task = progress(len(products), "tune")
    with bar:
        steps = tune(products, machine, table, rounds, lambda: time.monotonic() - started > seconds)
        for product, key, entry, grown in steps:
            bar.advance(task)
            if entry is None:
                continue
            table = grown
            _write(path, table.to_json())
            rows.append(_row(product.name, key, entry))
    describe.cache_clear()
    gains = [row["gain"] for row in rows]
    mean = math.exp(sum(map(math.log, gains)) / len(gains)) if gains else 1.0
    if as_json:
        print_json({"table": str(path), "measured": rows, "geometric_mean_gain": mean, "classes": len(table.entries)})
        return
    print_table(
        f"{machine.name}: what measuring won over the model",
        ["product", "model's way", "µs", "fastest way", "µs", "won"],
        [
            [
                r["product"],
                r["model_way"],
                f"{r['model_seconds'] * 1e6:.1f}",
                r["way"],
                f"{r['seconds'] * 1e6:.1f}",
                f"{r['gain']:.3f}",
            ]
            for r in rows
        ],
    )
    remark(f"{len(rows)} measured, {len(table.entries)} classes in {path}; geometric mean of what was won {mean:.3f}")


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


def _read(path: Path, table_of: Any) -> Any:
    try:
        return table_of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _write(path: Path, document: Any) -> None:
    """To a temporary name, then renamed: a reader sees a whole table or the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")

"""A run of a suite as one document (date, device, versions, command, rows), and the tables made from its rows."""

from __future__ import annotations

import contextlib
import datetime
import platform
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilewise.bench.suites import Ratios, Row, grouped, ratios
from tilewise.system.quantities import seconds as seconds_text
from tilewise.system.version import __version__

JSON_VERSION = 1
PACKAGES = ("numpy", "torch", "cupy-cuda13x", "cuda-core", "cuda-bindings", "dask", "zarr")
WORST = 10  # rows of a table of the worst
PEERS = ("openblas", "mkl", "torch", "float32")  # mkl or torch: the BLAS that torch was built with
OVER = {f"{how}over_{peer}": peer + (", cold" if how else "") for how in ("", "cold_") for peer in PEERS}
CPU_RANDOM = ("cpu-random", "semirings-random", "halves-random")
BARS = {"share_of_floor": 0.88, "over_float32": 1.0}  # lowest acceptable ratio; 0.9 for the others
OVER |= {"share_of_ports": "the ports", "share_of_floor": "the floor"}

Table = tuple[str, list[str], list[list[str]]]  # a title, a head, rows of cells
Cell = str | Callable[[Row], str]  # a format of the row's values, or a function


def make_document(suite: str, device: str, command: str, rows: list[Row]) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "suite": suite,
        "date": datetime.date.today().isoformat(),
        "device": describe_device(device),
        "versions": {"tilewise": __version__, "python": platform.python_version(), **installed(PACKAGES)},
        "command": command,
        "rows": rows,
    }


def describe_device(device: str) -> dict[str, Any]:
    if device == "cpu":
        from tilewise.backends.cpu.limits import host_machine

        machine = host_machine(measured=True)
    else:
        from tilewise.backends.cuda.device import describe, full_name

        machine = describe(full_name(device))
    return {
        "kind": machine.kind,
        "name": machine.name,
        "units": machine.units,
        "float32_steps": machine.step_rate("float32"),
        "bandwidth": machine.bandwidth,
    }


def installed(names: tuple[str, ...]) -> dict[str, str]:
    """The versions of those packages that are installed."""
    found = {}
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def label(row: Row) -> str:
    return f"{row['kernel']} {row['tile']}" if row["tile"] else str(row["kernel"])


def case_text(row: Row) -> str:
    """The name of a case: its shape, unless the row names it."""
    return str(row.get("case") or shape_text(row["shape"]))


def shape_text(shape: Iterable[int]) -> str:
    extents = list(shape)
    return f"{extents[0]}³" if len(set(extents)) == 1 else "×".join(map(str, extents))


def tables(document: dict[str, Any]) -> list[Table]:
    """The tables of a run, the main one first."""
    suite, rows = document["suite"], document["rows"]
    if suite == "random":
        return _random(rows)
    dtypes = ", ".join(dict.fromkeys(row["dtype"] for row in rows if "dtype" in row))
    title = f"{suite} on {document['device']['name']}: {dtypes}" if "device" in document else suite
    if suite in COLUMNS:
        return [(title, *_cells(COLUMNS[suite], rows))]
    special = {"stacks": _batches, "groups": _batches, **dict.fromkeys(CPU_RANDOM, _cpu_random)}
    return special.get(suite, _speeds)(title, rows)


def _cells(columns: dict[str, Cell], rows: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    cells = columns.values()
    return list(columns), [
        [cell.format_map(row) if isinstance(cell, str) else cell(row) for cell in cells] for row in rows
    ]


def _speeds(title: str, rows: list[Row]) -> list[Table]:
    """TFLOP/s, a row per candidate and a column per case; transposed if there are many more cases."""
    cases = list(dict.fromkeys(case_text(row) for row in rows))
    speeds = {(label(row), case_text(row)): row["tflops"] for row in rows}
    scale, unit = (1.0, "TFLOP/s") if max(speeds.values(), default=1) >= 1 else (1e3, "GFLOP/s")
    cells = []
    for name in dict.fromkeys(label(row) for row in rows):
        values = [speeds.get((name, case)) for case in cases]
        cells.append([name, *("–" if value is None else f"{value * scale:.2f}" for value in values)])
    head = [unit, *cases]
    if len(cases) > len(cells) + 6:
        head, *cells = [list(column) for column in zip(head, *cells, strict=True)]
    return [(title, head, cells)]


def _host_pair(how: str, row: Row) -> str:
    ours, theirs = row[f"ours {how}"], row[f"theirs {how}"]
    return f"{ours:.1f} / {theirs:.1f} = {ours / theirs:.2f}"


def _extents(row: Row) -> str:
    return "×".join(map(str, row["shape"]))


def _value(who: str, row: Row) -> str:
    return f"{row[who]:.1f}" if row["unit"].endswith("/s") else f"{row[who]:.1e}"


def _semiring(row: Row) -> str:
    known = f", {row['known']}" if row.get("known") else ""
    return row["what"] if "what" in row else f"{row['semiring']} {row['dtype']}{known}"


def _semiring_limit(row: Row) -> str:
    if "instruction_limit" in row:
        return f"instruction limit {row['instruction_limit'] / 1e12:.1f}"
    return "port limit" if "share_of_limit" in row else row["peer"]


def _semiring_result(row: Row) -> str:
    if "instruction_limit" in row:
        rate, share = row["steps_per_second"] / 1e12, 100 * row["share_of_limit"]
        return f"{rate:.1f} T steps/s, {share:.0f} %; one more: × {row['ragged_over_aligned']:.2f}"
    if "share_of_limit" in row:
        return f"{100 * row['share_of_limit']:.1f} %"
    floor = f"; {row['over_memory_floor']:.2f} of the memory's floor" if "over_memory_floor" in row else ""
    return f"{row['times_faster']:.3g} times{floor}"


COLUMNS: dict[str, dict[str, Cell]] = {
    "scale": {"measured": "{what}", "": "{who}", "size": "{size}", "result": "{result}"},
    "host": {
        "host µs a call, ours / theirs": lambda row: f"{row['library']} {row['dtype']} {_extents(row)}",
        "launches": "{launches}",
        "out=": partial(_host_pair, "out"),
        "new memory": partial(_host_pair, "new memory"),
        "out=, same tensors": partial(_host_pair, "out, same"),
    },
    "calls": {
        "called from": "{library}",
        "with": "{keywords}",
        "µs": "{microseconds:.1f}",
        "its own, µs": lambda row: "" if row["own_microseconds"] is None else f"{row['own_microseconds']:.1f}",
    },
    "cliffs": {
        "neighbours": "{case}",
        "kernels": lambda row: " → ".join(row["kernels"]),
        "µs": lambda row: " → ".join(f"{1e6 * x:.1f}" for x in row["seconds"]),
        "NumPy's": lambda row: " → ".join(f"{1e6 * x:.1f}" for x in row["numpy_seconds"]),
    },
    "model": {
        "steps of": "{case}",
        "by": "{kernel}",
        "ms": lambda row: f"{1e3 * row['seconds']:.2f}",
        "of its peer": "{times_faster:.2f}×",
        "first step, s": "{first_seconds:.2f}",
        "memory": lambda row: f"{row['memory_ratio']:.3f}" if row["peak_bytes"] else "–",
        "loss": "{loss:.4f}",
        "peer's": "{loss_of_torch:.4f}",
    },
    "dtypes": {
        "measured": "{what}, {unit}",
        "of": "{case}",
        "tilewise": partial(_value, "ours"),
        "vendor": partial(_value, "vendor"),
        "ratio": "{ratio:.2f}",
    },
    "semirings": {
        "measured": _semiring,
        "against": _semiring_limit,
        "size": lambda row: str(row["size"] if "size" in row else row["shape"][0]),
        "threads": lambda row: str(row.get("threads", "–")),
        "result": _semiring_result,
    },
}  # fmt: skip
WORST_OF_RANDOM: dict[str, Cell] = {
    "": "{case}",
    "graph": "{graph_ratio:.2f}",
    "queued": "{queued_ratio:.2f}",
    "ours": lambda row: seconds_text(row["seconds"]),
    "kernel": "{kernel}",
}


def _batches(title: str, rows: list[Row]) -> list[Table]:
    """Known cases, the worst of the random ones, and a summary of the random ones by dtype."""
    known, others = ([row for row in rows if (row["suite"] == "known") == is_known] for is_known in (True, False))
    cells = [_batch(row) for row in known]
    cells += [_batch(row, "worst: ") for row in sorted(others, key=lambda row: float(row["ratio"]))[:WORST]]
    for (dtype, peer), of in grouped(others, "dtype", "peer").items():
        found = ratios(of, "ratio")
        if found.values:
            text = f"mean {found.mean:.2f}, under 0.9: {found.percent}, lowest {min(found.values):.2f}"
            cells.append([f"{len(found.values)} random, {dtype}", peer, "", "", text, ""])
    return [(title, ["case", "peer", "peer, µs", "ours, µs", "ratio", "kernel"], cells)]


def _batch(row: Row, before: str = "") -> list[str]:
    times = (f"{1e6 * row[name]:.1f}" for name in ("peer_seconds", "seconds"))
    text = f"{row['ratio']:.2f}" + (f", of the floor {row['of_floor']:.2f}" if row.get("of_floor") else "")
    return [before + row["case"], row["peer"], *times, text + ("" if row["right"] else " WRONG"), row["kernel"]]


def _cpu_random(title: str, rows: list[Row]) -> list[Table]:
    """A summary by semiring, dtype and peer or limit, and the products with the lowest ratios."""
    cells = []
    for case, of in sorted(grouped(rows, "semiring", "dtype").items()):
        for key, peer in OVER.items():
            if (found := ratios(of, key, BARS.get(key, 0.9))).values:
                below = f"{found.below} ({found.percent})" + (f" below {BARS[key]}" if key in BARS else "")
                count = str(len(found.values))
                cells.append([_of(*case), peer, count, f"{found.mean:.3f}", below, f"{min(found.values):.2f}"])
    behind = [(row[key], peer, row) for row in rows for key, peer in OVER.items() if key in row]
    worst = [
        [_extents(row), _of(row.get("semiring", ""), row["dtype"]), row["kernel"], peer, f"{ratio:.2f}"]
        for ratio, peer, row in sorted(behind, key=lambda found: found[0])[:WORST]
    ]
    head = ["dtype", "against", "products", "mean", "under 0.9", "lowest"]
    return [(title, head, cells), ("furthest behind", ["m×k×n", "dtype", "kernel", "against", "ratio"], worst)]


def _of(semiring: str, dtype: str) -> str:
    return f"{semiring} {dtype}".strip()


def _random(rows: list[Row]) -> list[Table]:
    """Tables by dtype, by kernel, of first calls, and of the lowest ratios."""
    by_dtype = grouped(rows, "dtype")
    dtypes = [dtype for (dtype,) in by_dtype]
    kernels = sorted(grouped(rows, "dtype", "kernel").items(), key=lambda item: (dtypes.index(item[0][0]), item[0][1]))
    firsts = [[dtype, *_percentiles([row["first_seconds"] for row in of])] for (dtype,), of in by_dtype.items()]
    head = ["", "shapes", *(name for clock in ("graph", "queued") for name in (clock, "lowest", "under 0.9"))]
    return [
        ("random shapes, times the speed of the better of cuBLAS and cuBLASLt", head,
         [[dtype, *_two_clocks(of)] for (dtype,), of in by_dtype.items()]),
        ("by kernel", head, [[f"{dtype} {kernel}", *_two_clocks(of)] for (dtype, kernel), of in kernels]),
        ("the first call of a new shape, until it returns", ["", "median", "p90", "p99", "worst", "sum"], firsts),
        ("the lowest ten, card alone", *_cells(WORST_OF_RANDOM, worst_of_random(rows))),
    ]  # fmt: skip


def worst_of_random(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: float(row["graph_ratio"]))[:WORST]


def plans(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The plans of the lowest ten of `bench random`, each as one text."""
    return [(str(row["case"]), "; ".join((row["plan"], *row["notes"]))) for row in worst_of_random(document["rows"])]


def _two_clocks(rows: list[Row]) -> list[str]:
    clocks: list[Ratios] = [ratios(rows, key) for key in ("graph_ratio", "queued_ratio")]
    return [str(len(rows)), *(cell for c in clocks for cell in (f"{c.mean:.2f}", f"{min(c.values):.2f}", c.percent))]


def _percentiles(values: list[float]) -> list[str]:
    ranked = sorted(values)
    shares = [ranked[min(len(ranked) - 1, int(len(ranked) * share))] for share in (0.5, 0.9, 0.99)]
    return [seconds_text(value) for value in (*shares, ranked[-1], sum(ranked))]

"""A run of a suite as one document: when, where, with which versions, by which command, and every row."""

from __future__ import annotations

import contextlib
import datetime
import math
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilewise.bench import host_time, random_report, random_rings
from tilewise.system.version import __version__

JSON_VERSION = 1
PACKAGES = ("numpy", "torch", "cupy-cuda13x", "cuda-core", "cuda-bindings", "dask", "zarr")


def make_document(suite: str, device: str, command: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
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
        from tilewise.backends.reference.limits import measured_machine

        machine = host_machine(measured_machine())
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


def contestants(document: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(label(row) for row in document["rows"]))


def label(row: dict[str, Any]) -> str:
    return f"{row['kernel']} {row['tile']}" if row["tile"] else str(row["kernel"])


def case_text(row: dict[str, Any]) -> str:
    """What was multiplied: its shape, and more where a suite has several products of one shape."""
    return str(row.get("case") or shape_text(row["shape"]))


def shape_text(shape: list[int]) -> str:
    return f"{shape[0]}³" if len(set(shape)) == 1 else "×".join(map(str, shape))


def tables(document: dict[str, Any]) -> list[random_report.Part]:
    """(title, head, lines) of everything a run has to show."""
    if document["suite"] == "random":
        return random_report.parts(document)
    dtypes = ", ".join(dict.fromkeys(row["dtype"] for row in document["rows"] if "dtype" in row))
    return [(f"{document['suite']} on {document['device']['name']}: {dtypes}", *table(document))]


def table(document: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """One line a measurement for `semirings`; else contestants down and shapes across, or the other way round when
    there are more shapes, with TFLOP/s in the cells."""
    if document["suite"] == "scale":
        names = ("what", "who", "size", "result")
        return ["measured", "", "size", "result"], [[str(row[name]) for name in names] for row in document["rows"]]
    if document["suite"] == "host":
        return host_time.HEAD, [host_time.line(row) for row in document["rows"]]
    if document["suite"] == "calls":
        return ["called from", "with", "µs", "its own, µs"], [_call_line(row) for row in document["rows"]]
    if document["suite"] == "cpu-random":
        from tilewise.bench.cpu_random import summary

        return ["dtype", "against", "products", "mean", "under 0.9", "lowest"], summary(document["rows"])
    if document["suite"] in random_rings.BARS:
        head = random_rings.HEAD if document["suite"] == "semirings-random" else random_rings.HEAD_HALVES
        return head, random_rings.summary(document["suite"], document["rows"])
    if document["suite"] == "model":
        head = ["steps of", "by", "ms", "of its rival", "first step, s", "memory", "loss", "rival's"]
        return head, [_model_line(row) for row in document["rows"]]
    if document["suite"] == "dtypes":
        return ["measured", "of", "tilewise", "vendor", "ratio"], [_dtype_line(row) for row in document["rows"]]
    if document["suite"] in ("stacks", "groups"):
        return _table_of_many(document["rows"])
    if document["suite"] == "semirings":
        return ["measured", "against", "size", "threads", "result"], [_semiring_line(row) for row in document["rows"]]
    cases = list(dict.fromkeys(case_text(row) for row in document["rows"]))
    cells = {(label(row), case_text(row)): row["tflops"] for row in document["rows"]}
    scale, unit = (1.0, "TFLOP/s") if max(cells.values(), default=1) >= 1 else (1e3, "GFLOP/s")
    lines = []
    for name in contestants(document):
        values = [cells.get((name, case)) for case in cases]
        lines.append([name, *("–" if v is None else f"{v * scale:.2f}" for v in values)])
    head = [unit, *cases]
    if len(cases) > len(lines) + 6:
        head, *lines = [list(column) for column in zip(head, *lines, strict=True)]
    return head, lines


def _call_line(row: dict[str, Any]) -> list[str]:
    own = row["own_microseconds"]
    return [row["library"], row["keywords"], f"{row['microseconds']:.1f}", "" if own is None else f"{own:.1f}"]


def _model_line(row: dict[str, Any]) -> list[str]:
    """The rival is torch, or torch.compile where ours is compiled too."""
    memory = f"{row['memory_ratio']:.3f}" if row["peak_bytes"] else "–"
    ms, faster = f"{1e3 * row['seconds']:.2f}", f"{row['times_faster']:.2f}×"
    losses = [f"{row[name]:.4f}" for name in ("loss", "loss_of_torch")]
    return [row["case"], row["kernel"], ms, faster, f"{row['first_seconds']:.2f}", memory, *losses]


def _table_of_many(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Known cases, the ten worst of the random ones, and what all random ones come to, one line a dtype."""
    known, others = ([row for row in rows if (row["suite"] == "known") == is_known] for is_known in (True, False))
    worst = sorted(others, key=lambda row: row["ratio"])[:10]
    lines = [_line_of_many(row) for row in known] + [_line_of_many(row, "worst: ") for row in worst]
    for dtype, peer in dict.fromkeys((row["dtype"], row["peer"]) for row in others):
        of = [row["ratio"] for row in others if (row["dtype"], row["peer"]) == (dtype, peer)]
        ratios = [ratio for ratio in of if ratio == ratio]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            under = 100 * sum(ratio < 0.9 for ratio in ratios) / len(ratios)
            words = f"mean {mean:.2f}, under 0.9: {under:.0f} %, lowest {min(ratios):.2f}"
            lines.append([f"{len(ratios)} random, {dtype}", peer, "", "", words, ""])
    return ["case", "peer", "peer, µs", "ours, µs", "ratio", "kernel"], lines


def _line_of_many(row: dict[str, Any], before: str = "") -> list[str]:
    times = (f"{1e6 * row[name]:.1f}" for name in ("peer_seconds", "seconds"))
    words = f"{row['ratio']:.2f}" + (f", of the floor {row['of_floor']:.2f}" if row.get("of_floor") else "")
    return [before + row["case"], row["peer"], *times, words + ("" if row["right"] else " WRONG"), row["kernel"]]


def _dtype_line(row: dict[str, Any]) -> list[str]:
    form = "{:.1f}" if row["unit"].endswith("/s") else "{:.1e}"
    values = [form.format(row[who]) for who in ("ours", "vendor")]
    return [f"{row['what']}, {row['unit']}", row["case"], *values, f"{row['ratio']:.2f}"]


def _semiring_line(row: dict[str, Any]) -> list[str]:
    if "instruction_limit" in row:
        name, rate = f"{row['semiring']} {row['dtype']}", row["steps_per_second"] / 1e12
        name += f", {row['known']}" if row["known"] else ""
        result = (
            f"{rate:.1f} T steps/s, {100 * row['share_of_limit']:.0f} %; one more: × {row['ragged_over_aligned']:.2f}"
        )
        limit = f"instruction limit {row['instruction_limit'] / 1e12:.1f}"
        return [name, limit, str(row["shape"][0]), "–", result]
    if "share_of_limit" in row:
        name, size = f"{row['semiring']} {row['dtype']}", row["shape"][0]
        return [name, "port limit", str(size), str(row["threads"]), f"{100 * row['share_of_limit']:.1f} %"]
    threads = str(row.get("threads", "–"))
    result = f"{row['times_faster']:.3g} times"
    if "over_memory_floor" in row:
        result += f"; {row['over_memory_floor']:.2f} of the memory's floor"
    return [row["what"], row["peer"], str(row["size"]), threads, result]


def markdown(document: dict[str, Any]) -> str:
    made = []
    shown = tables(document) if document["suite"] == "random" else [("", *table(document))]
    for _, head, lines in shown:
        rows = [head, ["---", *["---:"] * (len(head) - 1)], *lines]
        made.append("\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n")
    return "\n".join(made)

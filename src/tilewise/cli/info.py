"""`tilewise info`: devices, backends, caches and versions of this machine."""

from __future__ import annotations

import platform
from typing import Any

import click

from tilewise.cli.output import json_option, print_json, print_rows, print_table
from tilewise.core.machine import Machine
from tilewise.system.version import __version__

PACKAGES = (
    "numpy",
    "ml_dtypes",
    "llvmlite",
    "cuda-core",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "torch",
    "cupy-cuda13x",
    "jax",
    "matplotlib",
)


@click.command("info")
@click.option("--dtypes", is_flag=True, help="The table of which dtype works in which semiring.")
@json_option
def command(dtypes: bool, as_json: bool) -> None:
    """Devices, backends, caches, versions, and limits measured on this machine."""
    if dtypes:
        _dtypes(as_json)
        return
    found = gather()
    if as_json:
        print_json(found)
        return
    rows = [
        ("tilewise", f"{found['tilewise']} on Python {found['python']}, {found['platform']}"),
        ("backends", ", ".join(found["engines"])),
    ]
    for device in found["devices"]:
        has = f" ({device['instructions']})" if device.get("instructions") else ""
        rows.append((device["device"], f"{device['name']}, {device['units']} units{has}"))
        rows += [("", device["refused"])] if device.get("refused") else []
        speed = f"{device['bandwidth'] / 1e9:,.0f} GB/s, {device['steps'] / 1e9:,.0f} G float32 steps/s"
        rows.append(("", f"{speed} ({device['source']})"))
    if found["why_no_card"]:
        rows.append(("cuda", found["why_no_card"]))
    for name, cache in found["caches"].items():
        filled = f"{cache['entries']} entries, {cache['bytes']:,} of {cache['limit']:,} bytes"
        rows.append((f"cache {name}", f"{filled} in {cache['folder']}"))
    rows += [("package", f"{name} {number}") for name, number in found["packages"].items()]
    print_rows(rows)


def gather() -> dict[str, Any]:
    from tilewise.arrays.card import card_count, memory, open_card
    from tilewise.backends.cpu.limits import host_machine
    from tilewise.backends.cpu.runtime.target import host_target
    from tilewise.bench.report import installed
    from tilewise.errors import DeviceError
    from tilewise.system.cache import DiskCache

    host = host_machine(measured=True)
    instructions = host_target().name + (", AMX" if host.matrix_tiles else "")
    devices = [_device("cpu", host) | {"instructions": instructions, "refused": host.refused}]
    why = ""
    for number in range(card_count()):
        from tilewise.backends.cuda.device import describe

        card = describe(f"cuda:{number}")
        free, total = memory(f"cuda:{number}")
        more = {"arch": card.arch, "memory_free": free, "memory_total": total}
        devices.append(_device(f"cuda:{number}", card) | more)
    if len(devices) == 1:
        try:
            open_card("cuda:0")
        except DeviceError as error:
            why = str(error)
    caches = {kind: DiskCache(kind) for kind in ("cubin", "llvm")}
    return {
        "tilewise": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "engines": ["cpu", "reference", "simt", *(["cuda"] if len(devices) > 1 else [])],
        "devices": devices,
        "why_no_card": why,
        "caches": {
            kind: {"folder": str(c.folder), "entries": len(c.entries()), "bytes": c.size(), "limit": c.limit}
            for kind, c in caches.items()
        },
        "packages": installed(PACKAGES),
    }


def _device(device: str, machine: Machine) -> dict[str, Any]:
    return {
        "device": device,
        "name": machine.name,
        "units": machine.units,
        "bandwidth": machine.bandwidth,
        "steps": machine.step_rate("float32"),
        "source": machine.source,
    }


def _dtypes(as_json: bool) -> None:
    from tilewise.algebra.builtin import dtype_table

    table = dtype_table()
    if as_json:
        print_json(table)
        return
    names = list(table)
    dtypes = list(table[names[0]])
    cells = [[d, *(_cell(table[s][d], d) for s in names)] for d in dtypes]
    heads = [name.replace("_", "\n") for name in names]
    print_table("dtype of the product (=: the operands' own, –: refused)", ["dtype", *heads], cells)


def _cell(made: str, dtype: str) -> str:
    return "–" if made.startswith("refused") else "=" if made == dtype else made

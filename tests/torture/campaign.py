"""What needs hours of a processor, given in windows: so many seconds on so many processes, added up over windows.

    python tests/torture/campaign.py --seconds 600 --processes 12 --ledger window-1.json
    python tests/torture/campaign.py --ledger window-1.json --ledger window-2.json --sum

First, alone on the machine: Ctrl-C 200 times, and speed at 150 MB. Then side by side: forks, peaks, hostile files, and
for the rest of the time fuzzers, the one with the least CPU behind it next. Every window draws other seeds; a ledger
holds, for each reader, the CPU seconds of its processes (time.process_time), its inputs, and what was found with the
seed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPORT = str(ROOT / "tests" / "support")
sys.path.insert(0, SUPPORT)

import fuzzing  # noqa: E402

ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), SUPPORT, os.environ.get("PYTHONPATH", "")]),
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
SHARD = 40.0  # seconds of one fuzzing process
FILES = 20  # hostile files of one process
GOALS = {"fuzz": 24 * 60.0, "hostile": 5000}
TESTS = {
    "ctrl_c": "tests/scale/test_pieces.py::test_ctrl_c_200_times",
    "forks": "tests/backends/cpu/test_forks.py::test_500_forks_at_random_moments_under_load",
    "speed": "tests/scale/test_peak.py::test_speed_within_150_mb",
    "torture": "tests/torture/test_torture.py::test_faults",
    "peaks": "tests/scale/test_peak.py::test_60_random_products_stay_within_their_budgets",
}


class Ledger:
    """What was done; kept on the disk as it grows."""

    def __init__(self, path):
        self.path, self.turn = Path(path), threading.Lock()
        self.data = {"fuzz": {}, "hostile": {}, "tests": {}, "found": []}

    def add(self, part, name, found="", **counts):
        with self.turn:
            row = self.data[part].setdefault(name, {})
            for key, value in counts.items():
                row[key] = max(row.get(key, 0), value) if key.startswith("worst") else row.get(key, 0) + value
            if found:
                self.data["found"].append({"part": part, "name": name, "what": found})
            self.path.write_text(json.dumps(self.data, indent=1))

    def put(self, name, text):
        with self.turn:
            self.data["tests"][name] = text
            self.path.write_text(json.dumps(self.data, indent=1))


def fuzz_shard(ledger, name, seconds, keep):
    seed = random.SystemRandom().randrange(10**9)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, f"{SUPPORT}/fuzzing.py", name, folder, str(seconds), str(seed)],
            env=ENVIRONMENT, capture_output=True, text=True, timeout=seconds + 120,
        )  # fmt: skip
        try:
            row = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            row = {"inputs": 0, "cpu": 0.0, "found": f"exit {done.returncode}: {done.stderr[-3000:]}"}
        if row["found"]:
            shutil.copy(Path(folder) / "input", keep / f"{name.replace(' ', '-')}-{seed}")
        printed = f"seed {seed}: {row['found']}" if row["found"] else ""
        ledger.add("fuzz", name, printed, cpu=row["cpu"], inputs=row["inputs"], shards=1)


def hostile_shard(ledger, count, seconds, keep):
    """So many files; each is in the ledger as soon as it has ended, for a window may be cut off."""
    seed = random.SystemRandom().randrange(10**9)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as printed:
        files = subprocess.Popen(
            [sys.executable, f"{SUPPORT}/hostile_runs.py", folder, str(count), str(seed), str(seconds)],
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=printed, text=True,
        )  # fmt: skip
        for line in files.stdout:
            row = json.loads(line)
            limit = row["limit"]
            worst = {f"worst over {limit} s": row_over(row), f"worst MiB at {limit} s": row["peak"] >> 20}
            found = f"seed {seed} {row['number']} {row['class']} at {limit} s: {row['found']}" if row["found"] else ""
            ledger.add("hostile", row["what"], found, files=1, at_20_s=limit == 20, cpu=row["cpu"], **worst)
            for path in Path(folder).glob("found-*"):
                shutil.copy(path, keep)
        if files.wait():
            printed.seek(0)
            ledger.add("hostile", "check", f"seed {seed}: {printed.read()[-2000:]}", files=0, at_20_s=0)


def row_over(row):
    return round(min(row["wall"], row["cpu"]) - row["limit"], 2)


def run_test(ledger, name, seconds, processes=1):
    """A marked test, and the last of what it printed."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-qs", "-pno:cacheprovider", "-m", "", "-k", "not outside", TESTS[name]],
            env={k: v for k, v in ENVIRONMENT.items() if not k.endswith("NUM_THREADS")}
            | {"TORTURE_SECONDS": str(max(20, seconds - 60))}, cwd=ROOT, capture_output=True,
            text=True, timeout=seconds,
        )  # fmt: skip
        text = f"{'passed' if done.returncode == 0 else 'FAILED'}\n{done.stdout[-6000:]}{done.stderr[-500:]}"
    except subprocess.TimeoutExpired as late:
        printed = late.stdout or b""
        text = f"STOPPED\n{(printed.decode() if isinstance(printed, bytes) else printed)[-6000:]}"
    ledger.put(name, f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}: {text}")


def work(ledger, end, goals, parts, keep, claimed):
    """One of the processes: whatever is furthest behind."""
    while (left := end - time.monotonic()) > 5:
        with ledger.turn:
            cpu = {name: claimed["fuzz"].get(name, 0.0) for name in fuzzing.READERS if name != "lock"}
            files = claimed["files"]
            name = min(cpu, key=lambda name: cpu[name])
            hostile_share, fuzz_share = files / goals["hostile"], cpu[name] / goals["fuzz"]
            do_hostile = "hostile" in parts and ("fuzz" not in parts or hostile_share < fuzz_share)
            if do_hostile:
                claimed["files"] += FILES
            elif "fuzz" in parts:
                claimed["fuzz"][name] = cpu[name] + min(SHARD, left)
            else:
                return
        try:
            if do_hostile:
                hostile_shard(ledger, FILES, left, keep)
            else:
                fuzz_shard(ledger, name, min(SHARD, left), keep)
        except Exception as error:  # the campaign goes on
            ledger.add("fuzz", name, f"{type(error).__name__}: {error}")


def summed(paths):
    total = Ledger(os.devnull)
    for path in paths:
        data = json.loads(Path(path).read_text())
        for part in ("fuzz", "hostile"):
            for name, row in data[part].items():
                total.add(part, name, **row)
        total.data["found"] += data["found"]
        total.data["tests"].update(data["tests"])
    return total.data


def show(data):
    print(f"{'reader':14}{'CPU minutes':>12}{'inputs':>12}")
    for name, row in data["fuzz"].items():
        print(f"{name:14}{row['cpu'] / 60:12.1f}{row['inputs']:12,}")
    for what, row in data["hostile"].items():
        worst = ", ".join(f"{key} {value}" for key, value in row.items() if key.startswith("worst"))
        print(f"{row['files']:6,} hostile files to {what} ({row['at_20_s']:,} with the limits as they come): {worst}")
    for name, text in data["tests"].items():
        print(f"{name}: {text}")
    print(f"found: {len(data['found'])}")
    for one in data["found"][:40]:
        print(f"  {one['part']} {one['name']}: {one['what'][-700:]}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--processes", type=int, default=os.cpu_count())
    options.add_argument("--ledger", action="append", required=True)
    options.add_argument("--parts", default="ctrl_c,forks,peaks,hostile,fuzz")
    options.add_argument("--keep", default="found", help="a folder for inputs that found something")
    options.add_argument("--sum", action="store_true", help="add ledgers up and print them; run nothing")
    given = options.parse_args()
    if given.sum:
        show(summed(given.ledger))
        return
    parts, end = given.parts.split(","), time.monotonic() + given.seconds
    keep = Path(given.keep)
    keep.mkdir(parents=True, exist_ok=True)
    ledger = Ledger(given.ledger[0])
    claimed = {"fuzz": {}, "files": 0}
    for earlier in given.ledger[1:]:
        data = json.loads(Path(earlier).read_text())
        claimed["files"] += sum(row["files"] for row in data["hostile"].values())
        for name, row in data["fuzz"].items():
            claimed["fuzz"][name] = claimed["fuzz"].get(name, 0.0) + row["cpu"]
    for name in ("ctrl_c", "speed"):
        if name in parts:
            run_test(ledger, name, end - time.monotonic())
    threads = [
        threading.Thread(target=work, args=(ledger, end, GOALS, parts, keep, claimed)) for _ in range(given.processes)
    ]
    threads += [
        threading.Thread(target=run_test, args=(ledger, name, max(1.0, end - time.monotonic())))
        for name in ("forks", "peaks", "torture")
        if name in parts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    show(ledger.data)


if __name__ == "__main__":
    main()

"""Build the archives of `tilewise-kernels`, with all cores and no card: `python build.py --arch sm_90a --dtype bf16`.

Then `pip wheel --no-deps .` makes the wheel. tilewise must be importable, with NVRTC: pip install 'tilewise[cuda]'.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from tilewise import __version__
from tilewise.algebra.builtin import SEMIRINGS
from tilewise.engines.cuda.builders import build, workers_for
from tilewise.engines.cuda.compile import compile_source, compiler, missing
from tilewise.engines.cuda.device import ARCHS, machine_of_arch
from tilewise.engines.cuda.prebuilt import write_archive
from tilewise.kernels.kernel_set import kernel_set
from tilewise.quantities import seconds, size
from tilewise.warming import USUAL, kinds_of, problem_of_kind

HERE = Path(__file__).parent / "tilewise_kernels"
RUN = ("sm_90a",)  # archs whose kernels have run on a card; those of the others are compiled and no more


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--arch", default=",".join(ARCHS), help="by commas")
    asked.add_argument("--dtype", default=",".join(USUAL), help="by commas")
    asked.add_argument("--workers", type=int, help="processes; all cores where it is left out")
    asked.add_argument("--output", type=Path, default=HERE, help="the folder of the archives")
    options = asked.parse_args()
    built = {"tilewise": __version__, "compiler": compiler(), "archs": {}}
    for arch in options.arch.split(","):
        start = time.perf_counter()
        texts: dict[str, None] = {}
        for kind in kinds_of(options.dtype):
            texts |= dict.fromkeys(kernel_set(problem_of_kind(SEMIRINGS["plus_times"], kind), machine_of_arch(arch)))
        lacking = missing(texts, arch)
        if lacking:
            build(lacking, arch, workers_for(len(lacking), options.workers), lambda _: None)
        path = options.output / f"{arch}.zip"
        raw = write_archive(path, {text: compile_source(text, arch) for text in texts})
        state = "run on a card" if arch in RUN else "compiled only"
        took = time.perf_counter() - start
        built["archs"][arch] = {"kernels": len(texts), "bytes": path.stat().st_size, "state": state}
        sizes = f"{size(raw)} of machine code, {size(path.stat().st_size)} in its archive"
        print(f"{arch}: {len(texts)} kernels, {sizes}, {state}; {len(lacking)} built in {seconds(took)}", flush=True)
    (options.output / "built.json").write_text(json.dumps(built, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

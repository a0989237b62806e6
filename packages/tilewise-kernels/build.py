"""Build the bundles of `tilewise-kernels`, with all cores and no GPU: `python build.py --arch sm_90a --dtype bf16`.

Then `pip wheel --no-deps .` makes the wheel. tilewise must be installed with NVRTC (`pip install '.[cuda]'`).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from tilewise import __version__
from tilewise.algebra.builtin import SEMIRINGS
from tilewise.backends.cuda.builders import build, workers_for
from tilewise.backends.cuda.bundle import build_id, bundled, packed
from tilewise.backends.cuda.compile import compile_source, compiler, missing
from tilewise.backends.cuda.device import ARCHS, machine_of_arch
from tilewise.backends.cuda.loading import kernel_names
from tilewise.kernels.kernel_set import kernel_set
from tilewise.kernels.keys import text_of
from tilewise.planning.precompile import USUAL, kinds_of, problem_of_kind
from tilewise.system.quantities import seconds, size

HERE = Path(__file__).parent / "tilewise_kernels"
RUN = ("sm_90a",)  # archs whose kernels have run on a GPU; the others' are only compiled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", default=",".join(ARCHS), help="separated by commas")
    parser.add_argument("--dtype", default=",".join(USUAL), help="separated by commas")
    parser.add_argument("--workers", type=int, help="threads (default: all cores)")
    parser.add_argument("--output", type=Path, default=HERE, help="the folder of the bundles")
    options = parser.parse_args()
    code = build_id()
    assert code is not None, "the source changed while this ran: start again"
    built = {"tilewise": __version__, "compiler": compiler(), "archs": {}}
    for arch in options.arch.split(","):
        start = time.perf_counter()
        sets = {
            kind: kernel_set(problem_of_kind(SEMIRINGS["plus_times"], kind), machine_of_arch(arch))
            for kind in kinds_of(options.dtype)
        }
        texts = {text: None for kind in sets for text in sets[kind]}
        lacking = missing(texts, arch)
        if lacking:
            build(lacking, arch, workers_for(len(lacking), options.workers), lambda *_: None)
        made = {text: (packed(compile_source(text, arch)), kernel_names(text_of(text))) for text in texts}
        path = options.output / f"{arch}.kernels"
        path.write_bytes(bundled(code, made, sets))
        state = "run on a card" if arch in RUN else "compiled only"
        took = time.perf_counter() - start
        built["archs"][arch] = {"kernels": len(texts), "bytes": path.stat().st_size, "state": state}
        large = size(path.stat().st_size)
        print(f"{arch}: {len(texts)} kernels, {large}, {state}; {len(lacking)} built in {seconds(took)}", flush=True)
    (options.output / "built.json").write_text(json.dumps(built, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""A process that compiles: reads lines of JSON (arch, text), stores the cubin in the cache, writes a line of JSON.

It never opens a card, and it ends with its parent, whose pipe is closed then.
"""

from __future__ import annotations

import json
import os
import sys
import time

from tilewise.system.parent import end_with


def main() -> None:
    end_with(int(sys.argv[1]))
    os.environ["TILEWISE_COMPILE"] = "alone"
    if hasattr(os, "nice") and "--background" in sys.argv:
        os.nice(10)
    from tilewise.backends.cuda.compile import compile_source
    from tilewise.errors import TilewiseError

    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        job = json.loads(line)
        start, size, message = time.perf_counter(), 0, ""
        try:
            size = len(compile_source(job["source"], job["arch"]))
        except TilewiseError as error:
            message = str(error)
        answers.write(json.dumps({"seconds": time.perf_counter() - start, "bytes": size, "error": message}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

"""A process that compiles what it is told: a line of JSON in (arch, text), the cubin to the cache, a line of JSON out.

It never opens a card, and it ends when whoever started it does: there is nothing to read any more then.
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
        start, size, said = time.perf_counter(), 0, ""
        try:
            size = len(compile_source(job["source"], job["arch"]))
        except TilewiseError as error:
            said = str(error)
        answers.write(json.dumps({"seconds": time.perf_counter() - start, "bytes": size, "error": said}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

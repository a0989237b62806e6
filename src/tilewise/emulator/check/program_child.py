"""The process that runs a program: settings come as JSON on the command line, the report goes to a descriptor."""

from __future__ import annotations

import codecs
import gc
import json
import math
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tilewise.emulator.host.program_report import ANNOUNCED, not_run
from tilewise.system.parent import end_with

ENCODINGS = ("ascii", "latin-1", "unicode_escape", "utf-8-sig", "utf-16")  # Python imports each on its first use
PR_SET_THP_DISABLE = 41  # of Linux


class Report:
    """The one report of a run: a limit may be met just as the program ends, and whoever is second waits to be ended."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.first = descriptor, threading.Lock()

    def announce(self) -> None:
        """A fault was found: the parent takes no report without one from now on."""
        os.write(self.descriptor, ANNOUNCED)

    def __call__(self, document: dict[str, Any]) -> None:
        if not self.first.acquire(blocking=False):
            threading.Event().wait()
        try:
            text = json.dumps(document)
            with os.fdopen(self.descriptor, "w", encoding="utf-8") as out:
                out.write(text)
        except BaseException:  # the parent is gone, or memory is: this process ends all the same
            os._exit(4)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there is something to report
    gc.disable()  # reading and lowering make a large tree and no garbage: looking for some takes a tenth of the time
    settings = json.loads(sys.argv[1])
    end_with(settings["parent"])
    _limits(settings)
    _small_pages()
    report = Report(settings["report"])
    from tilewise.emulator.host.file_broker import BrokeredFiles
    from tilewise.emulator.host.options import Options
    from tilewise.emulator.host.running import build, execute
    from tilewise.emulator.host.watch import Watch
    from tilewise.errors import TilewiseError

    options = Options(**settings["options"])

    def stop(status: int, reason: str) -> None:
        report(not_run(status, "limit", reason))
        os._exit(status)

    watch = Watch(options, settings["began"], stop)
    signal.signal(signal.SIGINT, lambda *_: watch.interrupt())  # what was found by then is reported
    try:
        session, text = build(Path(settings["path"]), options, report)
        watch.session, watch.part = session, "compiling it"
        session.cuda.phrase = _word
        session.faults.announce = report.announce
        session.files = BrokeredFiles(settings.get("files", -1))
        if settings.get("dump"):
            with open(settings["dump"], "w", encoding="utf-8") as out:
                out.write(text)
        gc.freeze()
        gc.enable()
        execute(session, text, settings["arguments"], settings["name"], lambda: _confine(session, watch, settings))
    except TilewiseError as error:
        report(not_run(error.exit_code, "refused", str(error)))
        os._exit(error.exit_code)
    except Exception as error:
        if os.environ.get("TILEWISE_DEBUG"):
            raise
        report(not_run(4, "failed", f"{type(error).__name__}: {error}"))
        os._exit(4)


def _confine(session: Any, watch: Any, settings: dict[str, Any]) -> None:
    """The sandbox, entered by the program's thread; before it, everything that would need a path."""
    from tilewise.emulator.host.options import OFF, REQUIRED
    from tilewise.errors import SandboxError
    from tilewise.system import sandbox

    if session.program.launches or session.program.kernel_handles:
        import tilewise.emulator.check.wording  # noqa: F401
    for encoding in ENCODINGS:
        codecs.lookup(encoding)
    watch.seal()
    wanted = session.options.sandbox
    if wanted == OFF:
        return
    lacking = sandbox.missing()
    if not lacking:
        try:
            session.sandbox = sandbox.enter(settings.get("files", -1))
        except OSError as error:
            lacking = f"the system refused it: {error.strerror} ({error.filename or error})"
    if lacking and wanted == REQUIRED:
        raise SandboxError(f"main was not run: it needs a sandbox, and {lacking}; --unsafe runs it without one")


def _word(finding: Any, given: Any) -> None:
    """Sentences for a kernel's finding; what they need is only loaded where there is one."""
    from tilewise.emulator.check.wording import word

    word(finding, given)


def _limits(settings: dict[str, Any]) -> None:
    """What the system itself holds the process to."""
    import resource

    for which in (resource.RLIMIT_DATA, resource.RLIMIT_AS):  # its memory is laid out whole; the watch limits it
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (hard, hard))
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 64)]
    seconds = settings["options"]["seconds"]
    if math.isfinite(seconds):  # the watch ends it before; this is for one that it cannot
        limits.append((resource.RLIMIT_CPU, 2 * (int(seconds) + 10)))
    for which, most in limits:
        _, hard = resource.getrlimit(which)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (wanted, hard if which != resource.RLIMIT_CORE else wanted))


def _small_pages() -> None:
    """NumPy asks for pages of 2 MiB: a machine that notes a few cells of a large array would take all of it."""
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


if __name__ == "__main__":
    main()

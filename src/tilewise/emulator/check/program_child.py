"""The process that runs a program: JSON settings from the command line, the report to a file descriptor."""

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

from tilewise.emulator.host.program_report import ANNOUNCED, not_run, refused
from tilewise.system.parent import end_with

ENCODINGS = ("ascii", "latin-1", "unicode_escape", "utf-8-sig", "utf-16")  # imported before the sandbox forbids it
CPU_SLACK = 5  # seconds of processor time beyond the limit, for the report
PR_SET_THP_DISABLE = 41  # of Linux


class Report:
    """The report of a run, written once: a second thread (a limit reached as the program ends) waits for the exit."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.first = descriptor, threading.Lock()
        self._writing, self._written = threading.Lock(), False

    def announce(self) -> None:
        """A fault was found: from now on the parent rejects a report without one."""
        with self._writing:
            if not self._written:  # behind a document it would be part of it
                os.write(self.descriptor, ANNOUNCED)

    def __call__(self, document: dict[str, Any]) -> None:
        if not self.first.acquire(blocking=False):
            threading.Event().wait()
        try:
            text = json.dumps(document)
            with self._writing, os.fdopen(self.descriptor, "w", encoding="utf-8") as out:
                self._written = True
                out.write(text)
        except BaseException:  # the parent has gone, or memory is used up
            os._exit(4)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until there is a report
    gc.disable()  # parsing and lowering make no cyclic garbage; collections take a tenth of the time
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
    signal.signal(signal.SIGINT, lambda *_: watch.interrupt())  # reports the findings so far
    try:
        session, text = build(Path(settings["path"]), options, report)
        if options.compile_only:
            report(not_run(0, "exit", ""))
            os._exit(0)
        watch.session, watch.part = session, "compiling it"
        session.cuda.phrase = _describe
        session.faults.announce = report.announce
        session.files = BrokeredFiles(settings.get("files", -1))
        if settings.get("dump"):
            with open(settings["dump"], "w", encoding="utf-8") as out:
                out.write(text)
        gc.freeze()
        gc.enable()
        execute(session, text, settings["arguments"], settings["name"], lambda: _confine(session, watch, settings))
    except TilewiseError as error:
        report(refused(error))
        os._exit(error.exit_code)
    except MemoryError:
        stop(4, f"{watch.memory_used_up}; it was {watch.part} then")
    except Exception as error:
        if os.environ.get("TILEWISE_DEBUG"):
            raise
        report(not_run(4, "failed", f"{type(error).__name__}: {error}"))
        os._exit(4)


def _confine(session: Any, watch: Any, settings: dict[str, Any]) -> None:
    """Enter the sandbox, in the program's thread, after everything that opens paths."""
    from tilewise.emulator.host.options import OFF, REQUIRED, WASM
    from tilewise.errors import SandboxError
    from tilewise.system import sandbox

    if session.program.launches or session.program.kernel_handles:
        import tilewise.emulator.check.unfilled
        import tilewise.emulator.check.wording  # noqa: F401
    for encoding in ENCODINGS:
        codecs.lookup(encoding)
    watch.seal()
    wanted, inside = session.options.sandbox, session.options.target == WASM
    session.sandbox = "WebAssembly" if inside else ""
    if wanted == OFF:
        return
    lacking = sandbox.missing()
    if not lacking:
        try:
            entered = sandbox.enter(settings.get("files", -1))
            session.sandbox = f"{session.sandbox}, {entered}" if inside else entered
        except OSError as error:
            lacking = f"the system refused it: {error.strerror} ({error.filename or error})"
    if lacking and wanted == REQUIRED and not inside:
        raise SandboxError(
            f'main was not run: it needs a sandbox, and {lacking}; pip install "tilewise[wasm]" gives it one, '
            "--unsafe runs it without one"
        )


def _describe(found: Any, given: Any) -> Any:
    """A launch's findings with their messages; the imports are deferred to the first finding."""
    from tilewise.emulator.check.unfilled import reads_of_launch
    from tilewise.emulator.check.wording import describe

    findings = reads_of_launch(found, given)
    for finding in findings:
        describe(finding, given)
    return findings


def _limits(settings: dict[str, Any]) -> None:
    """Set the process's resource limits."""
    import resource

    for which in (resource.RLIMIT_DATA, resource.RLIMIT_AS):  # address space is reserved; `Watch` limits memory
        hard = resource.getrlimit(which)[1]
        resource.setrlimit(which, (hard, hard))
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 64)]
    seconds = settings["options"]["seconds"]
    if math.isfinite(seconds):  # a fallback, also within one long call of C: `Watch` ends the process earlier
        limits.append((resource.RLIMIT_CPU, math.ceil(seconds) + CPU_SLACK))
    for which, most in limits:
        _, hard = resource.getrlimit(which)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (wanted, hard if which != resource.RLIMIT_CORE else wanted))


def _small_pages() -> None:
    """Disable transparent huge pages: touching a few cells of a large array would allocate all of it."""
    import ctypes

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


if __name__ == "__main__":
    main()

"""One run of a program: its memory, console, faults and clock, and how it ends."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from tilewise.emulator.host.lower.program import Program
from tilewise.emulator.host.options import NATIVE, WASM, Options
from tilewise.emulator.host.program_report import not_run
from tilewise.emulator.host.runtime.console import Console
from tilewise.emulator.host.runtime.faults import Faults
from tilewise.emulator.host.runtime.memory import Memory
from tilewise.emulator.host.runtime.sealing import unsealed
from tilewise.emulator.host.target import Trapped
from tilewise.emulator.host.target.native import LLVM_TO_C, Native
from tilewise.emulator.host.target.webassembly import WebAssembly
from tilewise.emulator.source.source import SPAN, Source
from tilewise.errors import LimitError, TilewiseError

Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}  # of the runtime, by the name the program calls
NEEDS: dict[str, str] = {}  # modules to import before the program starts, by the function that uses them
MAX_REPORTED_LAUNCHES = 1000
CALLS_PER_TIME_CHECK = 32  # reading the clock takes a microsecond
# functions that do not change the card's memory
HARMLESS = frozenset({
    "rt_launch", "rt_all_initialised", "__cuda_event", "__cuda_event_record", "__cuda_event_free", "__cuda_elapsed",
    "__cuda_last", "__cuda_sync", "__cuda_error_text", "__cuda_device", "__cuda_properties", "__cuda_attribute",
    "__now_ns", "clock", "time", "printf", "fprintf", "puts", "fflush",
})  # fmt: skip
ARGUMENT_COUNT = re.compile(r"\bargc\b")
LINE = re.compile(r"\bline (\d{8,})\b")
TARGETS = {NATIVE: Native, WASM: WebAssembly}


def runtime(*names: str, needs: str = "") -> Callable[[Function], Function]:
    """Register a function of the runtime; its first argument is the session.

    `needs`: a module that it imports and that few programs need; it is imported before the sandbox starts."""

    def register(function: Function) -> Function:
        for name in names:
            FUNCTIONS[name] = function
            if needs:
                NEEDS[name] = needs
        return function

    return register


def strip_file_numbers(text: str) -> str:
    """Line numbers of included files encode the file, too (see `SPAN`): in messages, only the line."""
    return LINE.sub(lambda found: f"line {int(found[1]) % SPAN}", text) if text else text


def _nothing() -> None:
    pass


class Session:
    def __init__(self, source: Source, options: Options, report: Callable[[dict[str, Any]], None]) -> None:
        self.source = source
        self.options = options
        self.memory = Memory(options.memory, TARGETS[options.target]())
        self.console = Console(options.output)
        self.faults = Faults(source)
        self.report = report
        self.program: Program  # set once the text is read
        self.cuda: Any = None
        self.files: Any = None  # the broker in the parent process
        self.sandbox = ""  # how this process is confined
        self.at_end: list[Function] = []  # checks after a normal end
        self.at_exit: list[tuple[int, int | None]] = []  # functions of atexit; destructors and their objects
        self.overruns: dict[int, Any] = {}  # by block: how far, element size, line, finding
        self.before_report: list[Function] = []  # final checks, however the program ended
        self.wanted = ""  # missing "arguments" or "input", or "the file …"
        self.failed = False  # its status is not 0: it may have ended early
        self.gave_up = False  # it ended by exit() with a status other than 0
        self.arguments = 0  # number of the program's arguments
        self.calls = 0  # of the runtime
        self.changes = 0  # calls that may have changed the card's memory
        self.state: dict[str, Any] = {}  # of rand, streams, files, …
        self._lock = threading.Lock()
        self._callbacks: list[Any] = []

    @property
    def line(self) -> int:
        return self.memory.line

    def name(self, number: int) -> str:
        return str(self.program.name_table[number])

    # -- ends

    def leave(self, status: int) -> None:
        """After main, and in exit(): run atexit functions and destructors of static objects in reverse order."""
        while self.at_exit:
            function, this = self.at_exit.pop()
            given = () if this is None else (this,)
            self.memory.target.function(function, ("void", *["ptr"] * len(given)))(*given)
        self.finish(status)

    def misses_input(self, pause: bool) -> None:
        """It read from empty input. `pause`: a single character, which after a launch only keeps a window open."""
        if not (pause and self.cuda is not None and self.cuda.launches):
            self.wanted = self.wanted or "input"

    def lacks_input(self) -> None:
        """A number was read from empty input: a following fault is not the program's, but ends the run."""

        def end(line: int) -> None:
            message = f"line {line}: the program wants input and was given none: tilewise run FILE < INPUT"
            self.finish(1, "crash", message)

        self.faults.on_missing_input = end

    def finish(self, status: int, ended: str = "exit", message: str = "") -> None:
        """Report the findings and end this process, even if that raises an error."""
        with self._lock:
            try:
                self.failed = status != 0
                if ended == "exit" and status:
                    self.wanted = self.wanted or self.not_given()
                lost = self._settle(ended)
                if lost and ended == "exit":
                    status, ended, message = 4, "failed", lost
                self.report(self._document(status, ended, message))
            except Exception as error:
                why = f"what was found cannot be told: {type(error).__name__}: {error}"
                self.report(not_run(4, "failed", why))
            finally:
                os._exit(status & 255)

    def not_given(self) -> str:
        """What a program lacked that failed before its first launch: a file that it did not find, or arguments."""
        if self.cuda is None or self.cuda.launches:
            return ""
        if "not opened" in self.state:
            return f"the file {self.state['not opened'][0]}"
        return "arguments" if not self.arguments and len(ARGUMENT_COUNT.findall(self.source.text)) > 1 else ""

    def _settle(self, ended: str) -> str:
        """Run the final checks and flush buffers; an error message if that fails."""
        if ended == "exit" and not (self.gave_up or self.wanted):
            for check in self.at_end:
                try:
                    check(self)
                except Exception as error:  # the findings so far are still reported
                    self.faults.notes.append(f"a check at the end failed: {error}")
        for settle in self.before_report:
            settle(self)
        try:
            self.console.close()
            for stream in self.state.get("streams", {}).values() if ended == "exit" else ():
                if not isinstance(stream.handle, int) and not stream.handle.closed:
                    stream.handle.flush()  # os._exit does not
        except OSError as error:  # a full disk, a terminal that was closed
            return f"what the program wrote cannot be written: {error.strerror or error}"
        return ""

    def _document(self, status: int, ended: str, message: str) -> dict[str, Any]:
        # copies: at a limit the program's thread still adds to its last launch
        launches: list[dict[str, Any]] = self.cuda.launches if self.cuda is not None else []
        for finding in self.faults.all():
            finding.message, finding.hint = strip_file_numbers(finding.message), strip_file_numbers(finding.hint)
            finding.evidence = strip_file_numbers(finding.evidence)
        return {
            "status": status, "ended": ended, "message": strip_file_numbers(message),
            "findings": [f.to_json() for f in self.faults.all()],
            "notes": [strip_file_numbers(note) for note in self.faults.notes],
            "launches": [dict(launch) for launch in launches[:MAX_REPORTED_LAUNCHES]],
            "open_line": not self.console.ended_line,
            "wanted": self.wanted,
            "sandbox": self.sandbox,
        }  # fmt: skip

    def _next_epoch(self) -> None:
        """Increment the epoch, and check the time limit: frequent calls may hold the GIL, so that the watch
        thread may not run."""
        self.memory.next_epoch()
        self.calls += 1
        if self.calls % CALLS_PER_TIME_CHECK == 0 and time.thread_time() > self.options.seconds:
            raise LimitError(f"{self.options.too_long}; it was near line {self.source.place(self.line, 1).line} then")

    def guarded(self, function: Function) -> Function:
        """A callback for compiled code: any exception ends the program."""
        quiet = function is FUNCTIONS.get("rt_all_initialised")
        changing = not any(function is FUNCTIONS.get(name) for name in HARMLESS)
        memory = self.memory
        next_epoch, still = _nothing if quiet else self._next_epoch, memory.lock

        def call(*arguments: Any) -> Any:
            self.changes += changing
            try:
                with still:
                    next_epoch()
                    if memory.collapse_due:
                        memory.collapse_now()
                    return function(self, *arguments)
            except Trapped as error:
                self.trapped(error)
            except LimitError as error:
                self._end(4, "limit", str(error))
            except TilewiseError as error:
                self._end(2, "refused", str(error))
            except MemoryError:
                self._end(4, "limit", "this machine has no more memory")
            except BaseException as error:
                self._end(4, "failed", "".join(traceback.format_exception_only(error)).strip()
                          + ("\n" + traceback.format_exc() if os.environ.get("TILEWISE_DEBUG") else ""))  # fmt: skip

        return call

    def trapped(self, error: Trapped) -> None:
        """A finding at the program's line ends the process."""
        try:
            FUNCTIONS["rt_trap"](self, error)
        except BaseException:
            os._exit(4)

    def _end(self, status: int, ended: str, message: str) -> None:
        """Like `finish`, but ends the process even if the report cannot be sent."""
        try:
            self.finish(status, ended, message)
        except BaseException:
            os._exit(4)

    def address_of(self, name: str, result: str, parameters: list[str]) -> int:
        """A pointer to a runtime function that compiled code can call."""
        maker = ctypes.CFUNCTYPE(*(LLVM_TO_C[t] for t in (result, *parameters)))
        with unsealed():
            made = maker(self.guarded(FUNCTIONS[name]))
        self._callbacks.append(made)  # never freed, which would write to its page
        return int(ctypes.cast(made, ctypes.c_void_p).value or 0)

"""Processes for programs, each forked from one that has imported everything: a start takes 0.08 s instead of 0.4.

The command forks too; that a new interpreter starts the same process is what the tests of the command line and
test_programs see. Run as a module this is the process that is forked, one for each worker of pytest.
"""

from __future__ import annotations

import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

CHILD = "tilewise.emulator.check.program_child"
NUMBER = 12  # characters of a process's number and of its status


class Nursery:
    """The process that has everything imported, and the socket by which copies are requested."""

    def __init__(self) -> None:
        self.request, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, str(Path(__file__)), str(theirs.fileno())]
        alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a copy has one thread
        alone["PYTHONPATH"] = os.pathsep.join(sys.path)  # the code that is tested, wherever it was imported from
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=alone)
        theirs.close()
        self.request.recv(1)  # its imports are no program's time: a program's clock begins before it is started

    def close(self) -> None:
        self.request.close()
        self.process.wait()

    def start(self, command: list[str], stdout, **how) -> Started | subprocess.Popen:
        """As subprocess.Popen would, for the one command that run_program gives."""
        assert command[1:3] == ["-m", CHILD], command
        if stdout is None:
            return subprocess.Popen(command, stdout=stdout, **how)
        return Started(self, command[3], **how)


class Started:
    """What run_program uses of a Popen."""

    def __init__(self, nursery: Nursery, settings: str, pass_fds, stderr, stdin, env) -> None:
        self.returncode: int | None = None
        feed, self.stdin = os.open(os.devnull, os.O_RDONLY), None
        if stdin != subprocess.DEVNULL:
            os.close(feed)
            feed, ours = os.pipe()
            self.stdin = open(ours, "wb")  # noqa: SIM115
        self.stdout, out = _pipe()
        self.stderr, err = _pipe()
        self.status, report_status = os.pipe()
        request = json.dumps({"settings": settings, "folder": os.getcwd(), "environment": env})
        given = [feed, out, err, report_status, *pass_fds]
        with open(os.memfd_create("request"), "r+b") as document:  # larger than a message of a socket may be
            document.write(request.encode())
            document.flush()
            socket.send_fds(nursery.request, [b"."], [document.fileno(), *given])
        for descriptor in given[:4]:
            os.close(descriptor)
        self.pid = int(os.read(self.status, NUMBER))

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self.status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(CHILD, timeout or 0)
            self.returncode = int(os.read(self.status, NUMBER))
            os.close(self.status)
        return self.returncode

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


def _pipe() -> tuple[BinaryIO, int]:
    reader, writer = os.pipe()
    return open(reader, "rb", buffering=0), writer


def _serve(request: socket.socket) -> None:
    while True:
        _, descriptors, _, _ = socket.recv_fds(request, 1, 7)
        if not descriptors:
            return
        if os.fork() == 0:  # one that waits for the program and reports its status
            request.close()
            _attend(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        while True:  # those that have reported it
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break


def _attend(document: int, feed: int, out: int, err: int, report_status: int, report: int, files: int) -> None:
    with open(document, "rb") as document:
        document.seek(0)
        request = json.loads(document.read())
    child = os.fork()
    if child == 0:
        try:
            os.close(report_status)
            _become(request, feed, out, err, report, files)
        finally:
            os._exit(4)
    for descriptor in (feed, out, err, report, files):
        os.close(descriptor)
    os.write(report_status, f"{child:{NUMBER}}".encode())
    _, status = os.waitpid(child, 0)
    os.write(report_status, f"{os.waitstatus_to_exitcode(status):{NUMBER}}".encode())
    os._exit(0)


def _become(request: dict, feed: int, out: int, err: int, report: int, files: int) -> None:
    """What `python -m CHILD SETTINGS` would be."""
    settings = json.loads(request["settings"])
    for given, wanted in ((feed, 0), (out, 1), (err, 2)):
        os.dup2(given, wanted)
        os.close(given)
    settings["report"], settings["files"] = report, files
    settings["parent"] = os.getppid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin, sys.stdout, sys.stderr = (open(i, mode, closefd=False) for i, mode in enumerate("rww"))  # noqa: SIM115
    sys.argv = [CHILD, json.dumps(settings)]
    import_module(CHILD).main()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    import tilewise.emulator as everything

    for found in pkgutil.walk_packages(everything.__path__, everything.__name__ + "."):
        import_module(found.name)
    for name in ("llvmlite.binding", "wasmtime"):  # which a program's process imports where it compiles
        if find_spec(name) is not None:
            import_module(name)
    requests = socket.socket(fileno=int(sys.argv[1]))
    requests.send(b".")  # ready
    _serve(requests)

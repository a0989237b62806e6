"""What a process in the sandbox may try, each attempt by a raw system call in a process of its own.

Run as a program: `confined_attempts.py CANARY_FOLDER USER`; it forks once an attempt, as that user, and prints a JSON
object with what came of each: "failed ERRNO", "killed SIGNAL", "allowed"."""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from tilewise.system import sandbox

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
# calls without a wrapper that raises, or that the wrapper would make differently
NUMBERS = {
    "openat": (257, 56), "openat2": (437, 437), "readlinkat": (267, 78), "newfstatat": (262, 79), "statx": (332, 291),
    "unlinkat": (263, 35), "mkdirat": (258, 34), "symlinkat": (266, 36), "linkat": (265, 37), "renameat2": (316, 276),
    "fchmodat": (268, 53), "truncate": (76, 45), "mknodat": (259, 33), "execve": (59, 221), "execveat": (322, 281),
    "clone": (56, 220), "clone3": (435, 435), "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203),
    "bind": (49, 200), "sendto": (44, 206), "io_uring_setup": (425, 425), "kill": (62, 129), "tgkill": (234, 131),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_open": (434, 434),
    "prlimit64": (302, 261), "ioctl": (16, 29), "mprotect": (10, 226), "mmap": (9, 222), "prctl": (157, 167),
    "seccomp": (317, 277), "unshare": (272, 97), "setuid": (105, 146), "fcntl": (72, 25), "recvmsg": (47, 212),
    "bpf": (321, 280), "userfaultfd": (323, 282), "keyctl": (250, 219), "chroot": (161, 51), "mount": (165, 40),
    "open_by_handle_at": (304, 265), "inotify_init1": (294, 26), "setsid": (112, 157), "getcwd": (79, 17),
}  # fmt: skip
HERE = -100  # AT_FDCWD
PAGES = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
KEPT: list[object] = []  # what addresses point to
PROT_ALL = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC


def call(name: str, *arguments: int | bytes | None) -> None:
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    ctypes.set_errno(0)
    if LIBC.syscall(ctypes.c_long(NUMBERS[name][0 if X86 else 1]), *given) < 0:
        raise OSError(ctypes.get_errno(), name)


def attempts(folder: Path, parent: int, terminal: int, connection: int) -> dict[str, Callable[[], None]]:
    secret, new = str(folder / "secret").encode(), str(folder / "new").encode()
    buffer = ctypes.create_string_buffer(64)
    page = ctypes.addressof(ctypes.c_char.from_buffer(PAGES))
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 80) + bytes([127, 0, 0, 1]) + bytes(8)
    vector = ctypes.addressof(held := (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8))
    KEPT.append(held)
    program = (ctypes.c_char_p * 2)(b"/bin/sh", None)
    return {
        # read
        "read by openat": lambda: call("openat", HERE, secret, os.O_RDONLY, 0),
        "read by openat2": lambda: call("openat2", HERE, secret, bytes(24), 24),
        "read by open": lambda: os.close(os.open(secret, os.O_RDONLY)),
        "list a folder": lambda: print(os.listdir(folder)),
        "read a link": lambda: call("readlinkat", HERE, b"/proc/self/exe", ctypes.addressof(buffer), 64),
        "stat a file": lambda: call("newfstatat", HERE, secret, ctypes.addressof(buffer), 0),
        "statx a file": lambda: call("statx", HERE, secret, 0, 0xFFF, page),
        "open by handle": lambda: call("open_by_handle_at", HERE, bytes(16), 0),
        "watch a folder": lambda: call("inotify_init1", 0),
        "read the parent": lambda: call("process_vm_readv", parent, vector, 1, vector, 1, 0),
        "where it is": lambda: call("getcwd", ctypes.addressof(buffer), 64),
        # write
        "write by openat": lambda: call("openat", HERE, secret, os.O_WRONLY | os.O_TRUNC, 0),
        "create": lambda: call("openat", HERE, new, os.O_WRONLY | os.O_CREAT, 0o600),
        "remove": lambda: call("unlinkat", HERE, secret, 0),
        "make a folder": lambda: call("mkdirat", HERE, new, 0o700),
        "make a link": lambda: call("symlinkat", secret, HERE, new),
        "make a hard link": lambda: call("linkat", HERE, secret, HERE, new, 0),
        "rename": lambda: call("renameat2", HERE, secret, HERE, new, 0),
        "change the mode": lambda: call("fchmodat", HERE, secret, 0o777),
        "truncate": lambda: call("truncate", secret, 0),
        "make a device": lambda: call("mknodat", HERE, new, 0o010600, 0),
        "write to the parent": lambda: call("process_vm_writev", parent, vector, 1, vector, 1, 0),
        # start
        "execve": lambda: call("execve", b"/bin/sh", ctypes.addressof(program), 0),
        "execveat": lambda: call("execveat", HERE, b"/bin/sh", ctypes.addressof(program), 0, 0),
        "fork": lambda: _forked(),
        "clone": lambda: call("clone", signal.SIGCHLD, 0, 0, 0, 0),
        "clone3": lambda: call("clone3", page, 64),
        "os.system": lambda: _refused(os.system(f"touch {folder}/new")),
        # connect
        "socket": lambda: call("socket", socket.AF_INET, socket.SOCK_STREAM, 0),
        "socket, unix": lambda: call("socket", socket.AF_UNIX, socket.SOCK_STREAM, 0),
        "socketpair": lambda: call("socketpair", socket.AF_UNIX, socket.SOCK_STREAM, 0, ctypes.addressof(buffer)),
        "connect": lambda: call("connect", connection, address, len(address)),
        "bind": lambda: call("bind", connection, address, len(address)),
        "sendto": lambda: call("sendto", connection, b"x", 1, 0, address, len(address)),
        "receive elsewhere": lambda: call("recvmsg", connection, page, 0),
        "io_uring": lambda: call("io_uring_setup", 8, page),
        # others, and itself
        "kill the parent": lambda: call("kill", parent, signal.SIGTERM),
        "tgkill the parent": lambda: call("tgkill", parent, parent, signal.SIGTERM),
        "ptrace": lambda: call("ptrace", 16, parent, 0, 0),
        "pidfd_open": lambda: call("pidfd_open", parent, 0),
        "limits of the parent": lambda: call("prlimit64", parent, 7, bytes(16), 0),
        "type into the terminal": lambda: call("ioctl", terminal, 0x5412, b"x"),
        "signals by fcntl": lambda: call("fcntl", terminal, 8, parent),
        "writable code by mprotect": lambda: call("mprotect", page, mmap.PAGESIZE, PROT_ALL),
        "writable code by mmap": lambda: call("mmap", 0, mmap.PAGESIZE, PROT_ALL, 0x22, -1, 0),
        "prctl": lambda: call("prctl", 38, 1, 0, 0, 0),
        "another filter": lambda: call("seccomp", 1, 0, bytes(16)),
        "a namespace": lambda: call("unshare", 0x10000000),
        "another user": lambda: call("setuid", 0),
        "bpf": lambda: call("bpf", 0, page, 64),
        "userfaultfd": lambda: call("userfaultfd", 0),
        "keys": lambda: call("keyctl", 0, -3, 1),
        "chroot": lambda: call("chroot", b"/"),
        "mount": lambda: call("mount", b"none", b"/mnt", b"tmpfs", 0, 0),
        "a process group of its own": lambda: call("setsid"),
        # what it may
        "compute": lambda: _refused(sum(range(1000)) - 499500),
        "more memory": lambda: mmap.mmap(-1, 1 << 24).close(),
        "code that is not writable": lambda: call("mprotect", page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC),
        "what it has open": lambda: print("", end="", flush=True),
    }  # fmt: skip


def _refused(status: int) -> None:
    if status != 0:
        raise OSError(errno.EPERM, "status")


def _forked() -> None:
    if os.fork() == 0:
        os._exit(0)


def outcome(action: Callable[[], None], user: int) -> str:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if user:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            sandbox.enter()
            try:
                action()
                answer = "allowed"
            except OSError as error:
                answer = f"failed {errno.errorcode.get(error.errno or 0, error.errno)}"
            os.write(writer, answer.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return f"killed {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else text


def main() -> None:
    folder, user = Path(sys.argv[1]), int(sys.argv[2])
    terminal, _ = os.openpty()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        made = attempts(folder, os.getpid(), terminal, connection.fileno())
        print(json.dumps({name: outcome(action, user) for name, action in made.items()}))


if __name__ == "__main__":
    main()

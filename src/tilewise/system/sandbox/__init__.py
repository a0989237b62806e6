"""What a process may do from a moment on: compute, and use the descriptors it has. Linux; `missing()` says why not.

`enter()` is called by the thread that will run a stranger's program, before its first instruction. Modules are
imported and files opened before that: behind it there is no path to open, only descriptors."""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

from tilewise.system.sandbox import landlock, seccomp
from tilewise.system.sandbox.syscalls import ARCHITECTURES

CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
NEW_NETWORK = 0x40000000  # CLONE_NEWNET


def missing() -> str:
    """Why this system has no sandbox for a program; empty where it has one."""
    if sys.platform != "linux":
        return f"{platform.system() or sys.platform} has no seccomp"
    if platform.machine() not in ARCHITECTURES or sys.maxsize < 1 << 32:
        return f"there is no system-call table for {platform.machine()}"
    if seccomp.available(ARCHITECTURES[platform.machine()]):
        return ""
    return "this kernel has no seccomp filters (Linux 4.14 or newer, with CONFIG_SECCOMP_FILTER)"


def enter(broker: int = -1) -> str:
    """Confine every thread of this process for ever, and say by what. OSError where the system refuses.

    `broker`: the socket on which descriptors of files may be received."""
    libc = ctypes.CDLL(None, use_errno=True)
    held = ["seccomp"]
    if libc.prctl(seccomp.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    if libc.unshare(NEW_NETWORK) == 0:  # as root: even a socket would reach no one
        held.append("network namespace")
    if landlock.restrict():
        held.append("landlock")
    header, none = struct.pack("=Ii", CAPABILITIES, 0), bytes(24)
    if libc.capset(header, none) == 0:
        held.append("no capabilities")
    seccomp.install(ARCHITECTURES[platform.machine()], broker)
    return ", ".join(held)

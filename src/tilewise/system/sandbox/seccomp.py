"""The policy of `syscalls` as a BPF program, and its installation for every thread of this process.

One straight list: architecture, x32, then one comparison a call. It is data, so tests evaluate it for both
architectures on either."""

from __future__ import annotations

import ctypes
import errno
import struct
from dataclasses import dataclass

from tilewise.system.sandbox.syscalls import ALLOWED, KILLED, PROTECTING, RECEIVING, Architecture

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06  # of BPF
KILL, FAIL, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
NUMBER, AUDIT, ARGUMENTS = 0, 4, 16  # where struct seccomp_data has them
X32 = 0x40000000
WRITE_AND_EXECUTE = 2 | 4
PR_SET_NO_NEW_PRIVS = 38
SET_FILTER, ACTION_AVAILABLE, SYNCHRONISE_THREADS = 1, 2, 1  # of seccomp(2)
SECCOMP = {0xC000003E: 317, 0xC00000B7: 277}


@dataclass(frozen=True)
class Instruction:
    code: int
    value: int
    if_true: int = 0  # instructions to skip
    if_false: int = 0

    def packed(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.value)


def program(architecture: Architecture, broker: int) -> list[Instruction]:
    """The filter; `broker` is the descriptor that messages may be received on, −1 for none."""
    numbers = architecture.numbers
    fail = Instruction(RETURN, FAIL | errno.EPERM)
    out = [
        Instruction(LOAD, AUDIT),
        Instruction(JUMP_EQUAL, architecture.audit, if_true=1),
        Instruction(RETURN, KILL),
        Instruction(LOAD, NUMBER),
    ]
    if architecture.x32:
        out += [Instruction(JUMP_AT_LEAST, X32, if_false=1), Instruction(RETURN, KILL)]
    for names, result in ((ALLOWED, ALLOW), (KILLED, KILL)):
        for number in sorted(numbers[name] for name in names if name in numbers):
            out += [Instruction(JUMP_EQUAL, number, if_false=1), Instruction(RETURN, result)]
    for name in sorted(PROTECTING):
        out += [
            Instruction(JUMP_EQUAL, numbers[name], if_false=5),
            Instruction(LOAD, ARGUMENTS + 8 * 2),
            Instruction(AND, WRITE_AND_EXECUTE),
            Instruction(JUMP_EQUAL, WRITE_AND_EXECUTE, if_true=1),
            Instruction(RETURN, ALLOW),
            fail,
        ]
    for name in sorted(RECEIVING):
        out += [
            Instruction(JUMP_EQUAL, numbers[name], if_false=4),
            Instruction(LOAD, ARGUMENTS),
            Instruction(JUMP_EQUAL, broker & 0xFFFFFFFF, if_false=1),
            Instruction(RETURN, ALLOW),
            fail,
        ]
    return [*out, fail]


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def available(architecture: Architecture) -> bool:
    """Whether the kernel has filters that can end a process; nothing is changed."""
    libc, action = ctypes.CDLL(None, use_errno=True), ctypes.c_uint32(KILL)
    number = SECCOMP[architecture.audit]
    return int(libc.syscall(number, ACTION_AVAILABLE, 0, ctypes.byref(action))) == 0


def install(architecture: Architecture, broker: int) -> None:
    """Install the policy irrevocably for every thread of this process; OSError where the system refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    made = program(architecture, broker)
    data = ctypes.create_string_buffer(b"".join(one.packed() for one in made))
    given = _Filter(len(made), ctypes.addressof(data))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no_new_privs")
    number = SECCOMP[architecture.audit]
    result = libc.syscall(number, SET_FILTER, SYNCHRONISE_THREADS, ctypes.byref(given))
    if result != 0:  # a positive one is a thread that could not be synchronised
        raise OSError(ctypes.get_errno() if result < 0 else errno.EBUSY, "seccomp")

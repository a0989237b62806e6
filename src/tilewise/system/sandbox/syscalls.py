"""Which system calls a sandboxed process may make: the policy by name, and the numbers of each architecture.

The process computes on memory it has, reads and writes descriptors it was given, and ends. Everything that names a
path, a process, an address on a network or a new program is left out; files come as descriptors from the parent."""

from __future__ import annotations

from dataclasses import dataclass

ALLOWED = frozenset({
    # descriptors that are open already
    "read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "close", "fstat", "ftruncate",
    "poll", "ppoll", "select", "pselect6", "memfd_create",
    # memory; mmap and mprotect are checked for writable and executable
    "munmap", "mremap", "brk", "madvise",
    # threads that exist already, signals of its own, clocks
    "futex", "sched_yield", "sched_getaffinity", "gettid", "getpid", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
    "sigaltstack", "restart_syscall", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday",
    "time", "getrusage", "times", "getrandom", "exit", "exit_group",
})  # fmt: skip
PROTECTING = frozenset({"mmap", "mprotect"})  # allowed unless the third argument has PROT_WRITE and PROT_EXEC
RECEIVING = frozenset({"recvmsg"})  # allowed on the file broker's socket alone
# Calls that no library makes in passing: a process that makes one runs an attacker's code and is killed. Others fail.
KILLED = frozenset({
    "execve", "execveat", "fork", "vfork", "clone", "clone3", "socket", "socketpair", "connect", "bind", "listen",
    "accept", "accept4", "sendto", "sendmsg", "sendmmsg", "ptrace", "process_vm_readv", "process_vm_writev", "kill",
    "tkill",
    "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "unshare", "setns",
    "mount", "umount2", "pivot_root", "chroot", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup",
    "io_uring_enter", "io_uring_register", "open_by_handle_at", "init_module", "finit_module", "kexec_load",
    "add_key", "request_key", "keyctl", "setuid", "setgid", "setreuid", "setresuid", "capset", "seccomp",
})  # fmt: skip


@dataclass(frozen=True)
class Architecture:
    """An architecture of Linux: its number in seccomp_data, and the numbers of its system calls."""

    audit: int
    numbers: dict[str, int]
    x32: bool = False  # a second table of calls, with bit 30 set, that a filter must refuse


X86_64 = Architecture(0xC000003E, {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11,
    "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "pwrite64": 18,
    "readv": 19, "writev": 20, "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35,
    "getpid": 39, "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "sendmsg": 46, "recvmsg": 47, "bind": 49,
    "listen": 50, "socketpair": 53, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "exit": 60, "kill": 62,
    "ftruncate": 77, "gettimeofday": 96, "getrusage": 98, "times": 100, "ptrace": 101, "setuid": 105, "setgid": 106,
    "setreuid": 113, "setresuid": 117, "capset": 126, "rt_sigqueueinfo": 129, "sigaltstack": 131, "pivot_root": 155,
    "chroot": 161, "mount": 165, "umount2": 166, "init_module": 175, "gettid": 186, "tkill": 200, "time": 201,
    "futex": 202, "sched_getaffinity": 204, "restart_syscall": 219, "clock_gettime": 228, "clock_getres": 229,
    "clock_nanosleep": 230, "exit_group": 231, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
    "pselect6": 270, "ppoll": 271, "unshare": 272, "accept4": 288, "rt_tgsigqueueinfo": 297, "perf_event_open": 298,
    "open_by_handle_at": 304, "sendmmsg": 307, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "finit_module": 313, "seccomp": 317, "getrandom": 318, "memfd_create": 319, "bpf": 321, "execveat": 322,
    "userfaultfd": 323, "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438,
}, x32=True)  # fmt: skip
AARCH64 = Architecture(0xC00000B7, {
    "umount2": 39, "mount": 40, "pivot_root": 41, "ftruncate": 46, "chroot": 51, "close": 57, "lseek": 62, "read": 63,
    "write": 64, "readv": 65, "writev": 66, "pread64": 67, "pwrite64": 68, "pselect6": 72, "ppoll": 73, "fstat": 80,
    "capset": 91, "exit": 93, "exit_group": 94, "unshare": 97, "futex": 98, "nanosleep": 101, "kexec_load": 104,
    "init_module": 105, "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115, "ptrace": 117,
    "sched_getaffinity": 123, "sched_yield": 124, "restart_syscall": 128, "kill": 129, "tkill": 130,
    "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigqueueinfo": 138, "rt_sigreturn": 139,
    "setgid": 144, "setreuid": 145, "setuid": 146, "setresuid": 147, "times": 153, "getrusage": 165,
    "gettimeofday": 169, "getpid": 172, "gettid": 178, "socket": 198, "socketpair": 199, "bind": 200, "listen": 201,
    "accept": 202, "connect": 203, "sendto": 206, "sendmsg": 211, "recvmsg": 212, "brk": 214, "munmap": 215,
    "mremap": 216, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "execve": 221, "mmap": 222,
    "mprotect": 226, "madvise": 233, "rt_tgsigqueueinfo": 240, "perf_event_open": 241, "accept4": 242,
    "open_by_handle_at": 265, "setns": 268, "sendmmsg": 269, "process_vm_readv": 270, "process_vm_writev": 271,
    "finit_module": 273, "seccomp": 277, "getrandom": 278, "memfd_create": 279, "bpf": 280, "execveat": 281,
    "userfaultfd": 282, "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "pidfd_open": 434, "clone3": 435,
    "pidfd_getfd": 438,
})  # fmt: skip
ARCHITECTURES = {"x86_64": X86_64, "aarch64": AARCH64}  # by platform.machine()

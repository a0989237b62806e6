"""The words of the pool: what the thread that calls and the workers tell each other."""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.ir import Function

OPEN = 1 << 31
# words of the pool: generation, open bit and how many are inside share the first, so one exchange joins a job
STATE, NEXT, TASK, JOB, COUNT, LIMIT = 0, 8, 16, 17, 18, 19
SPIN, QUIT, IDENTITY, SIZE, BUSY, THREADS = 24, 25, 26, 27, 28, 32  # SPIN: rounds of `pause` before a worker parks
SHARES, LEFT = THREADS + 1024, 20  # the next task of each worker's share, a line each; and how many are left of all
SHARED = 64  # workers up to which tasks have shares
BEDS = SHARES + 8 * SHARED  # where each worker parks: whether it does, a lock, a condition
# words of each, and where they are: its mark, lock and condition; the core it parked on, its thread, whether it was
# sent elsewhere, and the cores it may use
BED, LOCK, CONDITION, CORE, SELF, SENT, MASK = 48, 1, 9, 16, 17, 18, 24
MASK_WORDS = 16  # 1024 cores
HOME, BEFORE = 29, 30  # the core of the thread that calls, plus 1, and the one it was on before that
ANY_ORDER = 1 << 32  # beside a job's limit: tasks never wait for each other


def words_of(workers: int) -> int:
    """Words of a pool with so many workers."""
    return BEDS + BED * workers


def word(f: Function, number: int) -> str:
    return f.at("i64", "%pool", number)


def load(f: Function, number: int) -> str:
    return f.op(f"load atomic i64, ptr {word(f, number)} seq_cst, align 8")


def store(f: Function, number: int, value: str | int) -> None:
    f.do(f"store atomic i64 {value}, ptr {word(f, number)} seq_cst, align 8")

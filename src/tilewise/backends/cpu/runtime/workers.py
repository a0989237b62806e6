"""The pool's machine code: native workers, because waking a Python thread takes longer than a small product.

Workers spin briefly after each job and then park (`parking`). A job is open while there are tasks left; a worker that
wakes late finds it closed and does not join. Tasks that may run in any order are distributed in the same way each time:
a worker begins with its own share, whose part of P its caches may still hold from the last such product, then takes
tasks of other shares. The calling thread takes part. A second caller meanwhile (another Python thread, a nested call)
runs its tasks serially: which thread runs a task never changes a bit of the result.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.job import JOB_FIELDS, STACK_BYTES
from tilewise.backends.cpu.runtime import pool_layout as pool
from tilewise.backends.cpu.runtime.parking import parking, parking_slot
from tilewise.backends.cpu.runtime.placing import record_caller_core, settle
from tilewise.backends.cpu.runtime.systems import System, system_of
from tilewise.backends.cpu.runtime.target import Target, is_arm
from tilewise.system.llvm_text import IRFunction, module


def pool_module(target: Target, system: System | None = None) -> str:
    system = system or system_of()
    take = [_deal(), _take_shares(), _take()]
    functions = [
        pause_function(target),
        *parking(system),
        *take,
        _work(system),
        _submit(system),
        _start(system),
        _stop(system),
    ]
    return module([*functions, _serial(), _run(), _launch(), *map(_launch_arrays, (False, True))])


def pause_function(target: Target) -> IRFunction:
    """A pause between two polls of a field."""
    f = IRFunction("pause", "")
    if _arm(target):
        f.call("void", "llvm.aarch64.isb", [("i32", 15)])  # `yield` takes less than a nanosecond, this ten
    else:
        f.call("void", "llvm.x86.sse2.pause", [])
    return f


def _arm(target: Target) -> bool:
    return target.triple.startswith(("aarch64", "arm64")) if target.triple else is_arm()


def _deal() -> IRFunction:
    """Set every worker's share of the tasks to its first task."""
    f = IRFunction("deal", "ptr pool, i64 count, i64 limit")
    with f.loop(0, "%limit") as w:
        place = f.at("i64", pool.field(f, pool.SHARES), f.mul(w.index, 8))
        f.do(f"store atomic i64 {_first_of(f, w.index)}, ptr {place} monotonic, align 8")
    pool.store(f, pool.LEFT, "%count")
    return f


def _first_of(f: IRFunction, worker: str) -> str:
    return f.div(f.mul(worker, "%count"), "%limit")


def _take_shares() -> IRFunction:
    """Take tasks of this worker's share, then of the others', until none is left."""
    f = IRFunction("take_shares", "ptr pool, ptr task, ptr job, i64 count, i64 limit, i64 worker")
    done = f.label("done")
    with f.loop(0, "%limit") as other:
        some = f.label("some")
        f.branch(f.test("sgt", pool.load(f, pool.LEFT), 0), some, done)
        whose = f.rem(f.add("%worker", other.index), "%limit")
        place, end = f.at("i64", pool.field(f, pool.SHARES), f.mul(whose, 8)), _first_of(f, f.add(whose, 1))
        again, look, run, over = (f.label(x) for x in ("again", "look", "run", "over"))
        f.goto(again)
        f.start(again)
        now = f.op(f"load atomic i64, ptr {place} monotonic, align 8")
        f.branch(f.test("slt", now, end), look, over)
        own = f.op(f"atomicrmw add ptr {place}, i64 1 seq_cst")
        f.branch(f.test("slt", own, end), run, over)
        f.op(f"atomicrmw sub ptr {pool.field(f, pool.LEFT)}, i64 1 seq_cst")
        f.do(f"call void %task(ptr %job, i64 {own}, i64 %worker)")
        f.goto(again)
        f.start(over)
    f.goto(done)
    f.start(done)
    return f


def _take() -> IRFunction:
    """Take tasks until none is left."""
    f = IRFunction("take", "ptr pool, i64 worker")
    task, job, count = (f.load("i64", pool.field(f, n), 8) for n in (pool.TASK, pool.JOB, pool.COUNT))
    function, argument = f.op(f"inttoptr i64 {task} to ptr"), f.op(f"inttoptr i64 {job} to ptr")
    again, run, done, shares, order = (f.label(x) for x in ("again", "run", "done", "shares", "order"))
    limit = pool.load(f, pool.LIMIT)
    f.branch(f.test("sge", limit, pool.ANY_ORDER), shares, order)
    f.do(
        f"call void @take_shares(ptr %pool, ptr {function}, ptr {argument}, i64 {count}, "
        f"i64 {f.op(f'and i64 {limit}, {pool.ANY_ORDER - 1}')}, i64 %worker)"
    )
    f.goto(done)
    f.start(order)
    f.goto(again)
    f.start(again)
    own = f.op(f"atomicrmw add ptr {pool.field(f, pool.NEXT)}, i64 1 seq_cst")
    f.branch(f.test("slt", own, count), run, done)
    f.do(f"call void {function}(ptr {argument}, i64 {own}, i64 %worker)")
    f.goto(again)
    f.start(done)
    return f


def _work(system: System) -> IRFunction:
    """A worker's loop: wait for a new job, join it if it is still open, take tasks, leave it."""
    f = IRFunction("work", "ptr pool", public=True, result="ptr")
    worker = f.add(f.op(f"atomicrmw add ptr {pool.field(f, pool.IDENTITY)}, i64 1 seq_cst"), 1)
    rounds, seen, left, helped = f.load("i64", pool.field(f, pool.SPIN), 8), *(f.op("alloca i64") for _ in "123")
    wait, idle, park, look, over, unwanted, join, enter, leave = (
        f.label(x) for x in ("wait", "idle", "park", "look", "over", "unwanted", "join", "enter", "leave")
    )
    f.store("i64", 0, seen)
    f.store("i64", 0, helped)
    settle(f, system.cores_of_threads, parking_slot(f, worker)[0])
    f.goto(wait)
    f.start(wait)
    f.store("i64", rounds, left)
    f.goto(idle)
    f.start(idle)
    last, took_part = f.load("i64", seen), f.test("ne", f.load("i64", helped), 0)
    spun = f.op(f"call i64 @spin(ptr %pool, i64 {last}, i64 {f.load('i64', left)}, i1 {took_part})")
    f.store("i64", spun, left)
    f.branch(f.test("ne", spun, 0), look, park, then=park)
    f.do(f"call void @park(ptr %pool, i64 {worker}, i64 {last})")
    f.store("i64", rounds, left)
    f.goto(look)
    f.start(look)
    quits = f.test("ne", pool.load(f, pool.QUIT), 0)
    state = pool.load(f, pool.STATE)
    f.store("i64", f.op(f"lshr i64 {state}, 32"), seen)
    f.store("i64", 0, helped)
    f.branch(quits, leave, over, then=over)
    is_open = f.test("ne", f.op(f"and i64 {state}, {pool.OPEN}"), 0)
    limit = pool.load(f, pool.LIMIT)
    wanted = f.test("slt", worker, f.op(f"and i64 {limit}, {pool.ANY_ORDER - 1}"))
    f.branch(f.both(is_open, wanted), join, unwanted, then=unwanted)
    f.branch(wanted, wait, idle, then=join)
    pair = f.op(f"cmpxchg ptr {pool.field(f, pool.STATE)}, i64 {state}, i64 {f.add(state, 1)} seq_cst seq_cst")
    f.branch(f.op(f"extractvalue {{i64, i1}} {pair}, 1"), enter, look)
    count = f.load("i64", pool.field(f, pool.COUNT), 8)
    f.do(f"call void @wake_next(ptr %pool, i64 {worker}, i64 {count}, i64 {limit})")
    f.do(f"call void @take(ptr %pool, i64 {worker})")
    f.op(f"atomicrmw sub ptr {pool.field(f, pool.STATE)}, i64 1 seq_cst")
    f.store("i64", 1, helped)
    f.goto(wait)
    f.start(leave)
    f.do("ret ptr null")
    return f


def _next_generation(f: IRFunction, open_bit: int) -> None:
    generation = f.op(f"and i64 {pool.load(f, pool.STATE)}, {-(1 << 32)}")
    pool.store(f, pool.STATE, f.op(f"or i64 {f.op(f'add i64 {generation}, {1 << 32}')}, {open_bit}"))


def _submit(system: System) -> IRFunction:
    """Open a job, take part, close it, and wait for the workers inside."""
    f = IRFunction("submit", "ptr pool, ptr task, ptr job, i64 count, i64 limit")
    record_caller_core(f, system.cores_of_threads)
    for number, value in ((pool.TASK, "%task"), (pool.JOB, "%job")):
        f.store("i64", f.op(f"ptrtoint ptr {value} to i64"), pool.field(f, number), 8)
    f.store("i64", "%count", pool.field(f, pool.COUNT), 8)
    pool.store(f, pool.LIMIT, "%limit")
    pool.store(f, pool.NEXT, 0)
    with f.when(f.test("sge", "%limit", pool.ANY_ORDER)):
        f.do(f"call void @deal(ptr %pool, i64 %count, i64 {f.op(f'and i64 %limit, {pool.ANY_ORDER - 1}')})")
    _next_generation(f, pool.OPEN)
    f.do("call void @wake_next(ptr %pool, i64 0, i64 %count, i64 %limit)")
    f.do("call void @take(ptr %pool, i64 0)")
    f.op(f"atomicrmw and ptr {pool.field(f, pool.STATE)}, i64 {~pool.OPEN} seq_cst")
    again, more, done = f.label("again"), f.label("more"), f.label("done")
    f.goto(again)
    f.start(again)
    with f.loop(0, f.add(pool.load(f, pool.SPIN), 1)):
        inside = f.op(f"and i64 {pool.load(f, pool.STATE)}, {pool.OPEN - 1}")
        on = f.label("on")
        f.branch(f.test("eq", inside, 0), done, on, then=on)
        f.do("call void @pause()")
    f.goto(more)
    f.start(more)
    system.yield_core(f)  # the other thread may need this core
    f.goto(again)
    f.start(done)
    return f


def _serial() -> IRFunction:
    """Every task, one after the other, in the calling thread."""
    f = IRFunction("serial", "ptr task, ptr job, i64 count")
    with f.loop(0, "%count") as i:
        f.do(f"call void %task(ptr %job, i64 {i.index}, i64 0)")
    return f


def _run() -> IRFunction:
    """`count` tasks by up to `limit` threads, if there is a pool that no other thread uses; else by this one alone."""
    params = "ptr pool, ptr task, ptr job, i64 count, i64 limit"
    f = IRFunction("run", params, public=True)
    claim, ours, alone, done = (f.label(x) for x in ("claim", "ours", "alone", "done"))
    threads = f.op(f"and i64 %limit, {pool.ANY_ORDER - 1}")
    several = f.both(f.test("sgt", threads, 1), f.test("sgt", "%count", 1))
    pooled = f.both(several, f.op("icmp ne ptr %pool, null"))
    f.branch(pooled, claim, alone)
    pair = f.op(f"cmpxchg ptr {pool.field(f, pool.BUSY)}, i64 0, i64 1 seq_cst seq_cst")
    f.branch(f.op(f"extractvalue {{i64, i1}} {pair}, 1"), ours, alone)
    f.do("call void @submit(ptr %pool, ptr %task, ptr %job, i64 %count, i64 %limit)")
    pool.store(f, pool.BUSY, 0)
    f.goto(done)
    f.start(alone)
    f.do("call void @serial(ptr %task, ptr %job, i64 %count)")
    f.goto(done)
    f.start(done)
    return f


PLACES = (("M", "M"), ("N", "N"), ("P", "P"), ("arg", "arg"), ("workspace", "space"))
LAUNCH = "ptr pool, ptr template, ptr M, ptr N, ptr P, ptr arg, ptr space"


def _launch() -> IRFunction:
    """Called from Python: copy the job template, store the addresses in it, run its tasks, add split-K sums."""
    f = IRFunction("launch", LAUNCH, public=True)

    def place(base: str, name: str) -> str:
        return f.at("i64", base, JOB_FIELDS.index(name))

    def template(name: str) -> str:
        return f.load("i64", place("%template", name), 8)

    size = template("fields")
    job = f.op(f"alloca i64, i64 {size}, align 64")
    with f.loop(0, size) as i:
        value = f.load("i64", f.at("i64", "%template", i.index), 8)
        f.store("i64", value, f.at("i64", job, i.index), 8)
    for name, value in PLACES:
        f.store("ptr", f"%{value}", place(job, name), 8)
    few = f.op(f"alloca i8, i64 {STACK_BYTES}, align 64")
    behind = f.at("i8", "%space", template("sums_at"))
    sums = f.select(f.test("slt", template("sums_at"), 0), "ptr", few, behind)
    f.store("ptr", sums, place(job, "sums"), 8)
    task = f.op(f"inttoptr i64 {template('task')} to ptr")
    workers = template("workers")
    waits = f.test("ne", template("strip"), 0)  # tasks wait for tasks with lower numbers
    ordered = f.op(f"or i1 {waits}, {f.test('sgt', workers, pool.SHARED)}")
    limit = f.select(ordered, "i64", workers, f.op(f"or i64 {workers}, {pool.ANY_ORDER}"))
    f.do(f"call void @run(ptr %pool, ptr {task}, ptr {job}, i64 {template('tasks')}, i64 {limit})")
    reduce = f.op(f"inttoptr i64 {template('reduce')} to ptr")
    f.do(f"call void @serial(ptr {reduce}, ptr {job}, i64 {template('reductions')})")
    mirror = f.op(f"inttoptr i64 {template('mirror')} to ptr")
    f.do(f"call void @run(ptr %pool, ptr {mirror}, ptr {job}, i64 {template('mirrors')}, i64 {limit})")
    return f


def _launch_arrays(with_arg: bool) -> IRFunction:
    """The same for NumPy's array objects, whose first field after the header is their elements' address; `with_arg`:
    the array for the winning k is such an object too, else an address."""
    f = IRFunction("launch_arrays_and_arg" if with_arg else "launch_arrays", LAUNCH, public=True)
    objects = ("M", "N", "P", "arg") if with_arg else ("M", "N", "P")
    places = dict(zip(objects, f.data_of(*objects), strict=True))
    given = ", ".join(f"ptr {places.get(x, f'%{x}')}" for x in ("pool", "template", *(x for _, x in PLACES)))
    f.do(f"call void @launch({given})")
    return f


def _start(system: System) -> IRFunction:
    """Start up to `count` workers; returns how many the system started."""
    f = IRFunction("start", "ptr pool, i64 count", public=True, result="i64")
    with f.loop(1, f.add("%count", 1)) as worker:
        system.prepare(f, *parking_slot(f, worker.index)[1:])
    pool.store(f, pool.SIZE, "%count")
    with f.loop(0, "%count", 1, [("i64", "0")]) as i:
        place = f.at("i64", pool.field(f, pool.THREADS), i.values[0])
        made = system.start(f, place, "@work", "%pool")
        i.next = [f.add(i.values[0], f.op(f"zext i1 {made} to i64"))]
    f.do(f"ret i64 {i.values[0]}")
    return f


def _stop(system: System) -> IRFunction:
    """End the workers once the pool is idle; it stays busy, so that no caller uses it afterwards."""
    f = IRFunction("stop", "ptr pool, i64 count", public=True)
    again, wait, ours = (f.label(x) for x in ("again", "wait", "ours"))
    f.goto(again)
    f.start(again)
    pair = f.op(f"cmpxchg ptr {pool.field(f, pool.BUSY)}, i64 0, i64 1 seq_cst seq_cst")
    f.branch(f.op(f"extractvalue {{i64, i1}} {pair}, 1"), ours, wait, then=wait)
    system.yield_core(f)
    f.goto(again)
    f.start(ours)
    pool.store(f, pool.QUIT, 1)
    _next_generation(f, 0)
    with f.loop(1, f.add("%count", 1)) as worker:
        f.do(f"call void @wake(ptr %pool, i64 {worker.index})")
    with f.loop(0, "%count") as i:
        thread = f.load("i64", f.at("i64", pool.field(f, pool.THREADS), i.index))
        system.join(f, thread)
    return f

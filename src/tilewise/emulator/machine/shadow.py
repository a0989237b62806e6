"""Shadow memory: the last writer and reader of each cell, from which races are decided for every schedule.

Blocks are unordered: two accesses of a cell by two blocks, one of them a write, are a race. Within a block barriers
order them. Reads of shared memory are queued and only examined if a write follows before the next barrier, so that
kernels with correct barriers cost almost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.memory import Buffer
from tilewise.emulator.source.source import Span

ATOMIC = -1  # writer code: atomics of several blocks
BLOCK = 1 << 40  # -(BLOCK + block) - 1: atomics of several threads of a block; -party - 1: of one thread
MAX_PENDING = 4096
WARP = 32


def _lanes(c: Context, flat: Any, mask: Any, ok: Any) -> tuple[np.ndarray, np.ndarray]:
    """The active lanes and the cell of each."""
    take = mask if ok is None else ok if mask is None else mask & ok
    lanes = c.lane_numbers if take is None else np.flatnonzero(take)
    if not isinstance(flat, np.ndarray):
        return lanes, np.full(len(lanes), int(flat))
    return lanes, flat if take is None else flat[lanes]


class Shadow:
    def __init__(self, buffer: Buffer, shared: bool) -> None:
        cells = len(buffer.data) if shared else buffer.size
        self.buffer, self.shared, self.grid_epoch = buffer, shared, 0
        self.writer = np.zeros(cells, np.int64)  # 0: none; < 0: atomics; else the party, 1 + block * threads + thread
        self.write_epoch, self.write_site = np.zeros(cells, np.int32), np.zeros(cells, np.int32)
        self.changed_by_cas: Any = None  # cells last changed by atomicCAS, which re-reads: no race with reads
        self.reader: Any = None  # as `writer`; allocated at the first read
        self.read_epoch: Any = None
        self.read_site: Any = None
        self.other_site: Any = None  # of the last read by another thread than the last reader
        self.many_threads: Any = None  # cells read by more than one thread of a block
        self.many_blocks: Any = None  # and by more than one block
        self.pending: list[tuple[Any, Any, Any, int]] = []  # cells, mask, ok, site
        self.stale: Any = None  # cells that keep an earlier phase's value: the store that set them left them out since
        self.partial: set[int] = set()  # stores since the last barrier that not all lanes executed
        self.written = False  # ever; of shared memory, since the last barrier
        self.last_write: Span | None = None
        self.sites: list[Span] = []
        self.number: dict[int, int] = {}
        self.warp_synced = False

    def _site(self, span: Span) -> int:
        key = id(span)
        known = self.number.get(key)
        if known is None:
            known = self.number[key] = len(self.sites)
            self.sites.append(span)
        return known

    @staticmethod
    def _party(c: Context, lanes: np.ndarray) -> np.ndarray:
        party: np.ndarray = c.block[lanes].astype(np.int64) * c.geometry.threads + c.thread[lanes] + 1
        return party

    def _after_grid_barrier(self, c: Context) -> None:
        """A barrier of the whole grid orders what was before it: forget that."""
        if self.grid_epoch != c.grid_epoch:
            self.grid_epoch = c.grid_epoch
            self.writer[:] = 0
            self.reader, self.changed_by_cas = None, None
            self.pending.clear()

    # -- reads

    def read(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span) -> None:
        self._after_grid_barrier(c)
        site = self._site(span)
        if self.shared and not self.written:
            if len(self.pending) < MAX_PENDING:
                self.pending.append((flat, mask, ok, site))
                return
            self._settle(c)
        lanes, cells = _lanes(c, flat, mask, ok)
        party = self._party(c, lanes)
        harmless = None if self.changed_by_cas is None else self.changed_by_cas[cells]
        self._against_writer(c, lanes, cells, party, span, "RAW", harmless)
        self._note_read(c, lanes, cells, party, site)

    def _settle(self, c: Context) -> None:
        pending, self.pending = self.pending, []
        for flat, mask, ok, site in pending:
            lanes, cells = _lanes(c, flat, mask, ok)
            self._note_read(c, lanes, cells, self._party(c, lanes), site)

    def _note_read(self, c: Context, lanes: np.ndarray, cells: np.ndarray, party: np.ndarray, site: int) -> None:
        if self.reader is None:
            n = len(self.writer)
            self.reader = np.zeros(n, np.int64)
            self.read_epoch, self.read_site, self.other_site = (np.zeros(n, np.int32) for _ in range(3))
            self.many_threads, self.many_blocks = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        epoch, before = c.epochs[c.slot[lanes]], self.reader[cells]
        fresh = before == 0
        passed = ~fresh & (self.read_epoch[cells] != epoch)  # read before the last barrier
        self.many_threads[cells[passed]] = False
        others = cells[~fresh & ~passed & (before != party)]
        self.many_threads[others] = True
        self.other_site[others] = self.read_site[others]
        self.reader[cells] = party
        self.read_epoch[cells] = epoch
        self.read_site[cells] = site
        after = self.reader[cells]
        self.many_threads[cells[after != party]] = True
        self.other_site[cells[after != party]] = site
        if not self.shared:
            mine = self._block_of(party, c.geometry.threads)
            other = [self._block_of(reader, c.geometry.threads) != mine for reader in (before, after)]
            self.many_blocks[cells[(~fresh & other[0]) | other[1]]] = True

    # -- writes

    def write(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span, value: Any, previous: Any = None) -> None:
        """`previous`: the cells' old values; storing an equal value again (`*changed = 1`) is no race."""
        self._after_grid_barrier(c)
        lanes, cells = _lanes(c, flat, mask, ok)
        party = self._party(c, lanes)
        self._settle(c)
        self._against_readers(c, lanes, cells, party, span)
        if self.written:
            harmless = None
            if previous is not None:
                harmless = np.broadcast_to(np.asarray(previous == value), (c.n,))[lanes] & (self.writer[cells] > 0)
            self._against_writer(c, lanes, cells, party, span, "WAW", harmless)
        self._note_write(c, lanes, cells, party, span)
        if self.changed_by_cas is not None:
            self.changed_by_cas[cells] = False
        writer = self.writer[cells]
        clash = writer != party  # two threads, one cell, one statement: a race only if the values differ
        if clash.any() and isinstance(value, np.ndarray):
            mine, winner = value[lanes], self.buffer.data[cells]
            clash &= mine != winner
            if self.shared:
                clash &= (mine == mine) | (winner == winner)  # not both NaN
            same = self._same_block(c, writer, party)
            self._report_races(
                c, lanes, cells, party, writer, clash, same, self.write_epoch, span, "WAW", self.write_site[cells]
            )

    def _note_write(self, c: Context, lanes: Any, cells: Any, writer: Any, span: Span) -> None:
        self.writer[cells] = writer
        self.write_epoch[cells] = c.epochs[c.slot[lanes]]
        self.write_site[cells] = self._site(span)
        self.written, self.last_write = True, span
        if self.shared and len(lanes) < c.n:
            self.partial.add(self._site(span))
        if self.stale is not None:
            self.stale[cells] = False

    def atomic(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span, compared: bool) -> None:
        """Atomics race with plain accesses of other threads; `compared`: atomicCAS, which does not with reads."""
        self._after_grid_barrier(c)
        lanes, cells = _lanes(c, flat, mask, ok)
        party = self._party(c, lanes)
        before = self.writer[cells]
        self._against_writer(c, lanes, cells, party, span, "WAW", before < 0)
        if not compared:
            self._against_readers(c, lanes, cells, party, span)
        block, single = (party - 1) // c.geometry.threads, -party - 1
        alone = (before == 0) | (before == party) | (before == single)
        joined = np.where(self._block_of(before, c.geometry.threads) == block, -(BLOCK + block) - 1, ATOMIC)
        new = np.where(alone, single, joined)
        self._note_write(c, lanes, cells, new, span)
        last = self.writer[cells]
        clash = last != new  # several threads, one cell, one statement
        if clash.any():
            other = clash & (self._block_of(last, c.geometry.threads) != block)
            self.writer[cells[clash]] = (-(BLOCK + block) - 1)[clash]
            self.writer[cells[other]] = ATOMIC
        if self.changed_by_cas is None:
            self.changed_by_cas = np.zeros(len(self.writer), np.bool_)
        self.changed_by_cas[cells] = compared

    # -- hazards

    @staticmethod
    def _block_of(writer: np.ndarray, threads: int) -> np.ndarray:
        """The block of a writer or reader; -1 if there were several, or none."""
        code = np.where(writer < 0, -writer - 1, writer)
        found: np.ndarray = np.where(code >= BLOCK, code - BLOCK, (code - 1) // threads)
        return found

    def _same_block(self, c: Context, other: np.ndarray, party: np.ndarray) -> Any:
        if self.shared:
            return np.ones(len(party), np.bool_)
        return self._block_of(other, c.geometry.threads) == (party - 1) // c.geometry.threads

    def _against_writer(
        self, c: Context, lanes: Any, cells: Any, party: Any, span: Span, hazard: str, harmless: Any = None
    ) -> None:
        """`harmless`: cells whose last change does not race with this access."""
        writer = self.writer[cells]
        touched = (writer != 0) & (writer != party) & (writer != -party - 1)
        if harmless is not None:
            touched &= ~harmless
        if touched.any():
            touched &= self._unordered(c, writer, party)
            same = self._same_block(c, writer, party)
            self._report_races(
                c, lanes, cells, party, writer, touched, same, self.write_epoch, span, hazard, self.write_site[cells]
            )

    def _against_readers(self, c: Context, lanes: Any, cells: Any, party: Any, span: Span) -> None:
        if self.reader is None:
            return
        reader = self.reader[cells]
        touched = (reader != 0) & ((reader != party) | self.many_threads[cells] | self.many_blocks[cells])
        if touched.any():
            touched &= self._unordered(c, reader, party)
            same = self._same_block(c, reader, party) & ~self.many_blocks[cells]
            sites = np.where(reader == party, self.other_site[cells], self.read_site[cells])
            self._report_races(c, lanes, cells, party, reader, touched, same, self.read_epoch, span, "WAR", sites)

    def _unordered(self, c: Context, other: np.ndarray, party: np.ndarray) -> Any:
        """Excludes threads of the same warp after a `__syncwarp`."""
        threads = c.geometry.threads
        return (other - 1) % threads // WARP != (party - 1) % threads // WARP if self.warp_synced else True

    def _report_races(
        self, c: Context, lanes: Any, cells: Any, party: Any, other: Any, touched: Any, same: Any, epochs: Any,
        span: Span, hazard: str, sites: Any,
    ) -> None:  # fmt: skip
        within = touched & same & (epochs[cells] == c.epochs[c.slot[lanes]])
        access = (("load", "store"), ("read", "write"))[self.shared][hazard != "RAW"]
        for where, scope in ((touched & ~same, "between blocks"), (within, "within a block")):
            at = np.flatnonzero(where)
            if not len(at):
                continue
            places = self.buffer.places(cells[at[: c.limits.touches]])
            # -1: the last reader is this thread, and the other one is not known
            others = np.where((other[at] > 0) & (other[at] != party[at]), other[at] - 1, -1)
            finding = c.collector.add(
                c, Kind.RACE, span, lanes[at], array=self.buffer.name, access=access, hazard=hazard, scope=scope,
                requested=places, reached=places, others=others, other_span=self.sites[int(sites[at[0]])],
            )  # fmt: skip
            if self.shared:
                first = finding.count == len(at)
                finding.in_warp = (first or finding.in_warp) and self._in_warp(c, lanes[at], others)

    @staticmethod
    def _in_warp(c: Context, lanes: Any, others: Any) -> bool:
        """Whether the race is inside one warp of a larger block, for which __syncthreads() would deadlock."""
        threads = c.geometry.threads
        if threads <= WARP or not c.whole:
            return False
        known = others >= 0
        together = others[known] % threads // WARP == c.thread[lanes[known]] // WARP
        active = c.thread if c.mask is None else c.thread[c.mask]
        return bool(together.any() and together.all() and active.max() // WARP == active.min() // WARP)

    def _find_stale(self, c: Context, site: int) -> None:
        """The cells of the blocks that executed this store since their last barrier, which it set in an earlier one."""
        cells = slice(0, self.buffer.size * c.block_count)
        last = self.write_epoch[cells].reshape(c.block_count, self.buffer.size)
        mine = (self.write_site[cells] == site) & (self.writer[cells] != 0)
        now = mine.reshape(last.shape) & (last == c.epochs[:, None])
        old = mine.reshape(last.shape) & ~now & now.any(axis=1, keepdims=True)
        if old.any():
            if self.stale is None:
                self.stale = np.zeros(len(self.writer), np.bool_)
            self.stale[cells] |= old.reshape(-1)

    def stored_at(self, cell: int) -> Span:
        """The last store to a cell."""
        return self.sites[int(self.write_site[cell])]

    def barrier(self, c: Context, all_blocks: bool) -> None:
        """Called before the epochs of the passing blocks are advanced."""
        for site in self.partial:
            self._find_stale(c, site)
        self.partial.clear()
        if all_blocks:
            self.pending.clear()
            self.written = False
        else:
            self._settle(c)

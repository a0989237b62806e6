"""Shadow memory: who touched which cell since the last barrier. It decides hazards; luck does not.

Shared memory: reads wait in a list and are only looked at when a write meets them before the next barrier, so that a
kernel whose barriers are right pays almost nothing. Global memory: two blocks meet in no order at all, so any two
touches of one cell with one write are a race; within a block the barriers order them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.costs import distinct
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.memory import Buffer
from tilewise.emulator.source.source import Span

ATOMIC = -1  # changed by atomic operations of several blocks
BLOCK = 1 << 40  # -(BLOCK + block) - 1: by those of several threads of one block; -thread - 1: by those of one thread


def _lanes(c: Context, flat: Any, mask: Any, ok: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lane numbers that took part and the cell of each."""
    take = mask if ok is None else ok if mask is None else mask & ok
    lanes = c.lane_numbers if take is None else np.flatnonzero(take)
    if not isinstance(flat, np.ndarray):
        return lanes, np.full(len(lanes), int(flat))
    return lanes, flat if take is None else flat[lanes]


class SharedShadow:
    def __init__(self, buffer: Buffer, cells: int) -> None:
        self.buffer = buffer
        self.stamp = 1
        self.write_stamp = np.zeros(cells, np.int32)
        self.writer = np.zeros(cells, np.int32)  # thread of the last write at that stamp
        self.write_site = np.zeros(cells, np.int32)
        self.read_stamp: Any = None
        self.reader: Any = None
        self.many: Any = None  # more than one thread has read it
        self.read_site: Any = None
        self.pending: list[tuple[Any, Any, Any, int]] = []  # cells, mask, ok, site
        self.wrote = False  # since the last barrier
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

    def read(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span) -> None:
        site = self._site(span)
        if not self.wrote:
            if len(self.pending) < 4096:
                self.pending.append((flat, mask, ok, site))
                return
            self._settle(c)
        lanes, cells = _lanes(c, flat, mask, ok)
        self._check(c, lanes, cells, span, "RAW", self.write_stamp, self.writer, None, self.write_site, "read")
        self._note_read(c, lanes, cells, site)

    def write(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span, value: Any, held: Any = None) -> None:
        """`held`: what the cells held before; a second thread that stores the same is no fault."""
        site = self._site(span)
        lanes, cells = _lanes(c, flat, mask, ok)
        if self.pending:
            self._settle(c)
        if self.read_stamp is not None:
            self._check(c, lanes, cells, span, "WAR", self.read_stamp, self.reader, self.many, self.read_site, "write")
        if self.wrote:
            new = np.ones(len(lanes), np.bool_)
            if held is not None:
                new = np.broadcast_to(np.asarray(held != value), (c.n,))[lanes]
            if new.any():
                stamps, who, sites = self.write_stamp, self.writer, self.write_site
                self._check(c, lanes[new], cells[new], span, "WAW", stamps, who, None, sites, "write")
        threads = c.thread[lanes]
        self.writer[cells] = threads
        self.write_stamp[cells] = self.stamp
        self.write_site[cells] = site
        self.wrote = True
        clash = self.writer[cells] != threads  # two threads, one cell, one statement
        if clash.any():
            self._clash(c, lanes, cells, threads, clash, span, value)

    def _clash(self, c: Context, lanes: Any, cells: Any, threads: Any, clash: Any, span: Span, value: Any) -> None:
        """Of two threads that store to one cell at once, only different values are a fault."""
        if not isinstance(value, np.ndarray):
            return
        mine = value[lanes]
        winner = self.buffer.data[cells]
        differs = clash & ~((mine == winner) | ((mine != mine) & (winner != winner)))
        if differs.any():
            at = np.flatnonzero(differs)
            others = c.block[lanes[at]].astype(np.int64) * c.geometry.threads + self.writer[cells[at]]
            self._report(c, lanes[at], cells[at], others, span, "WAW", span, "write")

    def _settle(self, c: Context) -> None:
        pending, self.pending = self.pending, []
        for flat, mask, ok, site in pending:
            lanes, cells = _lanes(c, flat, mask, ok)
            self._note_read(c, lanes, cells, site)

    def _note_read(self, c: Context, lanes: np.ndarray, cells: np.ndarray, site: int) -> None:
        if self.read_stamp is None:
            n = len(self.write_stamp)
            self.read_stamp, self.reader = np.zeros(n, np.int32), np.zeros(n, np.int32)
            self.many, self.read_site = np.zeros(n, np.bool_), np.zeros(n, np.int32)
        threads = c.thread[lanes]
        fresh = self.read_stamp[cells] != self.stamp
        self.many[cells[fresh]] = False
        shared = ~fresh & (self.reader[cells] != threads)
        self.many[cells[shared]] = True
        self.read_stamp[cells] = self.stamp
        self.reader[cells] = threads
        self.read_site[cells] = site
        self.many[cells[self.reader[cells] != threads]] = True

    def _check(
        self, c: Context, lanes: Any, cells: Any, span: Span, hazard: str, stamps: Any, who: Any, many: Any,
        sites: Any, access: str,
    ) -> None:  # fmt: skip
        threads = c.thread[lanes]
        conflict = who[cells] != threads
        if many is not None:
            conflict |= many[cells]
        conflict &= stamps[cells] == self.stamp
        if self.warp_synced:
            conflict &= who[cells] // 32 != threads // 32
        if not conflict.any():
            return
        at = np.flatnonzero(conflict)
        other = who[cells[at]].astype(np.int64)
        if many is not None:  # the last reader may be this very thread; another one was there
            other[other == threads[at]] = -1
        block = c.block[lanes[at]].astype(np.int64) * c.geometry.threads
        others = np.where(other < 0, -1, block + other)
        other_span = self.sites[int(sites[cells[at[0]]])]
        self._report(c, lanes[at], cells[at], others, span, hazard, other_span, access)

    def _report(
        self,
        c: Context,
        lanes: Any,
        cells: Any,
        others: Any,
        span: Span,
        hazard: str,
        other: Span,
        access: str,
    ) -> None:
        local = cells % self.buffer.size if self.buffer.size else cells
        requested = [np.asarray(part) for part in np.unravel_index(local, self.buffer.dims or (self.buffer.size,))]
        finding = c.collector.add(
            c, Kind.RACE, span, lanes, array=self.buffer.name, access=access, hazard=hazard,
            scope="within a block", requested=requested, reached=requested, others=others, other_span=other,
        )  # fmt: skip
        first = finding.count == len(lanes)
        finding.in_warp = (first or finding.in_warp) and self._in_warp(c, lanes, others)

    def _in_warp(self, c: Context, lanes: Any, others: Any) -> bool:
        """Whether one warp of a larger block races with itself: a __syncthreads() here would wait for the others."""
        threads = c.geometry.threads
        if threads <= 32 or not c.whole:
            return False
        known = others >= 0
        together = others[known] % threads // 32 == c.thread[lanes[known]] // 32
        active = c.thread if c.mask is None else c.thread[c.mask]
        return bool(together.any() and together.all() and active.max() // 32 == active.min() // 32)

    def barrier(self, c: Context, passed: Any) -> None:
        """`passed`: None when all blocks are through, else the lanes whose blocks are."""
        if passed is None:
            self.pending.clear()
            self.stamp += 1
            self.wrote = False
            return
        self._settle(c)
        for slot in distinct(c.slot[passed]).tolist():
            part = slice(slot * self.buffer.size, (slot + 1) * self.buffer.size)
            self.write_stamp[part] = 0
            if self.read_stamp is not None:
                self.read_stamp[part] = 0


class GlobalShadow:
    def __init__(self, buffer: Buffer) -> None:
        n = buffer.size
        self.buffer = buffer
        self.writer = np.zeros(n, np.int64)  # 0 nobody, below 0 atomic operations, else 1 + block · threads + thread
        self.compared = np.zeros(
            n, np.bool_
        )  # changed last by atomicCAS, which looks again: a plain read before is fine
        self.write_epoch = np.zeros(n, np.int32)
        self.reader = np.zeros(n, np.int64)
        self.read_epoch = np.zeros(n, np.int32)
        self.read_blocks = np.zeros(n, np.int32)  # 0 none, 1 one block, 2 several
        self.many = np.zeros(n, np.bool_)
        self.sites: dict[str, Span] = {}

    def _me(self, c: Context, lanes: np.ndarray) -> np.ndarray:
        me: np.ndarray = c.block[lanes].astype(np.int64) * c.geometry.threads + c.thread[lanes] + 1
        return me

    def read(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span) -> None:
        lanes, cells = _lanes(c, flat, mask, ok)
        me = self._me(c, lanes)
        self._against_writer(c, lanes, cells, me, span, "RAW", "load", fine=self.compared[cells])
        epoch = c.epochs[c.slot[lanes]]
        threads = c.geometry.threads
        fresh = self.reader[cells] == 0
        before = self.reader[cells]
        passed = ~fresh & (self.read_epoch[cells] != epoch)  # read before the last barrier: that reader is through
        self.many[cells[passed]] = False
        self.many[cells[~fresh & ~passed & (before != me)]] = True
        other_block = ~fresh & ((before - 1) // threads != (me - 1) // threads)
        self.read_blocks[cells[fresh]] = 1
        self.read_blocks[cells[other_block]] = 2
        self.reader[cells] = me
        self.read_epoch[cells] = epoch
        after = self.reader[cells]
        self.many[cells[after != me]] = True
        self.read_blocks[cells[(after - 1) // threads != (me - 1) // threads]] = 2
        self.sites["read"] = span

    def write(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span, value: Any, held: Any = None) -> None:
        """`held`: what the cells held before; a second thread that stores the same (`*changed = 1`) is no fault."""
        lanes, cells = _lanes(c, flat, mask, ok)
        me = self._me(c, lanes)
        fine = None
        if held is not None:
            fine = np.broadcast_to(np.asarray(held == value), (c.n,))[lanes] & (self.writer[cells] > 0)
        self._against_writer(c, lanes, cells, me, span, "WAW", "store", fine=fine)
        self._against_readers(c, lanes, cells, me, span)
        self.writer[cells] = me
        self.compared[cells] = False
        clash = self.writer[cells] != me
        if clash.any() and isinstance(value, np.ndarray):
            mine = value[lanes]
            winner = self.buffer.data[cells]
            self._note(c, lanes, cells, clash & (mine != winner), span)
        self.write_epoch[cells] = c.epochs[c.slot[lanes]]
        self.sites["write"] = span

    def atomic(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span, compared: bool) -> None:
        """Atomic operations race with plain accesses of other threads; a comparison and exchange looks again itself."""
        lanes, cells = _lanes(c, flat, mask, ok)
        me = self._me(c, lanes)
        self._against_writer(c, lanes, cells, me, span, "WAW", "store", fine=self.writer[cells] < 0)
        if not compared:
            self._against_readers(c, lanes, cells, me, span)
        block, mine = (me - 1) // c.geometry.threads, -me - 1
        before = self.writer[cells]
        alone = (before == 0) | (before == me) | (before == mine)
        joined = np.where(self._block_of(before, c.geometry.threads) == block, -(BLOCK + block) - 1, ATOMIC)
        new = np.where(alone, mine, joined)
        self.writer[cells] = new
        last = self.writer[cells]
        clash = last != new  # several threads, one cell, one statement
        if clash.any():
            other = clash & (self._block_of(last, c.geometry.threads) != block)
            self.writer[cells[clash]] = (-(BLOCK + block) - 1)[clash]
            self.writer[cells[other]] = ATOMIC
        self.compared[cells] = compared
        self.write_epoch[cells] = c.epochs[c.slot[lanes]]
        self.sites["write"] = span

    @staticmethod
    def _block_of(writer: np.ndarray, threads: int) -> np.ndarray:
        """The block that wrote last; -1 where there were several, or nobody."""
        code = np.where(writer < 0, -writer - 1, writer)
        found: np.ndarray = np.where(code >= BLOCK, code - BLOCK, (code - 1) // threads)
        return found

    def _against_readers(self, c: Context, lanes: Any, cells: Any, me: Any, span: Span) -> None:
        threads = c.geometry.threads
        reader = self.reader[cells]
        touched = reader != 0
        if not touched.any():
            return
        same = (reader - 1) // threads == (me - 1) // threads
        between = touched & ((self.read_blocks[cells] == 2) | ~same)
        within = touched & same & (self.read_epoch[cells] == c.epochs[c.slot[lanes]])
        within &= ~between & (self.many[cells] | (reader != me))
        for where, scope in ((between, "between blocks"), (within, "within a block")):
            if where.any():
                self._report(c, lanes, cells, reader, where, span, "WAR", scope, "store", self.sites["read"])

    def _note(self, c: Context, lanes: Any, cells: Any, clash: Any, span: Span) -> None:
        threads = c.geometry.threads
        writer = self.writer[cells]
        me = self._me(c, lanes)
        same = (writer - 1) // threads == (me - 1) // threads
        for where, scope in ((clash & ~same, "between blocks"), (clash & same, "within a block")):
            if where.any():
                self._report(c, lanes, cells, writer, where, span, "WAW", scope, "store", span)

    def _against_writer(
        self, c: Context, lanes: Any, cells: Any, me: Any, span: Span, hazard: str, access: str, fine: Any = None
    ) -> None:
        """`fine`: cells whose last change does not race with this access."""
        writer = self.writer[cells]
        touched = (writer != 0) & (writer != me) & (writer != -me - 1)
        if fine is not None:
            touched &= ~fine
        if not touched.any():
            return
        threads = c.geometry.threads
        same = self._block_of(writer, threads) == (me - 1) // threads
        within = touched & same & (self.write_epoch[cells] == c.epochs[c.slot[lanes]])
        for where, scope in ((touched & ~same, "between blocks"), (within, "within a block")):
            if where.any():
                self._report(c, lanes, cells, writer, where, span, hazard, scope, access, self.sites["write"])

    def _report(
        self, c: Context, lanes: Any, cells: Any, who: Any, where: Any, span: Span, hazard: str, scope: str,
        access: str, other: Span,
    ) -> None:  # fmt: skip
        at = np.flatnonzero(where)
        buffer = self.buffer
        if c.collector.counted(Kind.RACE, span, len(at), buffer.name, access, hazard, scope):
            return
        reached = [np.array([buffer.cell(int(i))[k] for i in cells[at][:64]]) for k in range(len(buffer.cell(0)))]
        reached = [np.concatenate([r, np.zeros(max(0, len(at) - 64), np.int64)]) for r in reached]
        c.collector.add(
            c, Kind.RACE, span, lanes[at], array=buffer.name, access=access, hazard=hazard, scope=scope,
            requested=reached, reached=reached, others=np.where(who[at] > 0, who[at] - 1, -1), other_span=other,
        )  # fmt: skip

"""Shadow memory: who touched which cell since the last barrier. It decides hazards; luck does not.

Two blocks meet in no order at all, so any two touches of one cell with one write are a race; within a block the
barriers order them. A shared array has cells of its own for each block: its reads wait in a list and are only looked at
when a write meets them before the next barrier, so that a kernel whose barriers are right pays almost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.emulator.machine.context import Context
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.memory import Buffer
from tilewise.emulator.source.source import Span

ATOMIC = -1  # changed by atomic operations of several blocks
BLOCK = 1 << 40  # -(BLOCK + block) - 1: by those of several threads of one block; -thread - 1: by those of one thread
MOST_PENDING = 4096
WARP = 32


def _lanes(c: Context, flat: Any, mask: Any, ok: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lane numbers that took part and the cell of each."""
    take = mask if ok is None else ok if mask is None else mask & ok
    lanes = c.lane_numbers if take is None else np.flatnonzero(take)
    if not isinstance(flat, np.ndarray):
        return lanes, np.full(len(lanes), int(flat))
    return lanes, flat if take is None else flat[lanes]


class Shadow:
    def __init__(self, buffer: Buffer, shared: bool) -> None:
        cells = len(buffer.data) if shared else buffer.size
        self.buffer, self.shared = buffer, shared
        self.writer = np.zeros(cells, np.int64)  # 0 nobody, below 0 atomics, else 1 + block · threads + thread
        self.write_epoch, self.write_site = np.zeros(cells, np.int32), np.zeros(cells, np.int32)
        self.compared: Any = None  # changed last by atomicCAS, which looks again: a plain read before is fine
        self.reader: Any = None  # as `writer`; there is none until a cell is read
        self.read_epoch: Any = None
        self.read_site: Any = None
        self.many: Any = None  # more than one thread of a block has read it,
        self.several: Any = None  # more than one block
        self.pending: list[tuple[Any, Any, Any, int]] = []  # cells, mask, ok, site
        self.wrote = False  # at all, or to shared memory since the last barrier
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
    def _me(c: Context, lanes: np.ndarray) -> np.ndarray:
        me: np.ndarray = c.block[lanes].astype(np.int64) * c.geometry.threads + c.thread[lanes] + 1
        return me

    # -- reads

    def read(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span) -> None:
        site = self._site(span)
        if self.shared and not self.wrote:
            if len(self.pending) < MOST_PENDING:
                self.pending.append((flat, mask, ok, site))
                return
            self._settle(c)
        lanes, cells = _lanes(c, flat, mask, ok)
        me = self._me(c, lanes)
        fine = None if self.compared is None else self.compared[cells]
        self._against_writer(c, lanes, cells, me, span, "RAW", fine)
        self._note_read(c, lanes, cells, me, site)

    def _settle(self, c: Context) -> None:
        pending, self.pending = self.pending, []
        for flat, mask, ok, site in pending:
            lanes, cells = _lanes(c, flat, mask, ok)
            self._note_read(c, lanes, cells, self._me(c, lanes), site)

    def _note_read(self, c: Context, lanes: np.ndarray, cells: np.ndarray, me: np.ndarray, site: int) -> None:
        if self.reader is None:
            n = len(self.writer)
            self.reader, self.read_epoch, self.read_site = (np.zeros(n, t) for t in (np.int64, np.int32, np.int32))
            self.many, self.several = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        epoch, before = c.epochs[c.slot[lanes]], self.reader[cells]
        fresh = before == 0
        passed = ~fresh & (self.read_epoch[cells] != epoch)  # read before the last barrier: that reader is through
        self.many[cells[passed]] = False
        self.many[cells[~fresh & ~passed & (before != me)]] = True
        self.reader[cells] = me
        self.read_epoch[cells] = epoch
        self.read_site[cells] = site
        after = self.reader[cells]
        self.many[cells[after != me]] = True
        if not self.shared:
            mine = self._block_of(me, c.geometry.threads)
            others = [self._block_of(reader, c.geometry.threads) != mine for reader in (before, after)]
            self.several[cells[(~fresh & others[0]) | others[1]]] = True

    # -- writes

    def write(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span, value: Any, held: Any = None) -> None:
        """`held`: what the cells held before; a second thread that stores the same (`*changed = 1`) is no fault."""
        lanes, cells = _lanes(c, flat, mask, ok)
        me = self._me(c, lanes)
        self._settle(c)
        self._against_readers(c, lanes, cells, me, span)
        if self.wrote:
            fine = None
            if held is not None:
                fine = np.broadcast_to(np.asarray(held == value), (c.n,))[lanes] & (self.writer[cells] > 0)
            self._against_writer(c, lanes, cells, me, span, "WAW", fine)
        self._note_write(c, lanes, cells, me, span)
        if self.compared is not None:
            self.compared[cells] = False
        writer = self.writer[cells]
        clash = writer != me  # two threads, one cell, one statement: only different values are a fault
        if clash.any() and isinstance(value, np.ndarray):
            mine, winner = value[lanes], self.buffer.data[cells]
            clash &= mine != winner
            if self.shared:
                clash &= (mine == mine) | (winner == winner)  # not both NaN
            same = self._same_block(c, writer, me)
            self._judge(c, lanes, cells, me, writer, clash, same, self.write_epoch, span, "WAW", self.write_site)

    def _note_write(self, c: Context, lanes: Any, cells: Any, writer: Any, span: Span) -> None:
        self.writer[cells] = writer
        self.write_epoch[cells] = c.epochs[c.slot[lanes]]
        self.write_site[cells] = self._site(span)
        self.wrote, self.last_write = True, span

    def atomic(self, c: Context, flat: Any, mask: Any, ok: Any, span: Span, compared: bool) -> None:
        """Atomic operations race with plain accesses of other threads; a comparison and exchange looks again itself."""
        lanes, cells = _lanes(c, flat, mask, ok)
        me = self._me(c, lanes)
        before = self.writer[cells]
        self._against_writer(c, lanes, cells, me, span, "WAW", before < 0)
        if not compared:
            self._against_readers(c, lanes, cells, me, span)
        block, mine = (me - 1) // c.geometry.threads, -me - 1
        alone = (before == 0) | (before == me) | (before == mine)
        joined = np.where(self._block_of(before, c.geometry.threads) == block, -(BLOCK + block) - 1, ATOMIC)
        new = np.where(alone, mine, joined)
        self._note_write(c, lanes, cells, new, span)
        last = self.writer[cells]
        clash = last != new  # several threads, one cell, one statement
        if clash.any():
            other = clash & (self._block_of(last, c.geometry.threads) != block)
            self.writer[cells[clash]] = (-(BLOCK + block) - 1)[clash]
            self.writer[cells[other]] = ATOMIC
        if self.compared is None:
            self.compared = np.zeros(len(self.writer), np.bool_)
        self.compared[cells] = compared

    # -- hazards

    @staticmethod
    def _block_of(writer: np.ndarray, threads: int) -> np.ndarray:
        """The block that wrote last; -1 where there were several, or nobody."""
        code = np.where(writer < 0, -writer - 1, writer)
        found: np.ndarray = np.where(code >= BLOCK, code - BLOCK, (code - 1) // threads)
        return found

    def _same_block(self, c: Context, who: np.ndarray, me: np.ndarray) -> Any:
        if self.shared:
            return np.ones(len(me), np.bool_)
        return self._block_of(who, c.geometry.threads) == (me - 1) // c.geometry.threads

    def _against_writer(
        self, c: Context, lanes: Any, cells: Any, me: Any, span: Span, hazard: str, fine: Any = None
    ) -> None:
        """`fine`: cells whose last change does not race with this access."""
        writer = self.writer[cells]
        touched = (writer != 0) & (writer != me) & (writer != -me - 1)
        if fine is not None:
            touched &= ~fine
        if touched.any():
            touched &= self._unordered(c, writer, me)
            same = self._same_block(c, writer, me)
            self._judge(c, lanes, cells, me, writer, touched, same, self.write_epoch, span, hazard, self.write_site)

    def _against_readers(self, c: Context, lanes: Any, cells: Any, me: Any, span: Span) -> None:
        if self.reader is None:
            return
        reader = self.reader[cells]
        touched = (reader != 0) & ((reader != me) | self.many[cells] | self.several[cells])
        if touched.any():
            touched &= self._unordered(c, reader, me)
            same = self._same_block(c, reader, me) & ~self.several[cells]
            self._judge(c, lanes, cells, me, reader, touched, same, self.read_epoch, span, "WAR", self.read_site)

    def _unordered(self, c: Context, who: np.ndarray, me: np.ndarray) -> Any:
        """`__syncwarp` orders the threads of a warp."""
        threads = c.geometry.threads
        return (who - 1) % threads // WARP != (me - 1) % threads // WARP if self.warp_synced else True

    def _judge(
        self, c: Context, lanes: Any, cells: Any, me: Any, who: Any, touched: Any, same: Any, epochs: Any, span: Span,
        hazard: str, sites: Any,
    ) -> None:  # fmt: skip
        within = touched & same & (epochs[cells] == c.epochs[c.slot[lanes]])
        access = (("load", "store"), ("read", "write"))[self.shared][hazard != "RAW"]
        for where, scope in ((touched & ~same, "between blocks"), (within, "within a block")):
            at = np.flatnonzero(where)
            if not len(at):
                continue
            places = self.buffer.places(cells[at[: c.limits.touches]])
            # the last reader may be this very thread; another one was there
            others = np.where((who[at] > 0) & (who[at] != me[at]), who[at] - 1, -1)
            finding = c.collector.add(
                c, Kind.RACE, span, lanes[at], array=self.buffer.name, access=access, hazard=hazard, scope=scope,
                requested=places, reached=places, others=others, other_span=self.sites[int(sites[cells[at[0]]])],
            )  # fmt: skip
            if self.shared:
                first = finding.count == len(at)
                finding.in_warp = (first or finding.in_warp) and self._in_warp(c, lanes[at], others)

    @staticmethod
    def _in_warp(c: Context, lanes: Any, others: Any) -> bool:
        """Whether one warp of a larger block races with itself: a __syncthreads() here would wait for the others."""
        threads = c.geometry.threads
        if threads <= WARP or not c.whole:
            return False
        known = others >= 0
        together = others[known] % threads // WARP == c.thread[lanes[known]] // WARP
        active = c.thread if c.mask is None else c.thread[c.mask]
        return bool(together.any() and together.all() and active.max() // WARP == active.min() // WARP)

    def barrier(self, c: Context, everyone: bool) -> None:
        """Before the epochs of the blocks that pass go on; `everyone`: all of them pass."""
        if everyone:
            self.pending.clear()
            self.wrote = False
        else:
            self._settle(c)

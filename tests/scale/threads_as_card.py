"""A card simulated by threads: a thread per stream, real events, operations in queue order.

What it is for: streaming must order its copies, products and rounding by events. Here work that was not ordered is done
at the wrong time, and the product is wrong.
"""

from __future__ import annotations

import ctypes
import queue
import random
import threading
import time

import numpy as np

from tilewise.scale import host


class Stream:
    def __init__(self):
        self.jobs = queue.Queue()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while (job := self.jobs.get()) is not None:
            job()


def at(address, dtype, shape, strides):
    """Cells at an address, as an array."""
    reach = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + 1
    memory = (ctypes.c_uint8 * (reach * dtype.itemsize)).from_address(address)
    flat = np.frombuffer(memory, dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, [s * dtype.itemsize for s in strides])


class ThreadQueues:
    def __init__(self, slow=0.0, seed=0):
        self.kept, self.streams, self.allocated = [], [], 0
        self.slow, self.chance = slow, random.Random(seed)
        self.errors, self.pages, self.straight, self.most_pages = [], [], 0, 10**6
        self.unlock_imports = []

    def enter(self):
        pass

    def memory(self, nbytes):
        self.allocated += nbytes
        made = np.full(nbytes + 256, 0xA5, np.uint8)  # what was there before must never matter
        self.kept.append(made)
        return -(-made.ctypes.data // 256) * 256

    def pinned(self, nbytes):
        return np.full(nbytes, 0x5A, np.uint8)

    def pin(self, address, nbytes):
        assert address % 4096 == nbytes % 4096 == 0
        assert not any(low < address + nbytes and address < high for low, high in self.pages), "pinned twice"
        if len(self.pages) >= self.most_pages:
            return False
        self.pages.append((address, address + nbytes))
        return True

    def unpin(self):
        self.unlock_imports += self.pages
        self.pages = []

    def stream(self, urgent=False):
        self.streams.append(Stream())
        return self.streams[-1]

    def record(self, stream):
        event = threading.Event()
        stream.jobs.put(event.set)
        return event

    def wait(self, stream, event):
        stream.jobs.put(event.wait)

    def sync(self, event):
        event.wait()

    def queue(self, stream, work):
        def job():
            if self.slow:
                time.sleep(self.chance.random() * self.slow)
            try:
                work()
            except Exception as error:
                self.errors.append(error)

        stream.jobs.put(job)

    def copy_in(self, host_bytes, address, stream):
        self.queue(stream, lambda: ctypes.memmove(address, host_bytes.ctypes.data, host_bytes.nbytes))

    def copy_pitched_in(self, host, pitch, width, count, address, pitch_to, stream):
        inside = any(low <= host and host + (count - 1) * pitch + width <= high for low, high in self.pages)
        assert inside, "a copy that passes from one registration to another"
        self.straight += count

        def work():
            assert any(low <= host < high for low, high in self.pages), "let go too soon"
            for line in range(count):
                ctypes.memmove(address + line * pitch_to, host + line * pitch, width)

        self.queue(stream, work)

    def copy_out(self, address, pitch, width, rows, host_bytes, stream):
        def work():
            for row in range(rows):
                ctypes.memmove(host_bytes.ctypes.data + row * width, address + row * pitch, width)

        self.queue(stream, work)

    def multiply(self, problem, M, N, P, stream):
        p = problem

        def work():
            operands = [
                at(address, dtype.numpy, shape, (layout.row, layout.col))
                for address, dtype, shape, layout in (
                    (M, p.dtype_m, (p.m, p.k), p.layout_m),
                    (N, p.dtype_n, (p.k, p.n), p.layout_n),
                    (P, p.result, (p.m, p.n), p.layout_p),
                )
            ]
            host.multiply(p, *operands, p.accumulate)

        self.queue(stream, work)

    def round(self, sums, lead, rows, cols, kinds, stream):
        def work():
            for row in range(rows):
                start = sums + row * lead * kinds[0].itemsize
                made = at(start, kinds[0].numpy, (cols,), (1,)).astype(kinds[1].numpy)
                ctypes.memmove(start, made.ctypes.data, made.nbytes)

        self.queue(stream, work)

    def close(self):
        for stream in self.streams:
            stream.jobs.put(None)
            stream.thread.join()
        if self.errors:
            raise self.errors[0]

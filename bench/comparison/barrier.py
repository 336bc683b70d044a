# SPDX-License-Identifier: Apache-2.0
"""A barrier between measurements: words in a shared file, so that neither backend is used for it."""
import mmap
import os
import struct
import time

_SLOT = 64  # a cache line each


class Barrier:
    """For all ranks of one host; `path` is a file that the first rank extends to the required size."""

    def __init__(self, path, rank, ranks):
        self.rank, self.ranks, self.count = rank, ranks, 0
        with open(path, "a+b") as file:
            os.truncate(path, max(os.path.getsize(path), 2 * _SLOT * ranks))
            self.words = mmap.mmap(file.fileno(), 2 * _SLOT * ranks)

    def _arrived(self, rank):
        return struct.unpack_from("q", self.words, rank * _SLOT)[0]

    def wait(self):
        """Returns when all ranks have called it, at about the same time on all: waiters poll and yield."""
        self.count += 1
        struct.pack_into("q", self.words, self.rank * _SLOT, self.count)
        polls = 0
        while any(self._arrived(rank) < self.count for rank in range(self.ranks)):
            polls += 1
            if polls < 2000:
                os.sched_yield()
            else:
                time.sleep(100e-6)

    def maximum(self, value):
        """The maximum of the ranks' values, on every rank."""
        struct.pack_into("d", self.words, (self.ranks + self.rank) * _SLOT, value)
        self.wait()
        found = max(struct.unpack_from("d", self.words, (self.ranks + rank) * _SLOT)[0] for rank in range(self.ranks))
        self.wait()
        return found

# SPDX-License-Identifier: Apache-2.0
"""Step times and the bandwidth of collectives in TensorBoard, from the counters of a ccom group.

    from ccom.torch.tensorboard import StepLogger

    with StepLogger("runs/first") as logger:           # a directory, or a SummaryWriter
        for number, batch in enumerate(batches):
            with logger.step(number):
                train(batch)

Only rank 0 of the group writes, unless all_ranks is true; then each rank has a folder of its own. Every step writes

    ccom/step_seconds               the step
    ccom/blocked_seconds            of that, how long operations held up this rank's threads: what was not hidden
    ccom/blocked_share              the same as a share of the step
    ccom/ALLREDUCE/calls, bytes     of each operation
    ccom/ALLREDUCE/algbw_GBps       bytes by the seconds that the operations ran, the lateness of other ranks included
    ccom/ALLREDUCE/busbw_GBps       the same by what the fabric carries: compares operations and numbers of ranks
    ccom/waits/rank3/waited_share   of the step, in waits for other ranks; of every rank of this host
    ccom/waits/rank3/made_wait_share  of the step, that the rank which waited longest for this one did so

Operations count for the step in which they end. Blocked: in synchronous calls and in Work.wait(); waiting for a future,
as DistributedDataParallel does, is torch's own and shows in the step alone. Reading the counters takes
microseconds; events are written by the SummaryWriter's thread.
"""
import contextlib
import os
import time

import torch.distributed as dist

# Traffic of each byte, as in nccl-tests (doc/PERFORMANCE.md); 1 for all others.
_TRAFFIC = {
    "ALLREDUCE": lambda ranks: 2 * (ranks - 1) / ranks,
    "ALLREDUCE_COALESCED": lambda ranks: 2 * (ranks - 1) / ranks,
    "ALLGATHER": lambda ranks: (ranks - 1) / ranks,
    "_ALLGATHER_BASE": lambda ranks: (ranks - 1) / ranks,
    "ALLGATHER_COALESCED": lambda ranks: (ranks - 1) / ranks,
    "REDUCE_SCATTER": lambda ranks: (ranks - 1) / ranks,
    "_REDUCE_SCATTER_BASE": lambda ranks: (ranks - 1) / ranks,
    "REDUCE_SCATTER_TENSOR_COALESCED": lambda ranks: (ranks - 1) / ranks,
    "GATHER": lambda ranks: (ranks - 1) / ranks,
    "SCATTER": lambda ranks: (ranks - 1) / ranks,
    "ALLTOALL": lambda ranks: (ranks - 1) / ranks,
    "ALLTOALL_BASE": lambda ranks: (ranks - 1) / ranks,
}
_COUNTERS = ("count", "bytes", "seconds", "waited_seconds")


def _by_operation(entries):
    return {entry["op"]: {name: entry[name] for name in _COUNTERS} for entry in entries}


def difference(before, after):
    """The increase of the counters of stats(), {operation: counters}; omits operations without a call."""
    earlier, found = _by_operation(before), {}
    for operation, counters in _by_operation(after).items():
        start = earlier.get(operation, dict.fromkeys(_COUNTERS, 0))
        moved = {name: counters[name] - start[name] for name in _COUNTERS}
        if moved["count"] > 0 or moved["waited_seconds"] > 0:
            found[operation] = moved
    return found


def scalars(seconds, operations, ranks):
    """The values of one step: {tag: value}. `operations` as from difference()."""
    blocked = sum(counters["waited_seconds"] for counters in operations.values())
    values = {"step_seconds": seconds, "blocked_seconds": blocked}
    if seconds > 0:
        values["blocked_share"] = blocked / seconds
    for operation, counters in operations.items():
        if counters["count"] == 0:
            continue
        values[f"{operation}/calls"] = counters["count"]
        values[f"{operation}/bytes"] = counters["bytes"]
        if counters["bytes"] > 0 and counters["seconds"] > 0:
            algorithm = counters["bytes"] / counters["seconds"] / 1e9
            values[f"{operation}/algbw_GBps"] = algorithm
            values[f"{operation}/busbw_GBps"] = algorithm * _TRAFFIC.get(operation, lambda _: 1)(ranks)
    return values


def wait_scalars(seconds, before, after):
    """The values of the waits of one step: {tag: value}, from ccom.torch.report(as_json=True) at its ends."""
    if seconds <= 0:
        return {}
    earlier, values = {of["rank"]: of for of in before["ranks"]}, {}
    for of in after["ranks"]:
        for name in ("waited", "made_wait"):
            moved = of[f"{name}_seconds"] - earlier[of["rank"]][f"{name}_seconds"]
            values[f"waits/rank{of['rank']}/{name}_share"] = min(max(moved / seconds, 0), 1)
    return values


class StepLogger:
    """Not thread-safe. Steps do not nest."""

    def __init__(self, writer_or_logdir, group=None, prefix="ccom", all_ranks=False):
        self._group, self._prefix = group, prefix
        self._ranks = dist.get_world_size(group)
        self._owns_writer = isinstance(writer_or_logdir, (str, os.PathLike))
        if not all_ranks and dist.get_rank(group) != 0:
            self._writer, self._owns_writer = None, False
        elif self._owns_writer:
            # Imports another protobuf, so only where it is needed.
            from torch.utils.tensorboard import SummaryWriter

            folder = os.fspath(writer_or_logdir)
            self._writer = SummaryWriter(os.path.join(folder, f"rank{dist.get_rank(group)}") if all_ranks else folder)
        else:
            self._writer = writer_or_logdir

    @contextlib.contextmanager
    def step(self, number):
        """Logs the enclosed code as step `number`; nothing if it raises an exception."""
        if self._writer is None:
            yield
            return
        from ccom.torch import report, stats

        waits = report(self._group, as_json=True, of_host=True)
        before, begin = stats(self._group), time.perf_counter()
        yield
        seconds = time.perf_counter() - begin
        values = scalars(seconds, difference(before, stats(self._group)), self._ranks)
        values |= wait_scalars(seconds, waits, report(self._group, as_json=True, of_host=True))
        for tag, value in values.items():
            self._writer.add_scalar(f"{self._prefix}/{tag}", value, number)

    def close(self):
        """Flushes, and closes the writer if it was created here."""
        if self._writer is None:
            return
        if self._owns_writer:
            self._writer.close()
        else:
            self._writer.flush()
        self._writer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

# SPDX-License-Identifier: Apache-2.0
"""Every method of torch's Work, of every kind, by every thread, in one state: work_matrix.py BACKEND STATE

Two ranks. Each call has a work of its own, which rank 0 issues in its main thread. Rank 0 prints one line of JSON per
call: {"kind", "method", "thread", "outcomes"}; rank 1 makes its part of the calls when rank 0 says so. A call that has
not returned within BOUND seconds "hangs", and rank 0 ends there.

A state "open", "complete", "mismatched" or "killed" says how the calls ended, and "... and aborted", "... and
destroyed", "... and dropped" what happened to the group then, before the methods are called. "open" alone: a method
that blocks is called before rank 1 comes, and rank 1 comes after that.
"""
import contextlib
import datetime
import gc
import itertools
import json
import os
import queue
import signal
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from unittest import mock

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager

BACKEND, STATE = sys.argv[1:]
IS_CCOM = BACKEND == "ccom"
RANK = int(os.environ["RANK"])
BOUND = 10
PATIENCE = 60  # of what surrounds the calls
CPU = torch.device("cpu")
BIG = torch.ones(1 << 18)  # is not sent before it is received
kept = []  # Gloo's messages end with their works


def batch():
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, BIG, 1 - RANK),
                                    dist.P2POp(dist.irecv, torch.zeros(BIG.numel()), 1 - RANK)])
    kept.append(works)
    return works[-1]


def broadcast():
    return dist.broadcast(torch.full((4,), 2.0 * RANK), 1, async_op=True)


def coalesced(device, *calls):
    with _coalescing_manager(device=device, async_ops=True) as manager:
        for call in calls:
            call()
    return manager.works[0]


# Rank 0 waits for rank 1 in each. The batch comes first: State.settle.
KINDS = {
    "batch": batch,
    "all_reduce": lambda: dist.all_reduce(torch.ones(4), async_op=True),
    "all_gather": lambda: dist.all_gather_into_tensor(torch.zeros(8), torch.ones(4), async_op=True),
    "broadcast": broadcast,
    "send": lambda: dist.isend(BIG, 1) if RANK == 0 else dist.irecv(torch.zeros(BIG.numel()), 0),
    "receive": lambda: dist.irecv(torch.zeros(4), 1) if RANK == 0 else dist.isend(torch.full((4,), 2.0), 0),
    "barrier": lambda: dist.barrier(async_op=True),
    "coalesced": lambda: coalesced(None, *2 * [lambda: dist.all_reduce(torch.ones(2))]),
}
if IS_CCOM:
    KINDS["coalesced broadcast"] = lambda: coalesced(CPU, broadcast)
METHODS = {name: lambda work, name=name: getattr(work, name)() for name in dir(dist.Work)
           if not name.startswith("_") or name in ("_source_rank", "_get_duration", "_get_op_type")}
METHODS |= {
    "wait for 20 ms": lambda work: work.wait(datetime.timedelta(milliseconds=20)),
    "get_future().done": lambda work: work.get_future().done(),
    "get_future().wait": lambda work: work.get_future().wait(),
    "get_future().then": lambda work: work.get_future().then(lambda future: future.value()).wait(),
    "future.wait": lambda future: future.wait(),  # of a future that was taken when the call was issued
    "unbox": lambda work: dist.Work.unbox(work.boxed()).is_completed(),
}
BLOCKING = ("wait", "get_future().wait", "get_future().then", "future.wait")


def described(value):
    if isinstance(value, list):
        return f"sum {sum(tensor.sum().item() for tensor in value):.0f}"
    if isinstance(value, BaseException):
        return f"the error {type(value).__name__}: {value}"
    return str(value) if value is None or isinstance(value, (bool, int)) else type(value).__name__


def outcome(method, work, ready=None):
    if ready is not None:
        ready.wait()
    try:
        return described(METHODS[method](work))
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"


class Main:
    """The main thread, as an executor."""

    def __init__(self):
        self._todo = queue.SimpleQueue()

    def submit(self, function, *arguments):
        future = Future()
        self._todo.put((future, function, arguments))
        return future

    def run(self, function, *arguments):
        return self.submit(function, *arguments).result(PATIENCE)

    def serve_until(self, done):
        done.add_done_callback(lambda _: self._todo.put(None))
        for future, function, arguments in iter(self._todo.get, None):
            try:
                future.set_result(function(*arguments))
            except BaseException as error:
                future.set_exception(error)
        done.result()


MAIN = Main()
EARLY = ThreadPoolExecutor(1)  # its thread is there before the group is


def two(method, work):
    pool, ready = ThreadPoolExecutor(2), threading.Barrier(2)
    return [pool.submit(outcome, method, work, ready) for _ in range(2)]


THREADS = {
    "issuer": lambda *call: [MAIN.submit(outcome, *call)],
    "early": lambda *call: [EARLY.submit(outcome, *call)],
    "another": lambda *call: [ThreadPoolExecutor(1).submit(outcome, *call)],
    "two": two,
}


def cells():
    for cell in itertools.product(KINDS, METHODS, THREADS):
        kind, method, thread = cell
        # Gloo's messages have no futures, end the connection when a wait runs out, and hang at a second wait.
        without = kind in ("batch", "send", "receive") and (method == "future.wait" or
                                                            (STATE, method) == ("open", "wait for 20 ms"))
        if IS_CCOM or (thread == "issuer" and not without):
            yield cell


CELLS = list(cells())


def issue(kind, method):
    work = KINDS[kind]()
    kept.append(work)
    return work.get_future() if method == "future.wait" else work


def tell(cell, started):
    outcomes = []
    for future in started:
        try:
            outcomes.append(future.result(BOUND))
        except TimeoutError:
            outcomes.append("hangs")
    print(json.dumps(dict(zip(("kind", "method", "thread"), cell), outcomes=outcomes)), flush=True)
    if "hangs" in outcomes:
        os._exit(1)


class State:
    def __init__(self, store):
        self.store = dist.PrefixStore(STATE, store)
        self.ends, _, self.after = STATE.partition(" and ")

    def say(self, what):
        self.store.set(what, "")

    def expect(self, what):
        self.store.wait([what], datetime.timedelta(seconds=PATIENCE))

    def start(self):
        dist.init_process_group(BACKEND, store=self.store, rank=RANK, world_size=2,
                                timeout=datetime.timedelta(seconds=PATIENCE))
        dist.all_reduce(torch.ones(1))

    def leave(self):
        if not IS_CCOM:  # its destructor may wait for long
            sys.stdout.flush()
            os._exit(0)
        if dist.is_initialized():
            dist.destroy_process_group()

    # Of rank 0.
    def run(self):
        MAIN.run(self.start)
        if STATE == "open":
            self.run_open()
        else:
            self.run_ended()
        self.say("end")
        self.leave()

    def run_open(self):
        for number, cell in enumerate(CELLS):
            kind, method, thread = cell
            started = THREADS[thread](method, MAIN.run(issue, kind, method))
            if method in BLOCKING:
                time.sleep(0.02)
                self.say(f"come {number}")
            tell(cell, started)
            self.say(f"come {number}")

    def run_ended(self):
        works = [MAIN.run(issue, kind, method) for kind, method, _ in CELLS]
        if self.ends != "open":
            self.say("come")
            self.settle(works)
        {"": lambda: None, "aborted": dist.group.WORLD.abort, "destroyed": self.destroy, "dropped": self.drop}[
            self.after]()
        self.settle(works)
        for cell, work in zip(CELLS, works):
            tell(cell, THREADS[cell[2]](cell[1], work))

    def settle(self, works):
        """Until all have ended. A batch, which has ended before other messages, is not made to look at its parts, and
        Gloo's messages learn of their end only in wait()."""
        blind = ("batch",) if IS_CCOM else ("batch", "send", "receive")
        until = time.monotonic() + PATIENCE
        seen = [work for (kind, _, _), work in zip(CELLS, works) if kind not in blind]
        while not all(work.done() if isinstance(work, torch.Future) else work.is_completed() for work in seen):
            if time.monotonic() > until:
                return
            time.sleep(0.01)
        time.sleep(0.05)

    def destroy(self):
        """For so long it waits for what is under way."""
        dist.group.WORLD._get_backend(CPU)._set_default_timeout(datetime.timedelta(seconds=1))
        dist.destroy_process_group()

    def drop(self):
        """All references but those of works, without a shutdown. Rank 1 comes meanwhile."""
        if self.ends == "open":
            threading.Timer(0.3, self.say, ["come"]).start()
        with mock.patch.object(dist.ProcessGroup, "shutdown", lambda group: None):
            dist.destroy_process_group()
        gc.collect()

    # Of rank 1.
    def answer(self):
        self.start()
        if STATE == "open":
            for number, (kind, _, _) in enumerate(CELLS):
                self.expect(f"come {number}")
                KINDS[kind]().wait()
        elif self.ends == "complete":
            self.answer_all()
        else:
            with contextlib.suppress(RuntimeError):
                self.answer_badly()
        self.expect("end")
        self.leave()

    def answer_all(self):
        self.expect("come")
        for work in [KINDS[kind]() for kind, _, _ in CELLS]:
            work.wait()

    def answer_badly(self):
        if STATE == "open and dropped":
            self.answer_all()  # rank 0's messages are not waited for, so that it may have left
        elif self.ends != "open":
            self.expect("come")
            if self.ends == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            dist.all_reduce(torch.ones(5))


def main():
    state = State(dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False))
    if RANK == 1:
        state.answer()
        return
    EARLY.submit(int).result()
    MAIN.serve_until(ThreadPoolExecutor(1).submit(state.run))


if __name__ == "__main__":
    main()

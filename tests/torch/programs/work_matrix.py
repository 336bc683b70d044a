# SPDX-License-Identifier: Apache-2.0
"""Calls every method of torch's Work, of every kind, in every state, by every thread: work_matrix.py BACKEND STATE...

Two ranks. Each call has a work of its own. Rank 0 prints one line of JSON per call: {"state", "kind", "method",
"thread", "outcomes"}; rank 1 makes its part of the calls when rank 0 says so. A call that has not ended within BOUND is
told as "hangs", and rank 0 ends there.
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

BOUND = 10
KEPT = []
BIG = torch.ones(1 << 18)  # is not sent before it is received
RANK = int(os.environ["RANK"])


def coalesced():
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as manager:
        for _ in range(2):
            dist.all_reduce(torch.ones(2))
    return manager.works[0]


def batch():
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, BIG, 1 - RANK),
                                   dist.P2POp(dist.irecv, torch.zeros(BIG.numel()), 1 - RANK)])
    KEPT.append(works)
    return works[-1]


# Rank 0 waits for rank 1 in each. What rank 0 receives has the sum 8 or 1 << 18.
KINDS = {
    "batch": batch,
    "all_reduce": lambda: dist.all_reduce(torch.ones(4), async_op=True),
    "all_gather": lambda: dist.all_gather_into_tensor(torch.zeros(8), torch.ones(4), async_op=True),
    "broadcast": lambda: dist.broadcast(torch.full((4,), 2.0 * RANK), 1, async_op=True),
    "send": lambda: dist.isend(BIG, 1) if RANK == 0 else dist.irecv(torch.zeros(BIG.numel()), 0),
    "receive": lambda: dist.irecv(torch.zeros(4), 1) if RANK == 0 else dist.isend(torch.full((4,), 2.0), 0),
    "barrier": lambda: dist.barrier(async_op=True),
    "coalesced": coalesced,
}
SPECIAL = {
    "wait for 20 ms": lambda work: work.wait(datetime.timedelta(milliseconds=20)),
    "get_future": lambda work: work.get_future().done(),
    "get_future().wait": lambda work: work.get_future().wait(),
    "get_future().then": lambda work: work.get_future().then(lambda future: future.value()).wait(),
    "unbox": lambda work: dist.Work.unbox(work.boxed()).is_completed(),
    "boxed": lambda work: work.boxed() is not None,
}
METHODS = {name: lambda work, name=name: getattr(work, name)() for name in dir(dist.Work)
           if not name.startswith("_") or name in ("_source_rank", "_get_duration", "_get_op_type")} | SPECIAL
BLOCKING = ("wait", "get_future().wait", "get_future().then")


def described(value):
    if isinstance(value, BaseException):
        return f"the error {type(value).__name__}: {str(value).splitlines()[0]}"
    if isinstance(value, list):
        return f"sum {sum(tensor.sum().item() for tensor in value):.0f}"
    return "future" if isinstance(value, torch.Future) else "duration" if isinstance(value, float) else str(value)


def outcome(method, work, ready=None):
    if ready is not None:
        ready.wait()
    try:
        return described(METHODS[method](work))
    except Exception as error:
        return f"raises {type(error).__name__}: {str(error).splitlines()[0]}"


class Main:
    """The main thread, as an executor."""

    def __init__(self):
        self._todo = queue.SimpleQueue()

    def submit(self, function, *arguments):
        future = Future()
        self._todo.put((future, function, arguments))
        return future

    def serve(self):
        for future, function, arguments in iter(self._todo.get, None):
            try:
                future.set_result(function(*arguments))
            except BaseException as error:
                future.set_exception(error)

    def run(self, function, *arguments):
        return self.submit(function, *arguments).result(60)

    def end(self):
        self._todo.put(None)


MAIN = Main()
EARLY = ThreadPoolExecutor(1)  # its thread is there before any group is
THREADS = {
    "issuer": lambda *what: [MAIN.submit(outcome, *what)],
    "early": lambda *what: [EARLY.submit(outcome, *what)],
    "another": lambda *what: [ThreadPoolExecutor(1).submit(outcome, *what)],
    "two": lambda *what: [pool.submit(outcome, *what, barrier) for barrier in [threading.Barrier(2)]
                          for pool in [ThreadPoolExecutor(2)] for _ in range(2)],
}
CELLS = list(itertools.product(KINDS, METHODS, THREADS))


class State:
    """A group in which calls end as `ends` says, and to which then `after` happens."""

    def __init__(self, store, backend, name):
        self.store, self.backend, self.name = dist.PrefixStore(f"{backend} {name}", store), backend, name
        self.ends, _, self.after = name.partition(" and ")

    def say(self, what):
        self.store.set(what, "")

    def expect(self, what):
        self.store.wait([what], datetime.timedelta(seconds=30))

    def start(self):
        dist.init_process_group(self.backend, store=self.store, rank=RANK, world_size=2,
                                timeout=datetime.timedelta(seconds=20))
        dist.all_reduce(torch.ones(1))

    def tell(self, cell, started):
        kind, method, thread = cell
        outcomes = []
        for future in started:
            try:
                outcomes.append(future.result(BOUND))
            except TimeoutError:
                outcomes.append("hangs")
        print(json.dumps({"state": self.name, "kind": kind, "method": method, "thread": thread, "outcomes": outcomes}),
              flush=True)
        if "hangs" in outcomes:
            os._exit(1)

    # Of rank 0.
    def run(self):
        MAIN.run(self.start)
        {"open": self.run_open}.get(self.name, self.run_ended)()

    def run_open(self):
        works = []
        for cell in [cell for cell in CELLS if cell[1] not in BLOCKING]:
            works.append(MAIN.run(KINDS[cell[0]]))
            self.tell(cell, THREADS[cell[2]](cell[1], works[-1]))
        self.say("all")
        for work in works:
            MAIN.run(work.wait)
        for number, cell in enumerate(cell for cell in CELLS if cell[1] in BLOCKING):
            started = THREADS[cell[2]](cell[1], MAIN.run(KINDS[cell[0]]))
            time.sleep(0.02)
            self.say(f"one {number}")
            self.tell(cell, started)
        MAIN.run(dist.destroy_process_group)

    def run_ended(self):
        works = [MAIN.run(KINDS[cell[0]]) for cell in CELLS]
        if self.ends != "open":
            self.say("all")
            self.settle(works)
        {"": lambda: None, "aborted": dist.group.WORLD.abort, "destroyed": self.destroy, "dropped": self.drop}[
            self.after]()
        if self.ends == "open":
            self.settle(works)
        for cell, work in zip(CELLS, works):
            self.tell(cell, THREADS[cell[2]](cell[1], work))
        if dist.is_initialized():
            MAIN.run(dist.destroy_process_group)

    def settle(self, works):
        """Until all have ended. Works of many messages are not looked at: then they would know it."""
        end = time.monotonic() + BOUND
        plain = [work for (kind, _, _), work in zip(CELLS, works) if kind not in {"ccom": ["batch"], "gloo": ["batch", "send", "receive"]}[self.backend]]
        while not all(work.is_completed() for work in plain) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.05)

    def destroy(self):
        """For so long it waits for what is under way."""
        dist.group.WORLD._get_backend(torch.device("cpu"))._set_default_timeout(datetime.timedelta(seconds=1))
        dist.destroy_process_group()

    def drop(self):
        """All references but those of works, without a shutdown. The other rank comes meanwhile."""
        if self.ends == "open":
            threading.Timer(0.3, self.say, ["all"]).start()
        with mock.patch.object(dist.ProcessGroup, "shutdown", lambda group: None):
            dist.destroy_process_group()
        gc.collect()

    # Of rank 1.
    def answer(self):
        self.start()
        if self.name == "open":
            self.answer_all([kind for kind, method, _ in CELLS if method not in BLOCKING])
            for number, kind in enumerate(kind for kind, method, _ in CELLS if method in BLOCKING):
                self.expect(f"one {number}")
                KINDS[kind]().wait()
        elif self.ends == "complete":
            self.answer_all([kind for kind, _, _ in CELLS])
        elif self.name == "open and dropped":
            with contextlib.suppress(RuntimeError):  # messages are not waited for
                self.answer_all([kind for kind, _, _ in CELLS])
        elif self.ends != "open":
            self.expect("all")
            if self.ends == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            with contextlib.suppress(RuntimeError):
                dist.all_reduce(torch.ones(5))

    def answer_all(self, kinds):
        self.expect("all")
        for work in [KINDS[kind]() for kind in kinds]:
            work.wait()


def run(store, backend, names):
    for name in names:
        state = State(store, backend, name)
        begin = time.monotonic()
        if RANK == 0:
            state.run()
            print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
            state.say("end")
        else:
            state.answer()
            state.expect("end")
            dist.destroy_process_group()


def main():
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    backend, *names = sys.argv[1:]
    if RANK == 1:
        return run(store, backend, names)
    EARLY.submit(int).result()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(run, store, backend, names)
        done.add_done_callback(lambda _: MAIN.end())
        MAIN.serve()
        done.result()


if __name__ == "__main__":
    main()

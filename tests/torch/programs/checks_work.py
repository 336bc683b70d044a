# SPDX-License-Identifier: Apache-2.0
"""What an asynchronous call returns: waiting, futures and what is chained to them, results, errors, order, sequence
numbers; and what the profiler, the counters and the flight recorder saw."""
import datetime
import gc
import os
import tempfile
import threading
import time

import expected
import torch
import torch.distributed as dist


def check_waiting(job):
    tensor = torch.ones(1000)
    work = dist.all_reduce(tensor, async_op=True)
    job.expect(work.wait() is True, "wait() says it went well")
    job.expect(work.wait() is True, "so does a second wait()")
    job.expect(work.is_completed(), "completed after wait()")
    job.expect(work.exception() is None, "no exception")
    job.expect(not job.is_ccom or work.is_success(), "success")
    job.expect_equal(work.result()[0], torch.full((1000,), float(job.ranks)), "result()")
    job.expect(work.result()[0].data_ptr() == tensor.data_ptr(), "result() is the tensor itself")


def check_waiting_without_waiting(job):
    """Polling alone brings an operation to its end."""
    work = dist.all_reduce(torch.ones(1 << 20), async_op=True)
    end = time.monotonic() + 10
    while not work.is_completed() and time.monotonic() < end:
        time.sleep(1e-3)
    job.expect(work.is_completed(), "an operation that nobody waits for does not end")


def check_waiting_in_many_threads(job):
    work = dist.all_reduce(torch.ones(1 << 18), async_op=True)
    came = []
    threads = [threading.Thread(target=lambda: came.append(work.wait())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    job.expect(came == [True] * 8, f"waits of eight threads: {came}")


@expected.of_ccom
def check_wait_with_a_timeout(job):
    if job.ranks == 1:
        return
    if job.rank == 0:
        job.store.wait([f"ran out/{job.ranks}/{rank}" for rank in range(1, job.ranks)])
    tensor = torch.ones(10)
    work = dist.all_reduce(tensor, async_op=True)
    if job.rank != 0:
        begin = time.monotonic()
        job.expect_error(lambda: work.wait(datetime.timedelta(milliseconds=100)), "wait(100 ms)")
        job.expect(time.monotonic() - begin < 0.7, "wait(100 ms) took too long")
        job.store.set(f"ran out/{job.ranks}/{job.rank}", "")
    work.wait()
    job.expect_equal(tensor, torch.full((10,), float(job.ranks)), "the sum after a wait that ran out")


def check_futures(job):
    tensor = torch.ones(1000)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    value = future.wait()
    is_tensor = isinstance(value, list) and value[0].data_ptr() == tensor.data_ptr()
    job.expect(is_tensor, f"the future's value is {type(value)}")
    job.expect_equal(value[0], torch.full((1000,), float(job.ranks)), "the future's tensor")
    job.expect(future.done(), "done")


def check_chained_futures(job):
    tensor = torch.ones(1000)
    chain = dist.all_reduce(tensor, async_op=True).get_future().then(lambda each: each.value()[0] * 2)
    chain = chain.then(lambda each: each.value().sum())
    job.expect(chain.wait().item() == 2000 * job.ranks, f"then(): {chain.value()}")
    seen = []
    future = dist.broadcast(tensor, 0, async_op=True).get_future()
    future.add_done_callback(lambda each: seen.append(threading.current_thread().name))
    future.wait()
    end = time.monotonic() + 5
    while not seen and time.monotonic() < end:
        time.sleep(1e-3)
    job.expect(len(seen) == 1, "add_done_callback was called once")
    failing = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda each: 1 / 0)
    job.expect_error(failing.wait, "an error in then()", "division by zero")


def check_collectives_inside_then(job):
    """A callback may start the next operation, and wait for it (PowerSGD does)."""
    def again(future):
        tensor = future.value()[0]
        return dist.all_reduce(tensor, async_op=True).get_future().wait()[0]

    chained = dist.all_reduce(torch.ones(100), async_op=True).get_future().then(again)
    job.expect_equal(chained.wait(), torch.full((100,), float(job.ranks ** 2)), "a sum of sums")


def check_collected_futures(job):
    futures = [dist.all_reduce(torch.full((10,), float(number)), async_op=True).get_future() for number in range(20)]
    values = torch.futures.collect_all(futures).wait()
    found = [each.value()[0][0].item() for each in values]
    job.expect(found == [number * job.ranks for number in range(20)], f"collect_all: {found}")


@expected.of_ccom
def check_many_under_way_keep_their_order(job):
    """Gloo runs two at a time."""
    tensor = torch.ones(50_000)
    works = [dist.all_reduce(tensor, async_op=True) for _ in range(3)]  # each multiplies by the number of ranks
    works.append(dist.broadcast(tensor, 0, async_op=True))
    dist.all_reduce(tensor)
    job.expect(all(work.is_completed() for work in works), "a synchronous call overtook asynchronous ones")
    expected.wait(works)
    job.expect_equal(tensor, torch.full((50_000,), float(job.ranks ** 4)), "operations on one tensor, in order")


def check_tensors_live_as_long_as_their_operation(job):
    works = []
    for _ in range(20):
        tensor = torch.ones(200_000)
        works.append(dist.all_reduce(tensor, async_op=True))
        del tensor
    gc.collect()
    for work in works:
        work.wait()
        job.expect(work.result()[0][0].item() == job.ranks, "a tensor that only its operation held")
    for _ in range(20):
        dist.all_reduce(torch.ones(200_000), async_op=True)  # the works are dropped too
    gc.collect()
    dist.barrier()


def check_sequence_numbers(job):
    """Of the group; torch asks backends that it does not bring only from 2.14 on, so ccom's own is asked here."""
    group = dist.group.WORLD._get_backend(torch.device("cpu")) if job.is_ccom else dist.group.WORLD
    first = group._get_sequence_number_for_group()
    for _ in range(5):
        dist.all_reduce(torch.ones(3))
    dist.all_reduce(torch.ones(3), async_op=True).wait()
    moved = group._get_sequence_number_for_group() - first
    job.expect(moved == 6, f"the sequence number moved by {moved} in six calls")
    if not job.is_ccom:
        return  # it counts messages too
    everyones = [torch.zeros(1, dtype=torch.int64) for _ in range(job.ranks)]
    dist.all_gather(everyones, torch.tensor([first]))
    job.expect(len({each.item() for each in everyones}) == 1, f"ranks are at {everyones}")


TITLES = {
    "all_reduce": lambda n: dist.all_reduce(torch.ones(8)),
    "broadcast": lambda n: dist.broadcast(torch.ones(8), 0),
    "reduce": lambda n: dist.reduce(torch.ones(8), 0),
    "all_gather": lambda n: dist.all_gather([torch.ones(8) for _ in range(n)], torch.ones(8)),
    "all_to_all": lambda n: dist.all_to_all_single(torch.ones(8 * n), torch.ones(8 * n)),
    "barrier": lambda n: dist.barrier(),
}


def check_profiler_titles(job):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for call in TITLES.values():
            call(job.ranks)
        dist.all_reduce(torch.ones(16), async_op=True).wait()
        if job.is_ccom:
            dist.reduce_scatter_tensor(torch.ones(8), torch.ones(8 * job.ranks))
            dist.all_gather_into_tensor(torch.ones(8 * job.ranks), torch.ones(8))
            dist.gather(torch.ones(8), [torch.ones(8) for _ in range(job.ranks)] if job.rank == 0 else None)
            dist.scatter(torch.ones(8), [torch.ones(8) for _ in range(job.ranks)] if job.rank == 0 else None)
    events = {}
    for event in profiler.events():
        events.setdefault(event.name, []).append(event)
    wanted = [f"{job.backend}:{name}" for name in TITLES if name != "barrier" or job.is_ccom]
    wanted += ["ccom:reduce_scatter", "ccom:gather", "ccom:scatter"] if job.is_ccom else []
    for title in wanted:
        job.expect(title in events, f"the profile has no {title}; it has {sorted(events)}")
    sums = events.get(f"{job.backend}:all_reduce", [])
    job.expect(len(sums) == 2, f"{len(sums)} events for two all_reduce")
    job.expect([[8]] in [event.input_shapes for event in sums], f"shapes {[event.input_shapes for event in sums]}")
    job.expect(all(event.is_async for event in sums), "events of collectives are asynchronous ones")
    if job.is_ccom:
        job.expect("record_param_comms" in events, "the profile has no record_param_comms")


@expected.of_ccom
def check_counters(job):
    import ccom.torch

    def counters():
        return {entry["op"]: entry for entry in ccom.torch.stats()}

    before = counters()
    for _ in range(3):
        dist.all_reduce(torch.ones(1000))
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    work.wait()
    after = counters()["ALLREDUCE"]
    first = before.get("ALLREDUCE", {"count": 0, "bytes": 0, "seconds": 0.0, "waited_seconds": 0.0})
    job.expect(set(after) == {"op", "count", "bytes", "seconds", "waited_seconds"}, f"fields {sorted(after)}")
    job.expect(after["count"] - first["count"] == 4, f"{after['count'] - first['count']} calls counted")
    job.expect(after["bytes"] - first["bytes"] == 16_000, f"{after['bytes'] - first['bytes']} bytes counted")
    job.expect(0 < after["seconds"] - first["seconds"] < 20, "seconds counted")
    job.expect(0 < after["waited_seconds"] - first["waited_seconds"] < 20, "waited seconds counted")


@expected.of_ccom
def check_flight_recorder(job):
    import pickle

    from ccom.torch import flight_recorder

    dist.all_reduce(torch.ones(7, 3))
    with tempfile.TemporaryDirectory() as folder:
        path = flight_recorder.dump(os.path.join(folder, "trace_"))
        with open(path, "rb") as file:
            trace = pickle.load(file)
    last = [entry for entry in trace["entries"] if entry["ccom_name"] == "ccom:all_reduce"][-1]
    job.expect(last["input_sizes"] == [[7, 3]] and last["state"] == "completed", f"last entry: {last}")


def check_data_parallel_hooks(job):
    """DDP with torch's own communication hooks: each chains futures in another way. One bucket: PowerSGD's callbacks
    run in a thread of their own, and those of two buckets would start their operations in any order."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    from torch.nn.parallel import DistributedDataParallel

    def gradients(register):
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)))
        register(model)
        for step in range(4):
            model.zero_grad()
            model(torch.full((4, 64), float(job.rank + step))).square().mean().backward()
        return torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters()])

    plain = gradients(lambda model: None)
    by_hook = gradients(lambda model: model.register_comm_hook(None, default_hooks.allreduce_hook))
    job.expect_close(by_hook, plain, "allreduce_hook", ulps=64)
    by_hook = gradients(lambda model: model.register_comm_hook(None, default_hooks.fp16_compress_hook))
    difference = ((by_hook - plain).norm() / plain.norm()).item()
    job.expect(difference < 0.01, f"fp16_compress_hook: gradients differ by {difference}")
    state = powerSGD_hook.PowerSGDState(process_group=None, matrix_approximation_rank=64, start_powerSGD_iter=2,
                                        min_compression_rate=0.1)
    by_hook = gradients(lambda model: model.register_comm_hook(state, powerSGD_hook.powerSGD_hook))
    difference = ((by_hook - plain).norm() / plain.norm()).item()
    job.expect(difference < 0.05, f"powerSGD_hook: gradients differ by {difference}")


def check_uneven_data(job):
    """DDP's join(): ranks with less data shadow the others' operations."""
    from torch.nn.parallel import DistributedDataParallel

    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 8))
    with model.join():
        for _ in range(2 + job.rank):
            model(torch.ones(2, 8)).sum().backward()
    everyones = [torch.empty(8, 8) for _ in range(job.ranks)]
    dist.all_gather(everyones, model.module.weight.detach())
    job.expect(all(torch.equal(each, everyones[0]) for each in everyones), "weights after join()")

# SPDX-License-Identifier: Apache-2.0
"""send, recv, isend, irecv: types, tags, any source, order, batches, objects, and beside collectives."""
import time

import expected
import torch
import torch.distributed as dist

FEWEST_RANKS = 2


def ring(job):
    return (job.rank + 1) % job.ranks, (job.rank - 1) % job.ranks


def check_blocking_messages_of_every_type(job):
    to, source = ring(job)
    for dtype in expected.ALL:
        if not job.is_ccom and not expected.gloo_moves(dtype):
            continue
        mine, received = expected.values(job.rank, (9, 4), dtype), torch.zeros(9, 4, dtype=dtype)
        if job.rank == 0:
            dist.send(mine, to)
            dist.recv(received, source)
        else:
            dist.recv(received, source)
            dist.send(mine, to)
        job.expect_equal(received, expected.values(source, (9, 4), dtype), f"a message of {dtype}")


def check_messages_of_any_size(job):
    to, source = ring(job)
    for count in (0, 1, 2, 1000, 1023, 1024, 1025, 4096, 65_537, 3_000_001):
        received = torch.zeros(count, dtype=torch.int32)
        works = [dist.isend(torch.arange(count, dtype=torch.int32) + job.rank, to), dist.irecv(received, source)]
        expected.wait(works)
        sent = torch.arange(count, dtype=torch.int32) + source
        job.expect_equal(received, sent, f"a message of {count} numbers")


def check_messages_with_one_tag_keep_their_order(job):
    to, source = ring(job)
    sends = [dist.isend(torch.tensor([number, job.rank]), to, tag=5) for number in range(200)]
    received = [torch.zeros(2, dtype=torch.int64) for _ in range(200)]
    expected.wait([dist.irecv(tensor, source, tag=5) for tensor in received] + sends)
    sent = [[number, source] for number in range(200)]
    job.expect([tensor.tolist() for tensor in received] == sent, "the order of messages")


def check_tags_choose_messages(job):
    to, source = ring(job)
    sends = [dist.isend(torch.full((10,), float(100 * tag + job.rank)), to, tag=tag) for tag in (1, 2, 3)]
    for tag in (3, 1, 2):
        received = torch.zeros(10)
        dist.recv(received, source, tag=tag)
        job.expect_equal(received, torch.full((10,), float(100 * tag + source)), f"the message with tag {tag}")
    expected.wait(sends)


def check_receive_from_anybody(job):
    if job.rank == 0:
        seen = set()
        for _ in range(job.ranks - 1):
            received = torch.zeros(4)
            source = dist.recv(received, tag=9)
            job.expect_equal(received, torch.full((4,), float(source)), f"a message from anybody, {source}")
            seen.add(source)
        job.expect(seen == set(range(1, job.ranks)), f"messages came from {seen}")
        work = dist.irecv(received, tag=10)
        work.wait()
        job.expect(work._source_rank() == job.ranks - 1, f"irecv from anybody says it came from {work._source_rank()}")
    else:
        dist.send(torch.full((4,), float(job.rank)), 0, tag=9)
        if job.rank == job.ranks - 1:
            dist.send(torch.ones(4), 0, tag=10)
    dist.barrier()


def check_batches(job):
    to, source = ring(job)
    received = [torch.zeros(50_000), torch.zeros(3)]
    operations = [
        dist.P2POp(dist.isend, torch.full((50_000,), float(job.rank)), to),
        dist.P2POp(dist.irecv, received[0], source),
        dist.P2POp(dist.isend, torch.full((3,), float(-job.rank)), source),
        dist.P2POp(dist.irecv, received[1], to),
    ]
    expected.wait(dist.batch_isend_irecv(operations))
    job.expect_equal(received[0], torch.full((50_000,), float(source)), "a batch, to the right")
    job.expect_equal(received[1], torch.full((3,), float(-to)), "a batch, to the left")


@expected.of_ccom
def check_the_future_of_a_batch_that_nobody_waits_for(job):
    """It never had a value, and the batch's work no result, before wait()."""
    to, source = ring(job)
    received = torch.zeros(50_000)
    operations = [dist.P2POp(dist.isend, torch.full((50_000,), float(job.rank)), to),
                  dist.P2POp(dist.irecv, received, source)]
    work = dist.batch_isend_irecv(operations)[-1]
    future, end = work.get_future(), time.monotonic() + 10
    while not future.done() and time.monotonic() < end:
        time.sleep(1e-3)
    job.expect(future.done() and work.is_success(), "a batch that nobody waits for does not end")
    job.expect_equal(work.result()[0], torch.full((50_000,), float(source)), "result() of a batch")
    dist.barrier()


def check_everybody_to_everybody_while_collectives_run(job):
    received = {peer: torch.zeros(20_000) for peer in range(job.ranks) if peer != job.rank}
    receives = [dist.irecv(tensor, peer, tag=1) for peer, tensor in received.items()]
    sums = [torch.ones(10_000) for _ in range(10)]
    # Gloo runs two calls at a time, in no order.
    again = sums if job.is_ccom else [torch.full((10_000,), float(job.ranks)) for _ in range(10)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in sums]
    sends = [dist.isend(torch.full((20_000,), float(job.rank)), peer, tag=1) for peer in received]
    works += [dist.all_reduce(tensor, async_op=True) for tensor in again]
    expected.wait(sends + receives + works)
    for peer, tensor in received.items():
        job.expect_equal(tensor, torch.full((20_000,), float(peer)), f"a message from {peer} beside collectives")
    for tensor in again:
        job.expect_equal(tensor, torch.full((10_000,), float(job.ranks ** 2)), "a sum beside messages")


def check_a_receive_that_is_posted_long_before_its_message(job):
    """Collectives go on while a receive waits, though all ranks but one have nothing to do with it."""
    received = torch.zeros(5)
    work = dist.irecv(received, 1, tag=77) if job.rank == 0 else None
    for _ in range(5):
        tensor = torch.ones(1000)
        dist.all_reduce(tensor)
    if job.rank == 0:
        job.expect(not work.is_completed(), "a receive ended before its message was sent")
    dist.barrier()
    if job.rank == 1:
        dist.send(torch.full((5,), 3.0), 0, tag=77)
    if job.rank == 0:
        work.wait()
        job.expect_equal(received, torch.full((5,), 3.0), "a message that came late")


@expected.of_ccom
def check_strided_messages(job):
    to, source = ring(job)
    whole = torch.full((4, 12), -7.0)
    works = [dist.isend(expected.values(job.rank, (6, 4), torch.float).t(), to), dist.irecv(whole[:, ::2], source)]
    expected.wait(works)
    sent = expected.values(source, (6, 4), torch.float).t().contiguous()
    job.expect_equal(whole[:, ::2].contiguous(), sent, "a strided message")
    job.expect(bool((whole[:, 1::2] == -7).all()), "a receive wrote between the elements of its tensor")


def check_object_messages(job):
    things = [{"rank": 0}, "words", list(range(1000))]
    if job.rank == 0:
        dist.send_object_list(things, job.ranks - 1)
    elif job.rank == job.ranks - 1:
        found = [None] * 3
        source = dist.recv_object_list(found, 0)
        job.expect(found == things and source == 0, f"objects from {source}: {str(found)[:100]}")
    dist.barrier()


def check_messages_inside_a_group(job):
    """Ranks of a message are those of the whole job, unless group_dst and group_src say otherwise."""
    if job.ranks < 3:
        return
    members = [job.ranks - 1, 0]
    group = dist.new_group(members)
    if job.rank == job.ranks - 1:
        dist.send(torch.tensor([1.0]), 0, group=group)
        dist.send(torch.tensor([2.0]), group=group, group_dst=dist.get_group_rank(group, 0))
    if job.rank == 0:
        received = torch.zeros(1)
        dist.recv(received, job.ranks - 1, group=group)
        job.expect_equal(received, torch.tensor([1.0]), "a message inside a group")
        source = dist.recv(received, group=group)
        job.expect(source == job.ranks - 1, f"a message from anybody inside a group came from {source}")
    if job.rank in members and job.is_ccom:
        dist.destroy_process_group(group)


@expected.of_ccom
def check_a_receive_that_nobody_answers_times_out(job):
    import datetime

    if job.rank == 0:
        work = dist.irecv(torch.zeros(3), 1, tag=99)
        job.expect_error(lambda: work.wait(datetime.timedelta(milliseconds=300)), "wait with a timeout")
    job.meet("late receive")
    if job.rank == 1:
        dist.send(torch.ones(3), 0, tag=99)
    dist.barrier()

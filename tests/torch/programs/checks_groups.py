# SPDX-License-Identifier: Apache-2.0
"""Groups: parts of the job, overlapping ones, many, with local synchronisation; ending and beginning again."""
import datetime
import os

import expected
import torch
import torch.distributed as dist


def total(job, group, expected, what):
    tensor = torch.full((100,), float(job.rank + 1))
    dist.all_reduce(tensor, group=group)
    job.expect_equal(tensor, torch.full((100,), float(expected)), what)


def end(job, *groups):
    """Gloo's groups stay: see leave.py."""
    for group in groups:
        if job.is_ccom and group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)


def check_local_synchronisation(job):
    """Only the members call new_group. The first check: torch names such a group by how many groups a rank is in, so
    that its members must be in equally many."""
    members = [rank for rank in range(job.ranks) if rank >= job.ranks // 2]
    if job.rank in members:
        group = dist.new_group(members, use_local_synchronization=True)
        total(job, group, sum(rank + 1 for rank in members), "sum in the upper half")
        end(job, group)


def check_a_group_of_some_ranks(job):
    members = list(range(0, job.ranks, 2))
    group = dist.new_group(members)
    if job.rank in members:
        total(job, group, sum(rank + 1 for rank in members), "sum in a group of even ranks")
        job.expect(dist.get_world_size(group) == len(members), "size of the group")
        job.expect(dist.get_rank(group) == members.index(job.rank), "rank in the group")
        job.expect(dist.get_process_group_ranks(group) == members, "members of the group")
        tensor = torch.tensor([float(job.rank)])
        dist.broadcast(tensor, members[-1], group=group)
        job.expect_equal(tensor, torch.tensor([float(members[-1])]), "broadcast in a group from a rank of the job")
    total(job, None, job.ranks * (job.ranks + 1) / 2, "sum over all beside the group")
    end(job, group)


def check_overlapping_groups(job):
    pairs = {(a, b): dist.new_group([a, b]) for a in range(job.ranks) for b in range(a + 1, job.ranks)}
    works = []
    for (a, b), group in pairs.items():
        if job.rank in (a, b):
            tensor = torch.full((1000,), float(job.rank + 1))
            works.append((dist.all_reduce(tensor, group=group, async_op=True), tensor, a + b + 2))
    for work, tensor, result in works:
        work.wait()
        job.expect_equal(tensor, torch.full((1000,), float(result)), "sum of a pair")
    end(job, *pairs.values())


def check_groups_of_one_member(job):
    group = dist.new_group([job.rank], use_local_synchronization=True)
    total(job, group, job.rank + 1, "sum of one")
    everyone = [None]
    dist.all_gather_object(everyone, "me", group=group)
    job.expect(everyone == ["me"], "objects of one")
    end(job, group)


def check_ranks_in_any_order(job):
    group = dist.new_group(list(range(job.ranks))[::-1])
    total(job, group, job.ranks * (job.ranks + 1) / 2, "sum in a group whose ranks were given backwards")
    end(job, group)


def check_subgroups(job):
    if job.ranks % 2:
        return
    mine, all_of_them = dist.new_subgroups(2)
    first = job.rank // 2 * 2
    total(job, mine, 2 * first + 3, "sum in a subgroup of two")
    end(job, *all_of_them)


def check_meshes(job):
    from torch.distributed.device_mesh import init_device_mesh

    if job.ranks != 4:
        return
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("rows", "columns"))
    total(job, mesh.get_group("columns"), 3 if job.rank < 2 else 7, "sum along a row of the mesh")
    total(job, mesh.get_group("rows"), 4 if job.rank % 2 == 0 else 6, "sum along a column of the mesh")


def check_many_groups(job):
    groups = [dist.new_group(list(range(job.ranks))) for _ in range(20)]
    works = []
    for number, group in enumerate(groups):
        tensor = torch.full((10,), float(number))
        works.append((dist.all_reduce(tensor, group=group, async_op=True), tensor, number))
    for work, tensor, number in works:
        work.wait()
        job.expect_equal(tensor, torch.full((10,), float(number * job.ranks)), f"sum in group {number}")
    end(job, *groups)


@expected.of_ccom
def check_another_backend_beside(job):
    beside = dist.new_group(backend="gloo")
    total(job, beside, job.ranks * (job.ranks + 1) / 2, "sum with gloo beside ccom")
    total(job, None, job.ranks * (job.ranks + 1) / 2, "sum with ccom beside gloo")
    job._kept.append(beside)


def check_what_a_group_says_of_itself(job):
    job.expect(dist.get_backend() == job.backend, f"get_backend says {dist.get_backend()}")
    job.expect(dist.get_rank() == job.rank and dist.get_world_size() == job.ranks, "rank and size")
    if job.is_ccom:
        import ccom.torch

        backend = ccom.torch.backend_of()
        job.expect(backend.name() == "ccom", f"the backend calls itself {backend.name()}")
        job.expect((backend.rank(), backend.size()) == (job.rank, job.ranks), "the backend's rank and size")
        job.expect(backend.options._timeout == datetime.timedelta(seconds=20), f"timeout {backend.options._timeout}")


@expected.of_ccom
def check_a_device_string(job):
    """"cpu:ccom" as a backend."""
    group = dist.new_group(backend="cpu:ccom")
    total(job, group, job.ranks * (job.ranks + 1) / 2, "sum in a cpu:ccom group")
    end(job, group)


@expected.of_ccom
def check_ending_and_beginning_again(job):
    """Five times in one process, each time with an operation, once with a barrier, once without anything."""
    for number in range(5):
        job.end_group()
        job.expect(not dist.is_initialized(), "still initialised after destroy_process_group")
        job.start_group()
        if number % 2 == 0:
            total(job, None, job.ranks * (job.ranks + 1) / 2, f"sum in life {number}")
        elif number == 1:
            dist.barrier()


@expected.of_ccom
def check_beginning_again_on_the_same_store(job):
    """As a script does that calls init_process_group twice: torch uses the same keys again."""
    for _ in range(3):
        job.end_group()
        os.environ["TORCHELASTIC_RESTART_COUNT"] = "0"
        dist.init_process_group(job.backend, timeout=datetime.timedelta(seconds=20))
        total(job, None, job.ranks * (job.ranks + 1) / 2, "sum on keys that were used before")
    job.end_group()
    job.start_group()


@expected.of_ccom
def check_the_timeout_can_be_changed(job):
    import ccom.torch

    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=17), dist.group.WORLD)
    ccom.torch.backend_of()._set_default_timeout(datetime.timedelta(seconds=18))
    job.expect(ccom.torch.backend_of().options._timeout == datetime.timedelta(seconds=18), "timeout")
    total(job, None, job.ranks * (job.ranks + 1) / 2, "sum after a change of the timeout")
    ccom.torch.backend_of()._set_default_timeout(datetime.timedelta(seconds=20))


@expected.of_ccom
def check_groups_are_parts_of_the_default_one(job):
    """On one host they take no descriptor, but one for a process that first leads a group: their ranks meet over the
    links that there are. Operations of the default group that are still under way come first, on all ranks."""
    if not job.one_host:
        return
    dist.new_group(list(range(job.ranks)))  # what a first group takes
    before = len(os.listdir("/proc/self/fd"))
    groups = []
    for _ in range(8):
        tensor = torch.full((1000,), float(job.rank + 1))
        work = dist.all_reduce(tensor, async_op=True)
        groups.append(dist.new_group(list(reversed(range(job.ranks)))))
        total(job, groups[-1], job.ranks * (job.ranks + 1) / 2, "sum of a group made beside an operation")
        work.wait()
        job.expect_equal(tensor, torch.full((1000,), job.ranks * (job.ranks + 1) / 2), "sum beside a new group")
    job.expect(len(os.listdir("/proc/self/fd")) <= before + 2, "eight groups took descriptors")
    end(job, *groups)

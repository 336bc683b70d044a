# SPDX-License-Identifier: Apache-2.0
"""torch.distributed.shrink_group: ranks go on in the same processes after others have died.

programs/shrink.py asserts that what is left works; here, who ends how and what they are told. test_collectives.py runs
all calls on what is left, test_examples.py a training.
"""
import functools

import launch
import pytest
import torch
from launch import HOSTS

HAS_SHRINK = hasattr(torch.distributed, "shrink_group")
pytestmark = [pytest.mark.ccom, pytest.mark.skipif(not HAS_SHRINK, reason="this torch has no shrink_group")]


def survivors(case, *arguments, victims=(), **more):
    """What the survivors told, by the rank that they were started as."""
    finished = launch.ranks("shrink.py", case, *arguments, count=4, timeout=90, succeeds=None, **more)
    assert finished.codes == [-9 if rank in victims else 0 for rank in range(4)], finished.output
    return {entry["rank"]: entry for entry in finished.told}


@pytest.fixture(params=HOSTS)
def go_on(request):
    return functools.partial(survivors, per_rank=HOSTS[request.param])


def test_one_death_after_another(go_on):
    assert go_on("one_death_after_another", victims=(0, 1, 3)) == {2: {"rank": 2, "left": 1, "started_as": 2}}


def test_a_list_that_lacks_a_dead_rank_is_refused_and_the_right_one_works_then(go_on):
    told = go_on("more_have_died_than_listed", victims=(1, 2))
    assert sorted(told) == [0, 3]
    for entry in told.values():
        assert "rank 2 died too" in entry["told"] and "shrink_group([1, 2])" in entry["told"], entry


def test_different_lists_are_an_error_on_all_ranks(go_on):
    told = go_on("lists_differ", victims=(3,))
    assert sorted(told) == [0, 1, 2]
    # A rank that another one's list names may come after that one has gone on without it.
    texts = ("with other arguments", "have gone on without")
    assert all(any(text in entry["told"] for text in texts) for entry in told.values()), told


def test_a_rank_that_lives_can_be_left_out(go_on):
    assert {rank: entry["left"] for rank, entry in go_on("a_rank_leaves").items()} == {0: 3, 2: 3, 3: 3}


def test_torchrun_lets_a_rank_be_left_out_that_stays_until_all_are_done():
    finished = launch.torchrun("shrink.py", "a_rank_leaves", count=4)
    assert {entry["rank"]: entry["left"] for entry in finished.told} == {0: 3, 2: 3, 3: 3}, finished.output


def test_abort_ends_what_waits(go_on):
    told = go_on("abort_ends_what_waits")
    assert sorted(told) == [0, 1, 2]
    assert all("rank 1 revoked" in told[rank]["told"] for rank in (0, 2)), told


def test_a_part_can_go_on_before_the_default_group(go_on):
    assert {rank: entry["left"] for rank, entry in go_on("a_part", victims=(3,)).items()} == {0: 3, 1: 3, 2: 3}


@pytest.mark.parametrize("name", ["ccom", "gloo"])
def test_new_groups_do_not_meet_the_keys_of_earlier_ones(name, go_on):
    replaced = {"CCOM_TORCH_REPLACE_GLOO": "1"} if name == "gloo" else {}
    told = go_on("groups_after_it", name, victims=(1,), environment=replaced)
    assert sorted(told) == [0, 2, 3]
    assert all(entry["seconds"] < 15 for entry in told.values()), told


def test_ddp_goes_on(go_on):
    told = go_on("ddp", victims=(2,))
    assert sorted(told) == [0, 1, 3]
    assert all("rank 2" in entry["told"] for entry in told.values()), told


def test_who_does_not_come_is_named_and_may_come_later(go_on):
    told = go_on("others_are_late", victims=(3,))
    assert sorted(told) == [0, 1, 2]
    for rank, entry in told.items():
        assert "rank 0 did not come" in entry["told"], entry
        assert rank == 0 or entry["ticks"] > 100, f"Python stood still while rank {rank} waited: {entry}"


def test_a_store_that_died_too_is_told(go_on):
    told = go_on("the_store_dies_too", victims=(0,))
    assert sorted(told) == [1, 2, 3]
    assert all("the store has gone" in entry["told"] and entry["seconds"] < 5 for entry in told.values()), told

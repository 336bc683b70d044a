# SPDX-License-Identifier: Apache-2.0
"""New processes join a default group that runs: ccom.torch.grow_group and join_group, and shrink_group before them.

programs/members.py asserts that what there is then works. test_shrink.py has deaths alone, test_examples.py trainings.
"""
import launch
import pytest
from launch import HOSTS

pytestmark = pytest.mark.ccom


def told(case, *arguments, founders, new, victims=(), per_rank=HOSTS["one host"], environment=None):
    """What the processes told that are left, by the rank that they were started as."""
    finished = launch.ranks("members.py", case, *arguments, count=founders + new, timeout=120, succeeds=None,
                            per_rank=per_rank, environment={"FOUNDERS": str(founders), **(environment or {})})
    assert finished.codes == [-9 if rank in victims else 0 for rank in range(founders + new)], finished.output
    return {entry["rank"]: entry for entry in finished.told}


@pytest.mark.parametrize("hosts", HOSTS)
def test_ranks_die_and_new_ones_come(hosts):
    found = told("deaths_and_new_ones", founders=4, new=3, victims=(0, 1, 3), per_rank=HOSTS[hosts])
    assert {rank: entry["now"] for rank, entry in found.items() if rank in (2, 4)} == {2: 0, 4: 1}
    assert sorted(found) == [2, 4, 5, 6] and all(entry["size"] == 4 for entry in found.values())


@pytest.mark.parametrize("way", ["ccom", "gloo", "detail"])
def test_a_group_of_one_grows_by_one_after_the_other(way):
    environment = {"ccom": {}, "gloo": {"CCOM_TORCH_REPLACE_GLOO": "1"},
                   "detail": {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}}
    found = told("one_after_the_other", "gloo" if way == "gloo" else "ccom", founders=1, new=2,
                 environment=environment[way])
    assert [found[rank]["size"] for rank in range(3)] == [3, 3, 3]
    assert {entry["backend"] for entry in found.values()} == {"gloo" if way == "gloo" else "ccom"}


def test_a_process_that_died_while_it_waited_does_not_end_the_group():
    found = told("who_died_while_it_waited", founders=2, new=2, victims=(2,))
    assert sorted(found) == [0, 1, 3]
    for rank in (0, 1):
        assert "ccom grow of group" in found[rank]["told"], found


def test_wrong_calls_are_told_why():
    found = told("wrong_calls", founders=2, new=0)
    for entry in found.values():
        no_group, no_shrink, too_late, too_many, again = entry["told"]
        assert "there is no default group" in no_group and "there is no default group" in no_shrink
        assert "nobody has called grow_group within" in too_late
        assert "2 new processes are to come, 0 wait" in too_many
        assert "has a default group already" in again

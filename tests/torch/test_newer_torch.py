# SPDX-License-Identifier: Apache-2.0
"""What torch 2.14 and 2.15 added for backends: reconfigure, hooks, gather into one tensor. With an older torch nothing
runs; scripts/test-torches makes environments with these versions."""
import launch
import pytest
import torch
import torch.distributed as dist

pytestmark = pytest.mark.ccom
has_reconfigure = pytest.mark.skipif(not hasattr(dist, "_reconfigure"), reason="this torch has no reconfigure")
has_hooks = pytest.mark.skipif(not hasattr(dist.distributed_c10d, "_maybe_attach_flight_recorder"),
                               reason="this torch has no recorder of its own for all backends")
has_abort_hooks = pytest.mark.skipif(not hasattr(torch._C._distributed_c10d.Backend, "register_abort_hook"),
                                     reason="this torch has no abort hooks")
has_gather_single = pytest.mark.skipif(not hasattr(dist, "gather_single"), reason="this torch has no gather_single")


def reconfigured(case, count, victims=()):
    finished = launch.ranks("reconfigure.py", case, count=count, timeout=120, succeeds=None)
    assert finished.codes == [-9 if rank in victims else 0 for rank in range(count)], finished.output
    return {entry["rank"]: entry for entry in finished.told}


@has_reconfigure
def test_members_change_by_reconfigure():
    found = reconfigured("members_change", 5, victims=(3,))
    assert sorted(found) == [0, 1, 2, 4] and all(entry["size"] == 4 for entry in found.values())


@has_reconfigure
def test_two_jobs_become_one_by_reconfigure():
    assert sorted(reconfigured("two_jobs_become_one", 4)) == [0, 1, 2, 3]


@has_reconfigure
def test_a_wrong_reconfigure_changes_nothing():
    found = reconfigured("what_is_wrong_changes_nothing", 3)
    for rank, entry in found.items():
        none, foreign, twice, without, alone, again = entry["told"]
        assert "needs a handle for each member" in none and "is not a handle" in foreign and "is there twice" in twice
        assert "is not among those of the 1 members" in without
        assert rank != 1 or "within 1000 ms" in alone, entry
        assert "has been used" in again if rank == 0 else "within 2000 ms" in again, entry


@has_hooks
def test_torchs_own_flight_recorder_sees_which_calls_are_complete():
    finished = launch.ranks("recorded.py", count=2, timeout=60)
    for entry in finished.told:
        assert entry["completed"] >= entry["issued"] == 12, entry


@has_gather_single
def test_gather_into_one_tensor():
    finished = launch.ranks("recorded.py", "gather", count=3, timeout=60)
    assert sorted(entry["rank"] for entry in finished.told) == [0, 1, 2]


@has_abort_hooks
def test_abort_hooks_are_called_before_the_error_is_told():
    for entry in launch.ranks("recorded.py", "abort", count=2, timeout=60).told:
        assert entry["before"] == [] and entry["called"] == ["kept"], entry

# SPDX-License-Identifier: Apache-2.0
"""ccom.torch.tensorboard: the arithmetic of its figures, and event files of a real job read back by TensorBoard."""
import os

import launch
import pytest

pytestmark = pytest.mark.ccom


def test_differences_of_counters():
    from ccom.torch.tensorboard import difference

    before = [{"op": "ALLREDUCE", "count": 3, "bytes": 300, "seconds": 1.0, "waited_seconds": 0.5},
              {"op": "BARRIER", "count": 1, "bytes": 0, "seconds": 0.1, "waited_seconds": 0.1}]
    after = [{"op": "ALLREDUCE", "count": 5, "bytes": 700, "seconds": 1.5, "waited_seconds": 0.75}, before[1],
             {"op": "SEND", "count": 1, "bytes": 8, "seconds": 0.0, "waited_seconds": 0.0}]
    assert difference(before, after) == {
        "ALLREDUCE": {"count": 2, "bytes": 400, "seconds": 0.5, "waited_seconds": 0.25},
        "SEND": {"count": 1, "bytes": 8, "seconds": 0.0, "waited_seconds": 0.0}}


def test_bandwidths():
    from ccom.torch.tensorboard import scalars

    counters = {"count": 2, "bytes": 4_000_000_000, "seconds": 2.0, "waited_seconds": 1.0}
    values = scalars(4.0, {"ALLREDUCE": counters, "BROADCAST": counters, "_ALLGATHER_BASE": counters}, ranks=4)
    assert values["step_seconds"] == 4.0 and values["blocked_seconds"] == 3.0 and values["blocked_share"] == 0.75
    assert values["ALLREDUCE/algbw_GBps"] == 2.0 and values["ALLREDUCE/busbw_GBps"] == 3.0
    assert values["BROADCAST/busbw_GBps"] == 2.0 and values["_ALLGATHER_BASE/busbw_GBps"] == 1.5
    idle = scalars(0.0, {"BARRIER": {"count": 1, "bytes": 0, "seconds": 0.0, "waited_seconds": 0.0}}, ranks=4)
    assert idle == {"step_seconds": 0.0, "blocked_seconds": 0.0, "BARRIER/calls": 1, "BARRIER/bytes": 0}


def test_shares_of_waits():
    from ccom.torch.tensorboard import wait_scalars

    before = {"ranks": [{"rank": 2, "waited_seconds": 1.0, "made_wait_seconds": 0.5},
                        {"rank": 3, "waited_seconds": 0.0, "made_wait_seconds": 1.0}]}
    after = {"ranks": [{"rank": 2, "waited_seconds": 2.0, "made_wait_seconds": 0.5},
                       {"rank": 3, "waited_seconds": 0.0, "made_wait_seconds": 9.0}]}
    assert wait_scalars(4.0, before, after) == {
        "waits/rank2/waited_share": 0.25, "waits/rank2/made_wait_share": 0.0,
        "waits/rank3/waited_share": 0.0, "waits/rank3/made_wait_share": 1.0}
    assert wait_scalars(0.0, before, after) == {}


def events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    return {tag: [(event.step, event.value) for event in accumulator.Scalars(tag)] for tag in tags}


def require_five_steps(found, is_late):
    assert [step for step, _ in found["ccom/step_seconds"]] == list(range(5))
    assert [value for _, value in found["ccom/ALLREDUCE/calls"]] == [1, 2, 3, 4, 5]
    assert [value for _, value in found["ccom/ALLREDUCE/bytes"]] == [1e6, 2e6, 3e6, 4e6, 5e6]
    for (_, step), (_, blocked), (_, share) in zip(*(found[f"ccom/{tag}"] for tag in
                                                    ("step_seconds", "blocked_seconds", "blocked_share"))):
        assert 0.02 <= step < 5
        assert 0 < blocked < step and share == pytest.approx(blocked / step, rel=1e-4)
    assert is_late or sum(blocked for _, blocked in found["ccom/blocked_seconds"]) > 0.1
    assert [step for step, _ in found["ccom/_ALLGATHER_BASE/calls"]] == [4]
    waits = {tag: [value for _, value in found[f"ccom/waits/{tag}_share"]] for tag in
             ("rank0/waited", "rank0/made_wait", "rank1/waited", "rank1/made_wait")}
    assert all(len(values) == 5 for values in waits.values())
    assert is_late or sum(waits["rank1/made_wait"]) > sum(waits["rank0/made_wait"]), waits
    assert is_late or sum(waits["rank0/waited"]) > 0.1, waits
    for (_, algorithm), (_, bus) in zip(found["ccom/ALLREDUCE/algbw_GBps"], found["ccom/ALLREDUCE/busbw_GBps"]):
        assert algorithm > 0 and bus == pytest.approx(algorithm)  # of two ranks


@pytest.mark.parametrize("kind", ["own", "given", "everyone"])
def test_event_files_are_what_tensorboard_reads(kind, tmp_path):
    pytest.importorskip("tensorboard")
    launch.ranks("logged.py", str(tmp_path), kind, count=2)
    if kind == "everyone":
        assert sorted(os.listdir(tmp_path)) == ["rank0", "rank1"]
        require_five_steps(events(tmp_path / "rank0"), is_late=False)
        require_five_steps(events(tmp_path / "rank1"), is_late=True)
        return
    files = [name for name in os.listdir(tmp_path) if name.startswith("events")]
    assert len(files) == (1 if kind == "own" else 2), files  # the program makes its writer on every rank
    found = events(tmp_path)
    assert ("mine" in found) == (kind == "given")
    require_five_steps(found, is_late=False)

# SPDX-License-Identifier: Apache-2.0
"""What happens when ranks die, disagree or are late: everybody is told soon, with names, and nothing is left behind."""
import glob
import os
import re

import launch
import pytest
from harness.processes import until
from launch import HOSTS, LONG

pytestmark = pytest.mark.ccom


def unused(folder):
    """Files of a folder that no process has mapped: those of other jobs are."""
    found = set(os.listdir(folder))
    for maps in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(maps, encoding="utf-8", errors="replace") as file:
                found -= {os.path.basename(line.rstrip()) for line in file if f"{folder}/" in line}
        except OSError:  # it has ended
            pass
    return found


KILLS = [("all_reduce", 1000, 2), ("all_reduce", 8_000_000, 0), ("async", 100_000, 3), ("future", 1000, 1),
         ("barrier", 1, 2), ("all_gather", 300_000, 1), ("message", 200_000, 2)]


@pytest.mark.parametrize("call,count,victim,hosts", [(*kill, hosts) for kill in KILLS for hosts in HOSTS])
def test_survivors_name_the_rank_that_was_killed(call, count, victim, hosts):
    finished = launch.ranks("killed.py", "--victim", str(victim), "--call", call, "--count", str(count), count=4,
                            per_rank=HOSTS[hosts], succeeds=None)
    assert finished.codes == [-9 if rank == victim else 0 for rank in range(4)], finished.output
    survivors = {entry["rank"]: entry for entry in finished.told}
    assert sorted(survivors) == [rank for rank in range(4) if rank != victim], finished.output
    for rank, entry in survivors.items():
        assert f"rank {victim}" in entry["error"], f"rank {rank} was told: {entry['error']}"
        assert "Connection closed by peer" in entry["error"], "U23: programs look for gloo's words"
        assert entry["seconds"] < 5, f"rank {rank} was told after {entry['seconds']:.1f} s"
        assert entry["again"], f"rank {rank}: the survivors' new group gave a wrong sum"


@pytest.mark.parametrize("number", range(20 if LONG else 4))
def test_torchrun_starts_a_job_again(number, tmp_path):
    done, temporary = tmp_path / "done", tmp_path / "temporary"
    temporary.mkdir()
    shared = unused("/dev/shm")
    finished = launch.torchrun("restarted.py", "--victim", str(number % 4), str(done), count=4, restarts=1,
                               environment={"TMPDIR": str(temporary)})
    assert done.read_text() == "4 ranks in life 1", finished.output
    assert not finished.left_behind, f"processes {finished.left_behind} are left"
    until(lambda: unused("/dev/shm") - shared, lambda left: not left)
    files = [name for name in os.listdir(temporary) if not name.startswith("torch")]
    assert not files, f"left among temporary files: {files}"


def leave(case, launcher, hosts, backend="ccom"):
    """What leaving.py's ranks were told, {rank: error}, and the seconds from rank 1's leaving to the end of the others.
    """
    if launcher == "torchrun with two agents":
        finished = launch.torchrun("leaving.py", case, backend, count=2, nodes=2, succeeds=None)
    elif launcher == "by hand":
        finished = launch.ranks("leaving.py", case, backend, count=3, per_rank=HOSTS[hosts], succeeds=None)
        if backend == "gloo":  # its threads may abort the process that leaves
            finished.codes[1] = 1 if finished.codes[1] == -6 else finished.codes[1]
        assert finished.codes == [1, 1 if case == "exception" else 0, 1], finished.output
    else:
        method, number = launcher.removeprefix("mp."), "2" if hosts == "two hosts" else "1"
        finished = launch.ranks("leaving.py", case, backend, method, "3", number, count=1, succeeds=None)
    left = [entry["left"] for entry in finished.told if "left" in entry]
    assert len(left) == 1, finished.output
    errors = {entry["rank"]: entry["error"] for entry in finished.told if "error" in entry}
    assert sorted(errors) == ([0, 2, 3] if launcher == "torchrun with two agents" else [0, 2]), finished.output
    others = [entry for entry in finished.told if entry.get("rank", 1) != 1]
    # What multiprocessing has forked runs no exit functions, so that only the errors' times are known.
    assert len(others) == len(errors) * (1 if launcher == "mp.fork" else 2), finished.output
    return errors, max(entry.get("ended", entry.get("told")) for entry in others) - left[0]


LAUNCHERS = [("exception", launcher, hosts) for launcher in ("by hand", "mp.spawn", "mp.fork") for hosts in HOSTS]
LAUNCHERS += [("exception", "torchrun with two agents", "two hosts")]
LAUNCHERS += [(case, "by hand", hosts) for case in ("exit_0", "destroyed") for hosts in HOSTS]


# The interpreter's own end is a part of the time.
@pytest.mark.parametrize("case,launcher,hosts", LAUNCHERS)
def test_a_rank_that_leaves_is_named_to_the_others_at_once(case, launcher, hosts):
    errors, seconds = leave(case, launcher, hosts)
    for rank, error in errors.items():
        assert re.search(r"rank 1 left the communicator after its call 5 while rank \d is in call 6 \(allreduce\)",
                         error), \
            f"rank {rank} was told: {error}"
    print(f"{case}, {launcher}, {hosts}: the others had ended after {seconds:.2f} s")
    assert seconds < 5


@pytest.mark.parametrize("launcher", ["by hand", "mp.spawn", "torchrun with two agents"])
def test_the_others_end_as_soon_as_with_gloo(launcher):
    seconds = {backend: leave("exception", launcher, "two hosts", backend)[1] for backend in ("gloo", "ccom")}
    print(f"{launcher}: {seconds}")
    assert seconds["ccom"] < 3 * seconds["gloo"] + 1


INTERRUPTED = ("synchronous", "large", "waited_for", "future", "backward", "received", "several_received", "monitored",
               "new_group")


@pytest.mark.parametrize("case,hosts", [(case, hosts) for case in INTERRUPTED for hosts in HOSTS])
def test_ctrl_c_ends_a_wait(case, hosts):
    finished = launch.ranks("interrupted.py", case, count=2, per_rank=HOSTS[hosts], succeeds=None, timeout=60)
    told = {entry["rank"]: entry for entry in finished.told}
    assert told[0]["error"].startswith("KeyboardInterrupt"), finished.output
    assert told[0]["seconds"] < 2, finished.output
    if case not in ("monitored", "new_group"):  # these have not begun anything with the other rank
        assert "rank 0 was interrupted" in told[1]["error"], finished.output


def test_ctrl_c_is_told_to_an_application_that_asked_for_it():
    finished = launch.ranks("interrupted.py", "wakeup_of_the_application", count=2, succeeds=None, timeout=60)
    told = {entry["rank"]: entry for entry in finished.told}
    assert told[0]["error"].startswith("KeyboardInterrupt") and told[0]["noticed"] == [2], finished.output


def test_a_signal_whose_handler_raises_nothing_does_not_end_a_wait():
    finished = launch.ranks("interrupted.py", "handled", count=2, timeout=60)
    told = {entry["rank"]: entry for entry in finished.told}
    assert told[0]["error"] == told[1]["error"] == "", finished.output
    assert told[0]["noticed"][0] < 1, finished.output


DIFFERENCES = {
    "shapes": ("count 10", "count 11"), "large_shapes": ("count 3000000", "count 3100000"),
    "types": ("float32", "float64"), "operators": ("sum", "max"), "roots": ("broadcast", "root"),
    "order": ("allreduce", "broadcast"), "asynchronous_order": ("allreduce", "broadcast"),
    "splits": ("entry 2 of sendcounts of rank 1 is 3, entry 1 of recvcounts of rank 2 is 2",),
    "lists": ("sendcount of rank 2 is 3, entry 2 of recvcounts of rank 1 is 4",),
    "splits_or_none": ("alltoall float32 count 2", "alltoallv float32"),
}


@pytest.mark.parametrize("hosts", HOSTS)
def test_different_calls_are_an_error_that_holds_both(hosts):
    finished = launch.ranks("differing.py", *DIFFERENCES, count=3, per_rank=HOSTS[hosts])
    entries = finished.told
    assert len(entries) == 3 * len(DIFFERENCES), finished.output
    for entry in entries:
        who = f"{entry['case']}, rank {entry['rank']} was told"
        for word in (*DIFFERENCES[entry["case"]], "rank 1"):
            assert word in entry["error"], f"{who}: {entry['error'] or 'nothing'}"
        assert entry["seconds"] < 5, f"{who} after {entry['seconds']:.1f} s"


def blames(entry, rank):
    return re.search(rf"ranks? ([0-9]+, )*{rank}\b", entry["error"]) and "Timed out" in entry["error"]


@pytest.mark.parametrize("hosts", HOSTS)
def test_a_timeout_names_who_is_late(hosts):
    entries = launch.ranks("differing.py", "late", "late_for_a_message", "late_for_a_group", count=4,
                           per_rank=HOSTS[hosts]).told
    assert len(entries) == 12
    for entry in entries:
        if entry["case"] in ("late", "late_for_a_group") and entry["rank"] != 1:
            assert blames(entry, 1) and 0.9 < entry["seconds"] < 2.4, entry
            assert "raise the group's timeout (init_process_group, new_group)" in entry["error"], entry
        assert not re.search(r"CCOM_\w*TIMEOUT", entry["error"]), entry  # does not count here
        if entry["case"] == "late_for_a_message" and entry["rank"] == 0:
            assert blames(entry, 1) and 0.9 < entry["seconds"] < 2.4, entry
            line = launch.line_of("differing.py", "# line of the receive")
            place = rf"(differing\.py:{line} \(late_for_a_message\)|Python,.*)"
            receive = r"receive from rank 1 \(tag 4, 12 bytes\), for [0-9.]+ s now"
            assert re.search(rf"rank 0 [^;]*is at {place} in {receive}", entry["error"]), entry
        assert entry["error"], f"rank {entry['rank']} was told nothing"


def test_a_timeout_says_in_which_line_of_python_every_rank_is():
    told = launch.ranks("places.py", count=4).told
    error = next(entry["error"] for entry in told if entry["rank"] == 0)
    late = launch.line_of("places.py", "# line of evaluate")
    backward = launch.line_of("places.py", "# line of step")
    assert re.search(rf"rank 3 is at places\.py:{late} \(evaluate\), not in a call, for [0-9.]+ s now", error), error
    # A rank may say instead that its line was not taken, where looks at lines would have taken too long.
    assert re.search(rf"ranks? [0-2][^;]* at places\.py:{backward} \(step\) in allreduce #[0-9]+", error), error


def test_without_call_sites_a_timeout_names_no_line():
    told = launch.ranks("places.py", count=4, per_rank=lambda rank: {"CCOM_CALL_SITES": "0"}).told
    error = next(entry["error"] for entry in told if entry["rank"] == 0)
    assert "ranks 0-2 are in allreduce" in error and "places.py" not in error, error

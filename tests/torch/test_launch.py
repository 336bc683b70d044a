# SPDX-License-Identifier: Apache-2.0
"""A rank that is forked is like one that exec has made (tests/harness/fork_server.py)."""
import re
import sys

import launch
import pytest

CODES = {"return": 0, "exit": 3, "text": 1, "exception": 1, "killed": -9, "at once": 4, "child": 0}
OF_THE_SERVER = re.compile(r'  File "(?:<string>|.*/fork_server.py)".*\n(?:    .*\n)*')


@pytest.mark.parametrize("end", CODES)
def test_forked_is_as_exec(end):
    jobs = [launch.ranks("ordinary.py", end, count=1, by_exec=by_exec, succeeds=None) for by_exec in (True, False)]
    for job in jobs:
        assert job.codes == [CODES[end]], job.output
        assert len(job.left_behind) == (end == "child")
    by_exec, forked = jobs
    assert forked.told == by_exec.told
    assert OF_THE_SERVER.sub("", forked.output) == by_exec.output


def test_a_variable_that_is_read_by_the_import_is_in_time():
    command = [sys.executable, "program.py"]
    server = launch.fork_server()
    assert server.can_start(command, {**server.environment, "RANK": "1"})
    assert not server.can_start(command, {**server.environment, "TORCH_DISTRIBUTED_DEBUG": "DETAIL"})
    assert not server.can_start(command, {**server.environment, "OMP_NUM_THREADS": "2"})

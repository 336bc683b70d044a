# SPDX-License-Identifier: Apache-2.0
"""torch's own tools on what ccom writes, and what the package says of versions."""
import os

import launch
import pytest

pytestmark = pytest.mark.ccom


def test_torchfrtrace_finds_who_is_missing(tmp_path):
    launch.ranks("desync.py", str(tmp_path), count=2, timeout=60)
    said = launch.said_by_torchfrtrace(tmp_path)
    assert "Not all ranks joining collective, sequence number: 6" in said and "missing ranks: {1}" in said, said


def test_a_group_is_split():
    job = launch.ranks("split.py", count=4, timeout=60)
    assert job.output.count("split") == 4, job.output


@pytest.mark.parametrize(("here", "folders", "says"),
                         [("2.3.1", ["torch_2_3"], "needs torch 2.4 or later"),
                          ("2.14.0+cpu", ["torch_2_13", "torch_2_9"], "was built for torch 2.9, 2.13, found 2.14.0")])
def test_another_torch_is_refused(here, folders, says):
    import ccom.torch

    with pytest.raises(ImportError, match=says):
        ccom.torch._extension_for(here, folders)


def test_a_failing_group_writes_what_it_remembers(tmp_path):
    environment = {"CCOM_TORCH_DUMP": str(tmp_path / "dump_")}
    job = launch.ranks("differing.py", "shapes", count=2, environment=environment, timeout=60, succeeds=None)
    assert sorted(os.listdir(tmp_path)) == ["dump_0", "dump_1"], job.output

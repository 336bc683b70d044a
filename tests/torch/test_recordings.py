# SPDX-License-Identifier: Apache-2.0
"""What a job recorded that was killed as a whole: torch's flight recorder tool and TensorBoard read what is made of it.
"""
import os
import subprocess

import launch
import pytest

pytestmark = pytest.mark.ccom


@pytest.fixture
def recorded(tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    job = launch.ranks("recorded_and_killed.py", count=2, environment={"CCOM_RECORD": str(folder)}, timeout=60,
                       succeeds=None)
    assert len(list(folder.iterdir())) == 2, job.output
    return folder


def test_torchfrtrace_finds_who_is_missing_after_a_kill_of_all(recorded, tmp_path):
    from ccom.torch import flight_recorder

    names = flight_recorder.from_recording(str(recorded), str(tmp_path / "trace_"))
    assert [os.path.basename(name) for name in names] == ["trace_0", "trace_1"]
    said = launch.said_by_torchfrtrace(tmp_path)
    assert "Not all ranks joining collective" in said and "missing ranks: {1}" in said, said


def test_tensorboard_reads_the_scalars(recorded, tmp_path):
    from ccom.torch import flight_recorder
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logs = tmp_path / "logs"
    subprocess.run([flight_recorder._ccom_trace(), recorded, "--tensorboard", logs], check=True, capture_output=True)
    events = EventAccumulator(str(logs))
    events.Reload()
    tags = events.Tags()["scalars"]
    seconds = [tag for tag in tags if tag.endswith("/allreduce/rank 1/seconds")]
    assert seconds, tags
    values = events.Scalars(seconds[0])
    assert len(values) >= 5 and all(0 < value.value < 60 for value in values)
    assert [value.step for value in values] == sorted(value.step for value in values)


def test_the_text_names_the_line(recorded):
    from ccom.torch import flight_recorder

    said = subprocess.run([flight_recorder._ccom_trace(), recorded], check=True, capture_output=True, text=True).stdout
    assert "the first in which ranks differ" in said and "recorded_and_killed.py:" in said, said

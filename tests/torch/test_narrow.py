# SPDX-License-Identifier: Apache-2.0
"""Gradients that cross hosts in 8 bits: error feedback keeps their mean nearer to the exact one, and a training
learns what it does in float32. Gradients that cross as bfloat16."""
import os

import launch
import pytest
import torch

EXAMPLE = os.path.join(launch.ROOT, "examples", "torch_narrow.py")


def on_two_hosts(program, *arguments, wire, ranks_per_host=1):
    return launch.ranks(program, *arguments, count=2 * ranks_per_host, environment={"CCOM_WIRE": wire}, timeout=100,
                        per_rank=launch.on_hosts(2, ranks_per_host))


@pytest.mark.ccom
@pytest.mark.parametrize("wire,ranks_per_host", [("fp8", 1), ("int8", 2)])
def test_feedback_keeps_the_mean_of_gradients_near(wire, ranks_per_host):
    """The program ends with an error if it does not."""
    on_two_hosts("narrow.py", "feedback", wire=wire, ranks_per_host=ranks_per_host)


@pytest.mark.ccom
@pytest.mark.parametrize("kind,reason", [("off", "CCOM_WIRE is off"), ("gloo", "not ccom")])
def test_feedback_is_refused_where_nothing_is_encoded(kind, reason):
    found = on_two_hosts("narrow.py", kind, wire="off")
    assert found.output.count("refused: ") == 2 and reason in found.output, found.output


@pytest.mark.ccom
@pytest.mark.parametrize("ranks_per_host", [1, 2])
def test_bfloat16_hook_averages_as_torchs_between_hosts(ranks_per_host):
    on_two_hosts("narrow.py", "bfloat16", wire="off", ranks_per_host=ranks_per_host)


@pytest.mark.ccom
def test_bfloat16_hook_leaves_float32_on_one_host():
    launch.ranks("narrow.py", "bfloat16", "one-host", count=2, timeout=100)


@pytest.mark.ccom
def test_training_learns_what_it_does_in_float32(tmp_path):
    """Bound: the mean loss of each epoch within 10 % of float32's; docs/pytorch.md has what 20 epochs differ by."""
    losses = {}
    for wire, arguments in (("off", []), ("fp8", ["--feedback"]), ("int8", ["--feedback"])):
        on_two_hosts(EXAMPLE, "--epochs", "4", "--save", str(tmp_path / "saved.pt"), *arguments, wire=wire)
        losses[wire] = torch.load(tmp_path / "saved.pt")["losses"]
    for wire in ("fp8", "int8"):
        assert not torch.equal(losses[wire], losses["off"]), "nothing was encoded"
        torch.testing.assert_close(losses[wire], losses["off"], rtol=0.1, atol=0)

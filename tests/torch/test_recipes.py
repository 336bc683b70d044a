# SPDX-License-Identifier: Apache-2.0
"""examples/recipes: trainers train over ccom, and show the error of the others when a rank was killed; the programs of
docs/doors/trainers.md run as they stand there. And examples/inference: vLLM decodes with ccom between its ranks.

scripts/install-recipes installs them in environments beside this one; what is not there is skipped.
"""
import glob
import json
import os
import re
import shutil
import tempfile

import launch
import pytest

RECIPES = os.path.join(launch.ROOT, "examples", "recipes")
PAGE = os.path.join(launch.ROOT, "docs", "doors", "trainers.md")
PYTHON = os.path.join(launch.ROOT, "build", "recipes", "bin", "python")
VLLM = os.path.join(launch.ROOT, "build", "vllm", "bin", "python")
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--monitor-interval=0.1"]
# How a program of each is started.
TRAINERS = {"lightning": [], "accelerate": TORCHRUN, "ray": [], "deepspeed": TORCHRUN, "transformers": TORCHRUN}
each_trainer = pytest.mark.parametrize("name", TRAINERS)
pytestmark = pytest.mark.ccom


def require(name, environment="recipes"):
    if not glob.glob(os.path.join(launch.ROOT, "build", environment, "lib", "python3*", "site-packages", name)):
        pytest.skip(f"{name} is not installed: scripts/install-recipes {name}")


def run(command, timeout=200, succeeds=True, environment=None):
    folder = tempfile.mkdtemp(prefix="ccom-", dir="/tmp")  # a short name: Ray has sockets in it
    try:
        quiet = {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0", "VLLM_NO_USAGE_STATS": "1",
                 "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
        return launch.run(command, timeout, succeeds, {**quiet, **(environment or {})})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def recipe(name, *arguments, options=(), **more):
    require(name)
    return run([PYTHON, *TRAINERS[name], *options, os.path.join(RECIPES, f"{name}_digits.py"), *arguments], **more)


def told(job):
    """The line of JSON with which a recipe ends; Ray puts the worker's name before it."""
    found = [json.loads(line[line.index('{"trainer"'):]) for line in job.output.splitlines() if '{"trainer"' in line]
    assert found, job.output[-4000:]
    return found[0]


def names_the_dead_rank(output):
    where = r"ccom \w+ \(operation \d+ of group '\w+', rank 0 of 2\)"
    return re.search(rf"DistBackendError: {where}: rank 1 on host \S+ died", output)


# DeepSpeed's third stage shards parameters too; a test of the others is below.
@each_trainer
def test_a_trainer_trains_over_ccom(name):
    result = told(recipe(name, *(["--stage", "3"] if name == "deepspeed" else [])))
    assert (result["backend"], result["ranks"]) == ("ccom", 2)
    assert result["accuracy"] > 0.9 and sum(result["bytes"].values()) > 1_000_000


@each_trainer
def test_a_killed_rank_is_named_by_the_others_error(name):
    replaced = name == "ray"
    job = recipe(name, *(["--failures", "1"] if replaced else []), succeeds=replaced,
                 environment={"RECIPE_KILL": "1:2"})
    assert names_the_dead_rank(job.output), job.output[-4000:]
    if replaced:  # Ray Train goes on with another worker, from the checkpoint
        assert told(job)["begun_with_epoch"] in (2, 3)


@each_trainer
def test_the_programs_of_the_page_run_as_they_stand_there(name, tmp_path):
    require(name)
    with open(PAGE, encoding="utf-8") as file:
        program = re.search(rf"<!-- test: {name} -->\n```python\n(.*?)```", file.read(), re.DOTALL).group(1)
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    started = run(["env", "-C", str(tmp_path), PYTHON, *TRAINERS[name], str(path)])  # Lightning leaves files there
    assert re.search(r"\b2 ranks, ccom$", started.output, re.MULTILINE)


def test_torchrun_restarts_from_the_checkpoint(tmp_path):
    job = launch.torchrun(os.path.join(RECIPES, "elastic_digits.py"), "--checkpoint", str(tmp_path / "digits.pt"),
                          count=2, restarts=1, environment={"RECIPE_KILL": "1:2"})
    assert names_the_dead_rank(job.output), job.output[-4000:]
    result = told(job)
    assert (result["restarts"], result["begun_with_epoch"]) == (1, 3) and result["accuracy"] > 0.9


def test_accelerate_unchanged_with_gloo_replaced():
    job = recipe("accelerate", "--unchanged", environment={"CCOM_TORCH_REPLACE_GLOO": "1"})
    assert told(job)["backend"] == "gloo"  # so torch says; the recipe itself checks that ccom carried the gradients


def test_accelerate_itself_accepts_no_other_backend():
    """As docs/doors/trainers.md says; if this fails, Accelerate has learned it, and the detour there can go."""
    require("accelerate")
    job = run([PYTHON, "-c", "from accelerate import Accelerator; from accelerate.utils import InitProcessGroupKwargs; "
               "Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend='ccom')])"],
              succeeds=False, environment={"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"})
    assert "Your assigned backend ccom is not available, please use gloo" in job.output


@pytest.mark.parametrize("stage", [1, 2])
def test_stages_of_deepspeed(stage):
    assert told(recipe("deepspeed", "--stage", str(stage)))["stage"] == stage


def test_vllm_decodes_the_same_with_ccom_as_with_its_own_communicator():
    require("vllm", "vllm")
    program = os.path.join(launch.ROOT, "examples", "inference", "vllm", "tiny_llama.py")
    found, own = [run([VLLM, program], environment={"VLLM_PLUGINS": plugins}).told[0] for plugins in ("ccom", "")]
    for rank in found["ranks"]:
        assert (rank["communicator"], rank["backend"]) == ("CcomCommunicator", "ccom") and rank["allreduces"] >= 16 * 5
    assert [rank["communicator"] for rank in own["ranks"]] == ["CpuCommunicator"] * 2
    assert found["tokens"] == own["tokens"] and found["logprobs"] == own["logprobs"]

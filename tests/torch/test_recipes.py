# SPDX-License-Identifier: Apache-2.0
"""examples/recipes: trainers train over ccom, and show the error of the others when a rank was killed; the programs of
docs/doors/trainers.md run as they stand there. And examples/inference: vLLM decodes with ccom between its ranks.

Each day one trainer is due, CCOM_TEST_LONG=1 all of them. They are installed in an environment beside this one
(scripts/install-recipes); where that cannot be done the tests skip, and say why. vLLM, which is large, is only
installed with CCOM_TEST_LONG=1, and tested where it is.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile

import launch
import pytest
import rotation

RECIPES = os.path.join(launch.ROOT, "examples", "recipes")
PAGE = os.path.join(launch.ROOT, "docs", "doors", "trainers.md")
PYTHON = os.path.join(launch.ROOT, "build", "recipes", "bin", "python")
VLLM = os.path.join(launch.ROOT, "build", "vllm", "bin", "python")
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--monitor-interval=0.1"]
# The packages and how a program is started.
TRAINERS = {"lightning": (["lightning"], []), "accelerate": (["accelerate"], TORCHRUN), "ray": (["ray"], []),
            "deepspeed": (["deepspeed"], TORCHRUN), "transformers": (["transformers"], TORCHRUN)}
TODAY = rotation.due([*TRAINERS, "vllm"], len(TRAINERS) + 1)
due = pytest.mark.parametrize("name", [name for name in TODAY if name in TRAINERS])
pytestmark = [pytest.mark.ccom, pytest.mark.skipif(
    not os.path.exists(os.path.join(launch.ROOT, "build", "torch", "bin", "python")), reason="there is no build/torch")]


def install(packages, timeout=150):
    try:
        done = subprocess.run([os.path.join(launch.ROOT, "scripts", "install-recipes"), *packages], timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{packages} was not installed in {timeout} s")
    if done.returncode != 0:
        pytest.skip(f"{packages} cannot be installed: {done.stderr.strip()[-300:]}")


def run(command, timeout=200, succeeds=True, environment=None):
    folder = tempfile.mkdtemp(prefix="ccom-", dir="/tmp")  # a short name: Ray has sockets in it
    try:
        with launch.Job() as job:
            job.start(command, {"RAY_TMPDIR": folder, "RAY_USAGE_STATS_ENABLED": "0", "VLLM_NO_USAGE_STATS": "1",
                                "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore", **(environment or {})})
            return launch.finished(job, timeout, succeeds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def recipe(name, *arguments, options=(), **more):
    packages, start = TRAINERS[name]
    install(packages)
    return run([PYTHON, *start, *options, os.path.join(RECIPES, f"{name}_digits.py"), *arguments], **more)


def told(job):
    """The line of JSON with which a recipe ends; Ray puts the worker's name before it."""
    found = [json.loads(line[line.index('{"trainer"'):]) for line in job.output.splitlines() if '{"trainer"' in line]
    assert found, job.output[-4000:]
    return found[0]


def names_the_dead_rank(output):
    where = r"ccom \w+ \(operation \d+ of group '\w+', rank 0 of 2\)"
    return re.search(rf"DistBackendError: {where}: rank 1 on host \S+ died", output)


# DeepSpeed's third stage shards parameters too; a test of the others is below. Ray is slow to start: there the test of
# a killed worker, which trains to the end, is enough for a day.
@pytest.mark.parametrize("name", [name for name in TODAY if name in TRAINERS and (rotation.LONG or name != "ray")])
def test_a_trainer_trains_over_ccom(name):
    result = told(recipe(name, *(["--stage", "3"] if name == "deepspeed" else [])))
    assert (result["backend"], result["ranks"]) == ("ccom", 2)
    assert result["accuracy"] > 0.9 and sum(result["bytes"].values()) > 1_000_000


@due
def test_a_killed_rank_is_named_by_the_others_error(name):
    replaced = name == "ray"
    job = recipe(name, *(["--failures", "1"] if replaced else []), succeeds=replaced,
                 environment={"RECIPE_KILL": "1:2"})
    assert names_the_dead_rank(job.output), job.output[-4000:]
    if replaced:  # Ray Train goes on with another worker, from the checkpoint
        assert told(job)["begun_with_epoch"] in (2, 3)


@due
def test_the_programs_of_the_page_run_as_they_stand_there(name, tmp_path):
    install(TRAINERS[name][0])
    with open(PAGE, encoding="utf-8") as file:
        program = re.search(rf"<!-- test: {name} -->\n```python\n(.*?)```", file.read(), re.DOTALL).group(1)
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    started = run(["env", "-C", str(tmp_path), PYTHON, *TRAINERS[name][1], str(path)])  # Lightning leaves files there
    assert re.search(r"\b2 ranks, ccom$", started.output, re.MULTILINE)


def test_torchrun_restarts_from_the_checkpoint(tmp_path):
    with launch.start_torchrun(os.path.join(RECIPES, "elastic_digits.py"), "--checkpoint", str(tmp_path / "digits.pt"),
                               count=2, restarts=1, environment={"RECIPE_KILL": "1:2"}) as job:
        job = launch.finished(job, 120, True)
    assert names_the_dead_rank(job.output), job.output[-4000:]
    result = told(job)
    assert (result["restarts"], result["begun_with_epoch"]) == (1, 3) and result["accuracy"] > 0.9


@pytest.mark.skipif("accelerate" not in TODAY, reason="not due today")
def test_accelerate_unchanged_with_gloo_replaced():
    job = recipe("accelerate", "--unchanged", environment={"CCOM_TORCH_REPLACE_GLOO": "1"})
    assert told(job)["backend"] == "gloo"  # so torch says; the recipe itself checks that ccom carried the gradients


@pytest.mark.skipif("accelerate" not in TODAY, reason="not due today")
def test_accelerate_itself_accepts_no_other_backend():
    """As docs/doors/trainers.md says; if this fails, Accelerate has learned it, and the detour there can go."""
    install(TRAINERS["accelerate"][0])
    job = run([PYTHON, "-c", "from accelerate import Accelerator; from accelerate.utils import InitProcessGroupKwargs; "
               "Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend='ccom')])"],
              succeeds=False, environment={"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"})
    assert "Your assigned backend ccom is not available, please use gloo" in job.output


@pytest.mark.long
@pytest.mark.parametrize("stage", [1, 2])
def test_stages_of_deepspeed(stage):
    assert told(recipe("deepspeed", "--stage", str(stage)))["stage"] == stage


@pytest.mark.skipif("vllm" not in TODAY, reason="not due today")
def test_vllm_decodes_the_same_with_ccom_as_with_its_own_communicator():
    if rotation.LONG:
        install(["vllm"], timeout=400)
    if not os.path.exists(VLLM):
        pytest.skip("vLLM is not installed: scripts/install-recipes vllm")
    program = os.path.join(launch.ROOT, "examples", "inference", "vllm", "tiny_llama.py")
    found, own = [run([VLLM, program], environment={"VLLM_PLUGINS": plugins}).told[0] for plugins in ("ccom", "")]
    for rank in found["ranks"]:
        assert (rank["communicator"], rank["backend"]) == ("CcomCommunicator", "ccom") and rank["allreduces"] >= 16 * 5
    assert [rank["communicator"] for rank in own["ranks"]] == ["CpuCommunicator"] * 2
    assert found["tokens"] == own["tokens"] and found["logprobs"] == own["logprobs"]

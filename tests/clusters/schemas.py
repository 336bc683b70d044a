# SPDX-License-Identifier: Apache-2.0
"""Kubernetes documents against published schemas, offline: Kubernetes' own (kubernetes-validate), JobSet's and
Kubeflow's (the models that their projects publish for Python), Volcano's, of which there is no package, as far as
examples/clusters uses it. The packages live in build/manifests, which with_validators() makes."""

import fcntl
import os
import re
import subprocess
import sys
import unittest

from harness.case import SOURCES

ENVIRONMENT = SOURCES / "build" / "manifests"
VALIDATORS = ["kubernetes-validate==1.37.0", "kubeflow-trainer-api==2.3.0", "kubeflow-training==1.9.4"]
KUBERNETES = "1.33"


def with_validators():
    """Starts this program again where the validators are. Returns in there. SkipTest if they cannot be had."""
    if os.environ.pop("CCOM_WITH_VALIDATORS", None):
        return
    python, installed = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "installed.txt"
    ENVIRONMENT.parent.mkdir(exist_ok=True)
    with open(ENVIRONMENT.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or installed.read_text().split() != VALIDATORS:
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *VALIDATORS]
            for command in (["/usr/bin/python3", "-m", "venv", "--clear", ENVIRONMENT], install):
                done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
                if done.returncode != 0:
                    raise unittest.SkipTest(f"the validators cannot be installed: {done.stderr or done.stdout}")
            installed.write_text("\n".join(VALIDATORS))
    os.execve(python, [str(python), *sys.argv], {**os.environ, "CCOM_WITH_VALIDATORS": "1"})


# The fields of Volcano's definition of jobs (batch.volcano.sh/v1alpha1) that are used here.
COUNT = {"type": "integer", "minimum": 0}
EVENTS = ["*", "PodPending", "PodRunning", "PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "OutOfSync",
          "CommandIssued", "JobUpdated", "TaskFailed"]


def object_of(**properties):
    return {"type": "object", "additionalProperties": False, "properties": properties}


def list_of(item):
    return {"type": "array", "items": item}


POLICIES = list_of(object_of(event={"enum": EVENTS}, action={"type": "string"}, timeout={"type": "string"}))
VOLCANO_TASK = object_of(name={"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
                         replicas=COUNT, minAvailable=COUNT, maxRetry=COUNT, policies=POLICIES,
                         template={"type": "object"})
VOLCANO_SPEC = object_of(minAvailable=COUNT, maxRetry=COUNT, queue={"type": "string"}, schedulerName={"type": "string"},
                         priorityClassName={"type": "string"}, policies=POLICIES, tasks=list_of(VOLCANO_TASK),
                         plugins={"type": "object", "additionalProperties": list_of({"type": "string"})})
VOLCANO_JOB = {"type": "object", "required": ["spec"], "properties": {"spec": VOLCANO_SPEC}}


def lost(given, kept, path):
    """Fields of `given` that a model has not kept, for it does not know them."""
    if isinstance(given, list) and isinstance(kept, list):
        return [wrong for i, (a, b) in enumerate(zip(given, kept)) for wrong in lost(a, b, f"{path}[{i}]")]
    if not isinstance(given, dict) or not isinstance(kept, dict):
        return []
    wrong = [f"{path} has no field {name}" for name in given if name not in kept]
    for name in given.keys() & kept.keys():
        wrong += lost(given[name], kept[name], f"{path}.{name}")
    return wrong


def check_model(model, document):
    import pydantic
    try:
        return lost(document, model.from_dict(document).to_dict(), document["kind"])
    except pydantic.ValidationError as wrong:
        return [f"{document['kind']}.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in wrong.errors()]


def check_training(type_name, value, path):
    """By the models of the Training Operator, which name their fields and types; not what is Kubernetes' own."""
    from kubeflow.training import models
    if match := re.fullmatch(r"dict\(str, (\w+)\)", type_name):
        if not isinstance(value, dict):
            return [f"{path} is {value!r}, no object"]
        of = match.group(1)
        return [wrong for name, item in value.items() for wrong in check_training(of, item, f"{path}.{name}")]
    if type_name in ("str", "int", "bool"):
        return [] if type(value).__name__ == type_name else [f"{path} is {value!r}, not of type {type_name}"]
    if not type_name.startswith("KubeflowOrg"):
        return []
    model = getattr(models, type_name)
    types = {model.attribute_map[name]: of for name, of in model.openapi_types.items()}
    wrong = [f"{path} has no field {name}" for name in value if name not in types]
    known = value.keys() & types.keys()
    return wrong + [each for name in known for each in check_training(types[name], value[name], f"{path}.{name}")]


def check_kubernetes(document, path):
    import kubernetes_validate
    try:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
        return []
    except kubernetes_validate.SchemaNotFoundError:
        return [f"{path} of {document['apiVersion']} is unknown"]
    except kubernetes_validate.ValidationError as wrong:
        return [f"{path}.{'.'.join(map(str, wrong.path))}: {wrong.message}"]


def check_volcano(document):
    import jsonschema
    found = jsonschema.Draft202012Validator(VOLCANO_JOB).iter_errors(document)
    return [f"Job.{'.'.join(map(str, wrong.path))}: {wrong.message}" for wrong in found]


def pods_of(document):
    """Templates of the document's pods, by path."""
    spec, kind = document["spec"], document["kind"]
    if kind in ("JobSet", "TrainingRuntime"):
        jobs = spec["template"]["spec"] if kind == "TrainingRuntime" else spec
        return {f"{kind}.{job['name']}": job["template"]["spec"]["template"] for job in jobs["replicatedJobs"]}
    if kind == "PyTorchJob":
        return {f"{kind}.{name}": replicas["template"] for name, replicas in spec["pytorchReplicaSpecs"].items()}
    if "tasks" in spec:
        return {f"{kind}.{task['name']}": task["template"] for task in spec["tasks"]}
    return {kind: spec["template"]} if "template" in spec else {}


def check_schema(document):
    """What is wrong with a document, as sentences."""
    from kubeflow_trainer_api import models
    by_kind = {("jobset.x-k8s.io/v1alpha2", "JobSet"): models.JobsetV1alpha2JobSet,
               ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): models.TrainerV1alpha1TrainingRuntime,
               ("trainer.kubeflow.org/v1alpha1", "TrainJob"): models.TrainerV1alpha1TrainJob}
    what = document.get("apiVersion"), document.get("kind")
    if what in by_kind:
        wrong = check_model(by_kind[what], document)
    elif what == ("kubeflow.org/v1", "PyTorchJob"):
        wrong = check_training("KubeflowOrgV1PyTorchJob", document, "PyTorchJob")
    elif what == ("batch.volcano.sh/v1alpha1", "Job"):
        wrong = check_volcano(document)
    else:
        return check_kubernetes(document, document.get("kind"))
    for path, template in pods_of(document).items() if not wrong else []:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template.get("metadata", {}), "spec": template["spec"]}
        wrong += check_kubernetes(pod, path)
    return wrong

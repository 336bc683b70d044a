# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes manifests of examples/clusters, checked offline: that they have the fields and types that Kubernetes' and JobSet's
published schemas have (as far as the manifests use them), that what refers to something refers to what is there, and that the
numbers of ranks, the resources and the rendezvous address fit together. Each rule is shown to fail on a damaged copy."""

import copy
import pathlib
import re
import unittest

import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "clusters"
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|[kMGTPE]|[KMGTPE]i)?$")

# Fields by kind of object: name -> type, or another kind, or a list of one. "!" marks those that must be there.
METADATA = {"name!": str, "labels": dict, "annotations": dict}
ENV = {"name!": str, "value": str, "valueFrom": dict}
MOUNT = {"name!": str, "mountPath!": str, "readOnly": bool, "subPath": str}
RESOURCES = {"requests": dict, "limits": dict}
CONTAINER = {"name!": str, "image!": str, "command": [str], "args": [str], "env": [ENV], "resources": RESOURCES, "volumeMounts": [MOUNT]}
SECRET = {"secretName!": str, "defaultMode": int}
EMPTY_DIR = {"medium": str, "sizeLimit": str}
VOLUME = {"name!": str, "secret": SECRET, "emptyDir": EMPTY_DIR}
POD = {"subdomain": str, "restartPolicy!": str, "nodeSelector": dict, "containers!": [CONTAINER], "initContainers": [CONTAINER],
       "volumes": [VOLUME]}
POD_TEMPLATE = {"metadata": METADATA, "spec!": POD}
JOB_SPEC = {"completionMode": str, "completions": int, "parallelism": int, "backoffLimit": int, "template!": POD_TEMPLATE}
JOB = {"apiVersion!": str, "kind!": str, "metadata!": METADATA, "spec!": JOB_SPEC}
REPLICATED = {"name!": str, "replicas": int, "template!": {"metadata": METADATA, "spec!": JOB_SPEC}}
JOBSET_SPEC = {"network": {"enableDNSHostnames": bool, "publishNotReadyAddresses": bool, "subdomain": str},
               "failurePolicy": {"maxRestarts": int}, "replicatedJobs!": [REPLICATED]}
JOBSET = {"apiVersion!": str, "kind!": str, "metadata!": METADATA, "spec!": JOBSET_SPEC}
SERVICE_SPEC = {"clusterIP": str, "publishNotReadyAddresses": bool, "selector": dict, "ports": list}
SERVICE = {"apiVersion!": str, "kind!": str, "metadata!": METADATA, "spec!": SERVICE_SPEC}
KINDS = {("v1", "Service"): SERVICE, ("batch/v1", "Job"): JOB, ("jobset.x-k8s.io/v1alpha2", "JobSet"): JOBSET}


def check_fields(value, schema, path):
    """What is wrong with `value`, as sentences."""
    if isinstance(schema, type):
        right = isinstance(value, schema) and not (schema is int and isinstance(value, bool))
        return [] if right else [f"{path} is {value!r}, not of type {schema.__name__}"]
    if isinstance(schema, list):
        if not isinstance(value, list) or not value:
            return [f"{path} is no list"]
        return [wrong for i, item in enumerate(value) for wrong in check_fields(item, schema[0], f"{path}[{i}]")]
    if not isinstance(value, dict):
        return [f"{path} is {value!r}, no object"]
    known = {name.rstrip("!"): of for name, of in schema.items()}
    wrong = [f"{path} lacks {name[:-1]}" for name in schema if name.endswith("!") and name[:-1] not in value]
    wrong += [f"{path} has no field {name}" for name in value if name not in known]
    for name in value.keys() & known.keys():
        wrong += check_fields(value[name], known[name], f"{path}.{name}")
    return wrong


def check_container(container, volumes, path):
    wrong = []
    for entry in container.get("env", []):
        if ("value" in entry) == ("valueFrom" in entry):
            wrong.append(f"{path}: {entry['name']} needs a value or a source")
    for mount in container.get("volumeMounts", []):
        if mount["name"] not in volumes:
            wrong.append(f"{path} mounts {mount['name']}, which is no volume")
    resources = container.get("resources", {})
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    for name, amount in [*requests.items(), *limits.items()]:
        if not QUANTITY.match(str(amount)):
            wrong.append(f"{path}: {name}={amount} is no quantity")
    for name, amount in limits.items():
        if "/" in name and not isinstance(amount, int):
            wrong.append(f"{path}: {name}={amount}: devices are counted")
        if ("/" in name or name.startswith("hugepages-")) and requests.get(name, amount) != amount:
            wrong.append(f"{path}: {name} must be requested as it is limited")
    for name in requests:
        if ("/" in name or name.startswith("hugepages-")) and name not in limits:
            wrong.append(f"{path}: {name} needs a limit")
    if any(name.startswith("hugepages-") for name in limits) and "memory" not in {**requests, **limits}:
        wrong.append(f"{path}: huge pages need memory or cpu beside them")
    return wrong


def ranks_of_pod(container):
    numbers = set(re.findall(r"start-ranks (\d+)", " ".join(container.get("args", []))))
    return int(numbers.pop()) if len(numbers) == 1 else 0


def check_job(spec, first_pod, path):
    """first_pod: the name under which the others find it."""
    pod = spec["template"]["spec"]
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    wrong = []
    if spec.get("completionMode") != "Indexed":
        wrong.append(f"{path}: only an Indexed job numbers its pods")
    if spec.get("completions") != spec.get("parallelism"):
        wrong.append(f"{path}: all pods must run at the same time")
    if pod["restartPolicy"] not in ("Never", "OnFailure"):
        wrong.append(f"{path}: restartPolicy {pod['restartPolicy']} is not for jobs")
    for container in pod["containers"]:
        wrong += check_container(container, volumes, f"{path}.{container['name']}")
        env = {entry["name"]: entry.get("value") for entry in container.get("env", [])}
        ranks = spec.get("completions", 1) * ranks_of_pod(container)
        if env.get("CCOM_NRANKS") != str(ranks):
            wrong.append(f"{path}: CCOM_NRANKS={env.get('CCOM_NRANKS')}, but {ranks} ranks are started")
        if not re.fullmatch(rf"tcp://{re.escape(first_pod)}:2[12]\d\d\d", env.get("CCOM_URL") or ""):
            wrong.append(f"{path}: CCOM_URL={env.get('CCOM_URL')} is not at the first pod, {first_pod}")
        mounts = [mount["mountPath"] for mount in container.get("volumeMounts", [])]
        if not any(str(env.get("CCOM_SECRET_SOURCE")).startswith(mount + "/") for mount in mounts):
            wrong.append(f"{path}: the secret {env.get('CCOM_SECRET_SOURCE')} is not mounted")
    return wrong


def check_all(documents):
    wrong = []
    services = {document["metadata"]["name"]: document for document in documents if document["kind"] == "Service"}
    for document in documents:
        schema = KINDS.get((document.get("apiVersion"), document.get("kind")))
        path = document.get("kind", "?")
        if schema is None:
            return [f"{path} of {document.get('apiVersion')} is unknown"]
        if found := check_fields(document, schema, path):
            return found
        name = document["metadata"]["name"]
        if not NAME.match(name):
            wrong.append(f"{path}: {name} is no name")
        if document["kind"] == "Job":
            subdomain = document["spec"]["template"]["spec"].get("subdomain")
            if subdomain not in services:
                wrong.append(f"{path}: no service gives the pods names below {subdomain}")
            elif services[subdomain]["spec"].get("selector") != {"batch.kubernetes.io/job-name": name}:
                wrong.append(f"{path}: the service {subdomain} selects other pods")
            elif services[subdomain]["spec"].get("clusterIP") != "None":
                wrong.append(f"{path}: the service {subdomain} is not headless")
            wrong += check_job(document["spec"], f"{name}-0.{subdomain}", path)
        if document["kind"] == "JobSet":
            for job in document["spec"]["replicatedJobs"]:
                wrong += check_job(job["template"]["spec"], f"{name}-{job['name']}-0-0.{name}", f"{path}.{job['name']}")
    return wrong


def load(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def pod_of(document):
    spec = document["spec"]
    return (spec["replicatedJobs"][0]["template"]["spec"] if document["kind"] == "JobSet" else spec)["template"]["spec"]


class Manifests(unittest.TestCase):
    def test_are_right(self):
        files = sorted(path.name for path in FOLDER.glob("*.yaml"))
        self.assertEqual(files, ["indexed-job.yaml", "jobset.yaml"])
        for name in files:
            self.assertEqual(check_all(load(name)), [], name)

    def test_damage_is_seen(self):
        def container(document):
            return pod_of(document)["containers"][0]

        def env(document, name):
            return next(entry for entry in container(document)["env"] if entry["name"] == name)

        damages = [
            ("jobset.yaml", lambda d: d[0]["spec"].update(replicatedJob=[]), "no field replicatedJob"),
            ("jobset.yaml", lambda d: pod_of(d[0]).pop("restartPolicy"), "lacks restartPolicy"),
            ("jobset.yaml", lambda d: env(d[0], "CCOM_NRANKS").update(value=64), "not of type str"),
            ("jobset.yaml", lambda d: env(d[0], "CCOM_NRANKS").update(value="32"), "64 ranks are started"),
            ("jobset.yaml", lambda d: env(d[0], "CCOM_URL").update(value="tcp://ccom-0.ccom:21000"), "not at the first pod"),
            ("jobset.yaml", lambda d: container(d[0])["resources"]["limits"].update({"vpc.amazonaws.com/efa": "8"}), "are counted"),
            ("jobset.yaml", lambda d: container(d[0])["resources"]["requests"].update({"hugepages-2Mi": "1Gi"}), "as it is limited"),
            ("jobset.yaml", lambda d: container(d[0])["volumeMounts"][0].update(name="x"), "which is no volume"),
            ("indexed-job.yaml", lambda d: d[1]["spec"].update(parallelism=2), "at the same time"),
            ("indexed-job.yaml", lambda d: d[1]["spec"].pop("completionMode"), "numbers its pods"),
            ("indexed-job.yaml", lambda d: d[0]["spec"].update(selector={"app": "ccom"}), "selects other pods"),
            ("indexed-job.yaml", lambda d: pod_of(d[1]).update(subdomain="other"), "gives the pods names"),
        ]
        for name, damage, sentence in damages:
            documents = copy.deepcopy(load(name))
            damage(documents)
            self.assertTrue(any(sentence in wrong for wrong in check_all(documents)), f"{name}: {sentence} is not seen")


if __name__ == "__main__":
    unittest.main()

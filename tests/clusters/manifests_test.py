# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes manifests of examples/clusters, checked offline against published schemas (schemas.py). And that what
refers to something refers to what is there, and the numbers of ranks, the resources and the rendezvous address fit
together. Each rule is shown to fail on a damaged copy."""

import copy
import re

from harness.case import SOURCES, TestCase
from schemas import check_schema, pods_of, with_validators

with_validators()
import yaml  # noqa: E402

FOLDER = SOURCES / "examples" / "clusters"
FILES = ["indexed-job.yaml", "jobset.yaml", "pytorchjob.yaml", "trainer.yaml", "volcano-etcd.yaml"]
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|[kMGTPE]|[KMGTPE]i)?$")
UNITS = {None: 1, "m": 1e-3, **{unit: 1000 ** (i + 1) for i, unit in enumerate("kMGTPE")},
         **{unit + "i": 1024 ** (i + 1) for i, unit in enumerate("KMGTPE")}}
DEVICES = {"vpc.amazonaws.com/efa", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"}  # of AWS's device plug-ins


def amount(text):
    """A quantity as a number; None if it is none."""
    match = QUANTITY.match(str(text))
    return float(match.group(1)) * UNITS[match.group(2)] if match else None


def check_resources(resources, path):
    wrong = []
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    for name, given in [*requests.items(), *limits.items()]:
        if amount(given) is None:
            wrong.append(f"{path}: {name}={given} is no quantity")
        if "/" in name and name not in DEVICES:
            wrong.append(f"{path}: {name} is no device of these plug-ins")
    for name, given in limits.items():
        if "/" in name and not isinstance(given, int):
            wrong.append(f"{path}: {name}={given}: devices are counted")
        if ("/" in name or name.startswith("hugepages-")) and requests.get(name, given) != given:
            wrong.append(f"{path}: {name} must be requested as it is limited")
    for name in requests:
        if ("/" in name or name.startswith("hugepages-")) and name not in limits:
            wrong.append(f"{path}: {name} needs a limit")
    if any(name.startswith("hugepages-") for name in limits) and "memory" not in {**requests, **limits}:
        wrong.append(f"{path}: huge pages need memory or cpu beside them")
    return wrong


def check_pod(pod, path, resources=None):
    """`resources`: of the main container, where another document names them."""
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    wrong = []
    for container in pod["containers"]:
        here = f"{path}.{container['name']}"
        wanted = resources or container.get("resources", {})
        wrong += check_resources(wanted, here)
        for entry in container.get("env", []):
            if ("value" in entry) == ("valueFrom" in entry):
                wrong.append(f"{here}: {entry['name']} needs a value or a source")
        for mount in container.get("volumeMounts", []):
            memory = volumes.get(mount["name"], {}).get("emptyDir", {})
            if mount["name"] not in volumes:
                wrong.append(f"{here} mounts {mount['name']}, which is no volume")
            elif memory.get("medium") == "Memory":
                limit, size = amount(wanted.get("limits", {}).get("memory", "0")), amount(memory.get("sizeLimit", "0"))
                if not 0 < size < limit:
                    wrong.append(f"{here}: {mount['name']} needs a size below the memory which it is part of")
    return wrong


def ranks_of_pod(container):
    numbers = set(re.findall(r"start-ranks (\d+)", " ".join(container.get("args", []))))
    return int(numbers.pop()) if len(numbers) == 1 else 0


def check_job(spec, first_pod, path):
    """first_pod: the name under which the others find it."""
    pod = spec["template"]["spec"]
    wrong = []
    if spec.get("completionMode") != "Indexed":
        wrong.append(f"{path}: only an Indexed job numbers its pods")
    if spec.get("completions") != spec.get("parallelism"):
        wrong.append(f"{path}: all pods must run at the same time")
    if pod.get("restartPolicy") not in ("Never", "OnFailure"):
        wrong.append(f"{path}: restartPolicy {pod.get('restartPolicy')} is not for jobs")
    for container in pod["containers"]:
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


def check_indexed_job(document, services):
    name, spec = document["metadata"]["name"], document["spec"]
    subdomain = spec["template"]["spec"].get("subdomain")
    wrong = []
    if subdomain not in services:
        wrong.append(f"Job: no service gives the pods names below {subdomain}")
    elif services[subdomain]["spec"].get("selector") != {"batch.kubernetes.io/job-name": name}:
        wrong.append(f"Job: the service {subdomain} selects other pods")
    elif services[subdomain]["spec"].get("clusterIP") != "None":
        wrong.append(f"Job: the service {subdomain} is not headless")
    return wrong + check_job(spec, f"{name}-0.{subdomain}", "Job")


def check_train_job(document, runtimes):
    spec = document["spec"]
    runtime = runtimes.get(spec["runtimeRef"]["name"])
    if runtime is None:
        return [f"TrainJob: there is no runtime {spec['runtimeRef']['name']}"]
    (path, template), = pods_of(runtime).items()
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    wrong = check_pod(template["spec"], path, spec["trainer"]["resourcesPerNode"])
    if job["template"]["metadata"]["labels"].get("trainer.kubeflow.org/trainjob-ancestor-step") != "trainer":
        wrong.append(f"{path}: not labelled as the trainer")
    if spec["trainer"]["command"][0] != "torchrun":
        wrong.append("TrainJob: torchrun reads the variables of Trainer")
    return wrong


def check_pytorch_job(document):
    wrong = []
    for path, template in pods_of(document).items():
        names = [container["name"] for container in template["spec"]["containers"]]
        if names != ["pytorch"]:
            wrong.append(f"{path}: the operator looks for a container pytorch, not {names}")
    return wrong


def check_volcano_job(document, services, deployments):
    spec = document["spec"]
    (task,) = spec["tasks"]
    options = dict(re.findall(r"--([a-z-]+)=(\S+)", " ".join(task["template"]["spec"]["containers"][0]["command"])))
    wrong = []
    if not spec["minAvailable"] == task["replicas"] == int(options["nnodes"]):
        wrong.append("Job: all pods start together, as many as torchrun expects")
    host, port = options["rdzv-endpoint"].split(":")
    service = services.get(host)
    if service is None or int(port) not in [each["port"] for each in service["spec"]["ports"]]:
        return [*wrong, f"Job: no service {host} has a port {port}"]
    chosen = [each for each in deployments
              if service["spec"]["selector"].items() <= each["spec"]["template"]["metadata"]["labels"].items()]
    if not chosen:
        return [*wrong, f"Job: the service {host} selects no pods"]
    command = chosen[0]["spec"]["template"]["spec"]["containers"][0]["command"]
    if options["rdzv-backend"] == "etcd-v2" and "--enable-v2" not in command:
        wrong.append("Job: torch speaks etcd's protocol 2")
    return wrong


def check_all(documents):
    """What is wrong, as sentences."""
    if wrong := [each for document in documents for each in check_schema(document)]:
        return wrong
    by_kind = {kind: {each["metadata"]["name"]: each for each in documents if each["kind"] == kind}
               for kind in ("Service", "Deployment", "TrainingRuntime")}
    for document in documents:
        api, kind, name = document["apiVersion"], document["kind"], document["metadata"]["name"]
        if not NAME.match(name):
            wrong.append(f"{kind}: {name} is no name")
        if kind != "TrainingRuntime":
            for path, template in pods_of(document).items():
                wrong += check_pod(template["spec"], path)
        if kind == "JobSet":
            for job in document["spec"]["replicatedJobs"]:
                wrong += check_job(job["template"]["spec"], f"{name}-{job['name']}-0-0.{name}", f"JobSet.{job['name']}")
        elif kind == "TrainJob":
            wrong += check_train_job(document, by_kind["TrainingRuntime"])
        elif kind == "PyTorchJob":
            wrong += check_pytorch_job(document)
        elif api == "batch.volcano.sh/v1alpha1":
            wrong += check_volcano_job(document, by_kind["Service"], by_kind["Deployment"].values())
        elif api == "batch/v1":
            wrong += check_indexed_job(document, by_kind["Service"])
    return wrong


def load(name):
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def container(document):
    return next(iter(pods_of(document).values()))["spec"]["containers"][0]


def limits(document):
    return container(document)["resources"]["limits"]


def requests(document):
    return container(document)["resources"]["requests"]


def env(document, name):
    return next(entry for entry in container(document)["env"] if entry["name"] == name)


def shm(document):
    return next(iter(pods_of(document).values()))["spec"]["volumes"][-1]["emptyDir"]


class Manifests(TestCase):
    def test_are_right(self):
        self.assertEqual(sorted(path.name for path in FOLDER.glob("*.yaml")), FILES)
        for name in FILES:
            self.assertEqual(check_all(load(name)), [], name)

    def see(self, name, *damages):
        for damage, sentence in damages:
            documents = copy.deepcopy(load(name))
            damage(documents)
            found = check_all(documents)
            self.assertTrue(any(sentence in wrong for wrong in found), f"{name}: {sentence} is not seen, but {found}")

    def test_damage_of_a_jobset_is_seen(self):
        self.see("jobset.yaml",
                 (lambda d: d[0]["spec"].update(replicatedJob=[]), "no field replicatedJob"),
                 (lambda d: d[0]["spec"]["network"].update(enableDNSHostnames="yes"), "valid boolean"),
                 (lambda d: container(d[0]).update(comand=[]), "no field comand"),
                 (lambda d: next(iter(pods_of(d[0]).values()))["spec"].pop("restartPolicy"), "is not for jobs"),
                 (lambda d: env(d[0], "CCOM_NRANKS").update(value=64), "valid string"),
                 (lambda d: env(d[0], "CCOM_NRANKS").update(value="32"), "64 ranks are started"),
                 (lambda d: env(d[0], "CCOM_URL").update(value="tcp://ccom-0.ccom:21000"), "not at the first pod"),
                 (lambda d: limits(d[0]).update({"vpc.amazonaws.com/efa": "8"}), "are counted"),
                 (lambda d: limits(d[0]).update({"vpc.amazonaws.com/efas": 8}), "no device of these"),
                 (lambda d: requests(d[0]).update({"hugepages-2Mi": "1Gi"}), "as it is limited"),
                 (lambda d: container(d[0])["volumeMounts"][0].update(name="x"), "which is no volume"))

    def test_damage_of_a_job_is_seen(self):
        self.see("indexed-job.yaml",
                 (lambda d: d[1]["spec"].update(completion=4), "completion"),
                 (lambda d: env(d[1], "CCOM_NRANKS").update(value=8), "8 is not"),
                 (lambda d: d[1].update(apiVersion="batch/v9"), "is unknown"),
                 (lambda d: d[1]["spec"].update(parallelism=2), "at the same time"),
                 (lambda d: d[1]["spec"].pop("completionMode"), "numbers its pods"),
                 (lambda d: d[0]["spec"].update(selector={"app": "ccom"}), "selects other pods"),
                 (lambda d: d[1]["spec"]["template"]["spec"].update(subdomain="other"), "gives the pods names"),
                 (lambda d: shm(d[1]).update(sizeLimit="8Gi"), "which it is part of"),
                 (lambda d: shm(d[1]).pop("sizeLimit"), "which it is part of"))

    def test_damage_of_a_train_job_is_seen(self):
        self.see("trainer.yaml",
                 (lambda d: d[0]["spec"]["mlPolicy"].update(numNode=2), "no field numNode"),
                 (lambda d: d[1]["spec"]["trainer"].update(numProcPerNode="4"), "valid integer"),
                 (lambda d: d[1]["spec"]["runtimeRef"].update(name="other"), "there is no runtime"),
                 (lambda d: d[1]["spec"]["trainer"].update(command=["python3"]), "torchrun reads"),
                 (lambda d: shm(d[0]).update(sizeLimit="9Gi"), "which it is part of"))

    def test_damage_of_a_pytorch_job_is_seen(self):
        self.see("pytorchjob.yaml",
                 (lambda d: d[0]["spec"].update(nprocPerNode=2), "not of type str"),
                 (lambda d: d[0]["spec"].update(replicas=2), "no field replicas"),
                 (lambda d: d[0]["spec"]["pytorchReplicaSpecs"]["Master"].update(replicas="1"), "not of type int"),
                 (lambda d: container(d[0]).update(name="ranks"), "looks for a container"))

    def test_damage_of_a_volcano_job_is_seen(self):
        self.see("volcano-etcd.yaml",
                 (lambda d: d[2]["spec"]["policies"][0].update(event="PodFails"), "PodFails"),
                 (lambda d: d[2]["spec"].update(task=[]), "task"),
                 (lambda d: d[2]["spec"].update(minAvailable=1), "start together"),
                 (lambda d: d[0]["spec"]["ports"][0].update(port=2380), "has a port 2379"),
                 (lambda d: d[0]["spec"].update(selector={"app": "x"}), "selects no pods"),
                 (lambda d: container(d[1])["command"].remove("--enable-v2"), "protocol 2"),
                 (lambda d: container(d[2]).update(images="x"), "images"))

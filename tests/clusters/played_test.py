# SPDX-License-Identifier: Apache-2.0
"""start-ranks and the manifests of examples/clusters, run with real ranks on this machine: this test plays Kubernetes,
secret volumes (links to files that others can read) included, and the operators that set torchrun's variables. What is
played is smaller: two ranks per pod, small sizes, and ccom-doctor measures nothing, for speeds mean nothing here."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from harness.case import SOURCES, TestCase, free_port, program
from harness.processes import Job

try:
    import yaml
except ImportError:
    raise unittest.SkipTest("needs python3-yaml") from None

EXAMPLES = SOURCES / "examples" / "clusters"
TORCH = SOURCES / "build" / "torch" / "bin"
SCRIPTS = ["start-ranks", "slurm-tools.sbatch", "slurm-torchrun.sbatch"]
LIMIT = 150

# Any size that the examples name becomes a small one.
BENCH = ('#!/bin/sh\nfor word; do shift; [ "$word" != 64M ] || word=4K; set -- "$@" "$word"; done\n'
         'exec "{program}" "$@" -n 2 -w 1\n')


def documents(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


class Played(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name, text in [("ccom-bench", BENCH.format(program=program("ccom-bench"))),
                           ("ccom-doctor", f'#!/bin/sh\nexec "{program("ccom-doctor")}" --no-speed "$@"\n')]:
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        (self.bin / "start-ranks").symlink_to(EXAMPLES / "start-ranks")
        self.job = self.enterContext(Job())

    def start(self, command, **variables):
        self.job.start(command, {"PATH": f"{self.bin}:{os.environ['PATH']}", "PLAYED": str(self.folder),
                                 "CCOM_SOCKET_IFNAME": "lo", "CCOM_INIT_TIMEOUT_MS": "40000", **variables})

    def test_scripts_are_well_formed(self):
        for name in SCRIPTS:
            subprocess.run(["sh", "-n", str(EXAMPLES / name)], check=True)
            subprocess.run(["bash", "-n", str(EXAMPLES / name)], check=True)
            if shutil.which("shellcheck"):
                subprocess.run(["shellcheck", str(EXAMPLES / name)], check=True)

    def play_pods(self, name, pods, **variables):
        """The command of a manifest's container, once per pod."""
        document = documents(name)[-1]
        spec = document["spec"]
        job = spec["replicatedJobs"][0]["template"]["spec"] if document["kind"] == "JobSet" else spec
        container = job["template"]["spec"]["containers"][0]
        arguments = [text.replace("start-ranks 32", "start-ranks 2") for text in container["args"]]
        given = {entry["name"]: entry["value"] for entry in container["env"]}
        mount = self.folder / "mounted"
        (mount / "..2026").mkdir(parents=True)
        (mount / "..2026" / "secret").write_bytes(os.urandom(32))
        (mount / "..2026" / "secret").chmod(0o644)
        (mount / "..data").symlink_to("..2026")
        (mount / "secret").symlink_to("..data/secret")
        given |= {"CCOM_NRANKS": str(2 * pods), "CCOM_URL": f"tcp://127.0.0.1:{free_port()}",
                  "CCOM_SOCKET_IFNAME": "lo", "CCOM_SECRET_SOURCE": str(mount / "secret")} | variables
        command = [*container["command"], *arguments]
        for pod in range(pods):
            self.start(command, **given, JOB_COMPLETION_INDEX=str(pod), CCOM_HOSTID=f"pod-{pod}")
        ends = self.job.wait(LIMIT)
        return [end.code for end in ends], [end.output + end.errors for end in ends]

    def test_jobset(self):
        codes, outputs = self.play_pods("jobset.yaml", 2)
        self.assertEqual(codes, [0, 0], outputs)
        self.assertIn("4 ranks on 2 hosts", outputs[0])
        self.assertIn("pod-1 (ranks 2 and 3)", outputs[0])

    def test_indexed_job(self):
        codes, outputs = self.play_pods("indexed-job.yaml", 4)
        self.assertEqual(codes, [0, 0, 0, 0], outputs)
        self.assertIn("8 ranks on 4 hosts", outputs[0])

    def test_a_mounted_secret_is_refused_as_it_is(self):
        """Why start-ranks copies it."""
        mount = self.folder / "mounted" / "secret"
        codes, outputs = self.play_pods("jobset.yaml", 2, CCOM_SECRET_SOURCE="", CCOM_SECRET_FILE=str(mount))
        self.assertEqual([code != 0 for code in codes], [True, True])
        self.assertIn("is a symbolic link", outputs[0])

    def test_start_ranks_ends_all_when_one_fails(self):
        script = ('[ $CCOM_LOCAL_RANK = 1 ] || { echo $$ >>"$PLAYED/sleepers"; exec sleep 60; }; '
                  'until [ "$(cat "$PLAYED/sleepers" | wc -l)" = 2 ]; do sleep 0.01; done; exit 7')
        self.start([str(EXAMPLES / "start-ranks"), "3", "sh", "-c", script])
        self.job.succeed(30, code=7)
        self.assertEqual(self.job.left_behind, [])

    def test_start_ranks_numbers_its_ranks(self):
        say = 'echo "$CCOM_LOCAL_RANK of $CCOM_LOCAL_NRANKS"'
        self.start([str(EXAMPLES / "start-ranks"), "3", "sh", "-c", say])
        self.assertEqual(sorted(self.job.succeed(30)[0].output.split("\n")), ["", "0 of 3", "1 of 3", "2 of 3"])


@unittest.skipUnless(os.access(TORCH / "torchrun", os.X_OK), "torchrun is not installed here (scripts/install-torch)")
class PlayedTorch(TestCase):
    """Two pods of two ranks. tests/torch runs these."""

    def play(self, container, command, **variables):
        """A manifest's command in each pod; {pod} in values is its number."""
        here = {"CCOM_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1",
                "CCOM_HOSTID": "pod-{pod}"}
        given = {entry["name"]: entry["value"] for entry in container["env"]} | here | variables
        command = [word.replace("/opt/ccom", str(SOURCES)) for word in command]
        job = self.enterContext(Job())
        for pod in range(2):
            here = {name: value.replace("{pod}", str(pod)) for name, value in given.items()}
            job.start(command, {"PATH": f"{TORCH}:{os.environ['PATH']}", **here})
        outputs = "".join(end.output + end.errors for end in job.succeed(LIMIT))
        self.assertRegex(outputs, r"4 ranks, ccom: .* test accuracy 0\.9")

    @staticmethod
    def of_torchrun():
        return {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": "{pod}", "PET_MASTER_ADDR": "127.0.0.1",
                "PET_MASTER_PORT": str(free_port())}

    def test_trainer(self):
        runtime, job = documents("trainer.yaml")
        (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        (container,) = node["template"]["spec"]["template"]["spec"]["containers"]
        self.play(container, job["spec"]["trainer"]["command"], **self.of_torchrun())

    def test_pytorchjob(self):
        """The operator also tells each pod a rank, which torchrun replaces by those of its processes."""
        (job,) = documents("pytorchjob.yaml")
        (container,) = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
        of_pod = {"RANK": "{pod}", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        self.play(container, container["command"], **of_pod, **self.of_torchrun())

    def test_volcano_with_etcd(self):
        """With etcd itself, and python-etcd, as the image has it."""
        _, deployment, job = documents("volcano-etcd.yaml")
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        install = [TORCH / "python", "-m", "pip", "install", "--quiet", "--target", folder, "python-etcd==0.4.5"]
        unpack = "apt-get download -qq -o APT::Sandbox::User=root etcd-server && dpkg-deb -x etcd-server_*.deb etcd"
        for command in (install, ["sh", "-c", unpack]):
            done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, timeout=LIMIT)
            if done.returncode != 0:
                self.skipTest(f"etcd or python-etcd cannot be had: {done.stderr}")
        (etcd,) = deployment["spec"]["template"]["spec"]["containers"]
        here = f"127.0.0.1:{free_port()}"
        command = [word.replace("0.0.0.0:2379", here).replace("ccom-etcd:2379", here) for word in etcd["command"]]
        command += ["--data-dir", f"{folder}/data", "--listen-peer-urls", f"http://127.0.0.1:{free_port()}"]
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            server = subprocess.Popen([f"{folder}/etcd/usr/bin/etcd", *command[1:]], stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        (container,) = job["spec"]["tasks"][0]["template"]["spec"]["containers"]
        command = [word.replace("ccom-etcd:2379", here) for word in container["command"]]
        self.play(container, command, PYTHONPATH=folder)

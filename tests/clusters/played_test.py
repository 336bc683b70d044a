# SPDX-License-Identifier: Apache-2.0
"""start-ranks and the manifests of examples/clusters, run with real ranks on this machine: this test plays Kubernetes, secret volumes (links
to files that others can read) included. What is played is smaller: two ranks per pod, small sizes, and ccom-doctor measures nothing, for
speeds mean nothing here.
  played_test.py FOLDER-OF-CCOM-DOCTOR FOLDER-OF-CCOM-BENCH ALLREDUCE_C [unittest's arguments]"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import yaml

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "clusters"
SCRIPTS = ["start-ranks", "slurm-tools.sbatch", "slurm-torchrun.sbatch"]
LIMIT = 150

# Any size that the examples name becomes a small one.
BENCH = '#!/bin/sh\nfor word; do shift; [ "$word" != 64M ] || word=4K; set -- "$@" "$word"; done\nexec "{program}" "$@" -n 2 -w 1\n'


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Played(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name, text in [("ccom-bench", BENCH.format(program=PROGRAMS[1] + "/ccom-bench")),
                           ("ccom-doctor", f'#!/bin/sh\nexec "{PROGRAMS[0]}/ccom-doctor" --no-speed "$@"\n')]:
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        (self.bin / "start-ranks").symlink_to(EXAMPLES / "start-ranks")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("CCOM_", "SLURM_"))}
        self.environment = {**clean, "PATH": f"{self.bin}:{clean['PATH']}", "PLAYED": str(self.folder),
                            "CCOM_SOCKET_IFNAME": "lo", "CCOM_INIT_TIMEOUT_MS": "40000"}

    def start(self, command, **variables):
        return subprocess.Popen(command, env={**self.environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def test_scripts_are_well_formed(self):
        for name in SCRIPTS:
            subprocess.run(["sh", "-n", str(EXAMPLES / name)], check=True)
            subprocess.run(["bash", "-n", str(EXAMPLES / name)], check=True)
            if shutil.which("shellcheck"):
                subprocess.run(["shellcheck", str(EXAMPLES / name)], check=True)

    def play_pods(self, name, pods, **variables):
        """The command of a manifest's container, once per pod."""
        document = list(yaml.safe_load_all((EXAMPLES / name).read_text()))[-1]
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
        given |= {"CCOM_NRANKS": str(2 * pods), "CCOM_URL": f"tcp://127.0.0.1:{free_port()}", "CCOM_SOCKET_IFNAME": "lo",
                  "CCOM_SECRET_SOURCE": str(mount / "secret")} | variables
        running = [self.start([*container["command"], *arguments], **given, JOB_COMPLETION_INDEX=str(pod), CCOM_HOSTID=f"pod-{pod}")
                   for pod in range(pods)]
        outputs = [each.communicate(timeout=LIMIT)[0] for each in running]
        return [each.returncode for each in running], outputs

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
        script = 'if [ $CCOM_LOCAL_RANK = 1 ]; then sleep 1; exit 7; fi; echo $$ >>"$PLAYED/sleepers"; exec sleep 60'
        running = self.start([str(EXAMPLES / "start-ranks"), "3", "sh", "-c", script])
        running.communicate(timeout=30)
        self.assertEqual(running.returncode, 7)
        for pid in (self.folder / "sleepers").read_text().split():
            self.assertFalse(os.path.exists(f"/proc/{pid}"), "a rank was left behind")

    def test_start_ranks_numbers_its_ranks(self):
        running = self.start([str(EXAMPLES / "start-ranks"), "3", "sh", "-c", 'echo "$CCOM_LOCAL_RANK of $CCOM_LOCAL_NRANKS"'])
        output, _ = running.communicate(timeout=30)
        self.assertEqual((running.returncode, sorted(output.split("\n"))), (0, ["", "0 of 3", "1 of 3", "2 of 3"]))


if __name__ == "__main__":
    PROGRAMS = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])

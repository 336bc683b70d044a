# SPDX-License-Identifier: Apache-2.0
"""Whatever a program reads has the numbers of the "C" locale, in both directions, where the process has chosen one that
writes "0,5": all tools and a job are run so (german.c), and what they print and write is what they print otherwise.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile

from harness.case import TestCase, parameters, program
from harness.processes import PATIENCE
from harness.world import World

BENCH, DOCTOR, STATUS, TOP, TRACE, ENDLESS = (
    program(name) for name in ("ccom-bench", "ccom-doctor", "ccom-status", "ccom-top", "ccom-trace", "rank_program"))
FABRIC = "4*host:2@12.5Gbit+racks:2@200.5Mbit,0.25ms"
TIMES = re.compile(r'"(seconds|planning_seconds|version|host)": ?[^,}]*')


class German(TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        subprocess.run(["localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], check=True)
        cls.german = {"LOCPATH": folder, "LC_ALL": "de_DE.UTF-8", "LD_PRELOAD": program("german.so")}

    def run_tool(self, command, german, codes=(0,)):
        environment = {**os.environ, **(self.german if german else {})}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False)
        self.assertIn(done.returncode, codes, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    @parameters("ccom-topo FABRIC --json", "ccom-topo FABRIC --svg FILE", "ccom-topo trn1.32xlarge --json",
                "ccom-sim FABRIC allreduce -b 1M --json", "ccom-sim FABRIC allreduce -b 1M --trace FILE",
                "ccom-sim FABRIC allreduce -b 1M --json --noise 2 --runs 3 --seed 1",
                "ccom-sim FABRIC allgather -b 64K --write-plan FILE")
    def test_what_it_writes_elsewhere_is_written_by(self, line):
        seen = []
        for german in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder, "file")
                tool, *words = line.replace("FABRIC", FABRIC).replace("FILE", str(file)).split()
                output = self.run_tool([program(tool), *words], german)
                seen.append(file.read_text(encoding="utf-8") if file.exists() else output)
        self.assertEqual(*(TIMES.sub("", text) for text in seen))

    def test_the_doctors_report_is_json(self):
        report = json.loads(self.run_tool([DOCTOR, "--json", "--np", "2"], True))
        self.assertGreater(report["report"]["job"]["small_us"], 0)

    def test_a_jobs_files_are_read_by_all_and_it_reads_theirs(self):
        """Metrics, recordings, tuning, results and log of a job; the tools are as German as the job."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        records, result, tuning = folder / "records", folder / "result.json", folder / "tuning.json"
        records.mkdir()
        command = [BENCH, "allreduce", "--sizes", "8,64K,1M", "-n", "20", "--json", str(result)]
        environment = {"CCOM_TUNING_SAVE": str(tuning), "CCOM_LOG": "info", "CCOM_LOG_FORMAT": "json"}
        for german in (True, False, True):  # the tuning that one saves the next one reads
            job = self.enterContext(World(2)).start(command, **(self.german if german else {}), **environment,
                                                    CCOM_RECORD=str(records), CCOM_METRICS=f"{folder}/metrics-%r")
            for end in job.succeed():
                for line in end.errors.splitlines():
                    self.assertNotIn(json.loads(line)["level"], ("warn", "error"), line)
            rows = [json.loads(line) for line in result.read_text(encoding="utf-8").splitlines()]
            self.assertGreater(len(rows), 2)
            json.loads(tuning.read_text(encoding="utf-8"))
            environment["CCOM_TUNING"] = str(tuning)
            for rank in range(2):
                for line in (folder / f"metrics-{rank}").read_text(encoding="utf-8").splitlines():
                    if not line.startswith("#"):
                        float(line.split()[-1])
        for more in (["--json"], ["--perfetto", str(folder / "trace.json")], ["--tensorboard", str(folder / "board")]):
            texts = [self.run_tool([TRACE, "--job", "1", str(records), *more], german) for german in (False, True)]
            self.assertEqual(*texts)
        json.loads((folder / "trace.json").read_text(encoding="utf-8"))

    def test_what_runs_is_said_in_json(self):
        job = self.enterContext(World(2)).start([ENDLESS, "loop", "8"], **self.german)
        job.wait_for("ready")
        for command in ([STATUS, "--json"], [TOP, "--json", "--once"]):
            seen = json.loads(self.run_tool(command, True, codes=(0, 1, 2)))["communicators"]  # and of other jobs
            of_job = [each["ranks"] for each in seen if any(rank["pid"] in job.pids for rank in each["seen"])]
            self.assertEqual(of_job, [2])

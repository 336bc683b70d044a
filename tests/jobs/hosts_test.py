# SPDX-License-Identifier: Apache-2.0
"""What ccom-status and ccom-top say of a job of several hosts, asked on one of them: empty file systems over folders in
/proc hide the processes of the others, so all that is known of these has come over the job's network."""

import json
import os
import subprocess
import time
import unittest

import jsonschema
from harness.processes import PATIENCE, until
from support import SCHEMA, STATUS, TOP, TestCase, of_job, status

NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]


class FirstHost:
    """What is started here sees processes of the first host only."""

    def __init__(self, job, hosts):
        self.job = job
        hidden = [pid for pid, host in zip(job.pids, hosts) if host != hosts[0]]
        hide = "".join(f"mount -t tmpfs none /proc/{pid} && " for pid in hidden)
        self.enter = [*NAMESPACE, "sh", "-c", hide + 'exec "$0" "$@"']

    def status(self, *arguments):
        """Exit code, JSON and the communicators of this job."""
        code, seen = status(*arguments, prefix=self.enter)
        jsonschema.validate(seen, SCHEMA)
        return code, seen, of_job(seen, self.job)

    def text(self, *arguments):
        return subprocess.run([*self.enter, *arguments], capture_output=True, text=True, check=False).stdout


def ranks_of(communicator):
    return [rank["rank"] for rank in communicator["seen"]]


def is_complete(found):
    return bool(found[2]) and all(len(each["seen"]) == each["ranks"] for each in found[2])


def is_late(found):
    return found[1]["late"] and is_complete(found)


@unittest.skipUnless(subprocess.run([*NAMESPACE, "true"], check=False).returncode == 0, "may not make mount namespaces")
class Hosts(TestCase):
    def start(self, what, hosts, **environment):
        job = self.job(what, len(hosts), hosts, **environment)
        return job, FirstHost(job, hosts)

    def test_all_ranks_of_two_hosts_are_seen(self):
        job, host = self.start("calls", "0011")
        (communicator,) = until(lambda: host.status("--late", "5"), is_complete)[2]
        self.assertEqual((communicator["hosts"], ranks_of(communicator)), (2, [0, 1, 2, 3]))
        self.assertEqual(communicator["no_answer"], [])
        self.assertEqual({rank["pid"] for rank in communicator["seen"]}, set(job.pids))
        for rank in communicator["seen"]:
            is_here = rank["rank"] < 2
            self.assertEqual(rank["told_seconds_ago"] is None, is_here)
            self.assertEqual(rank["calls"] is None, not is_here)
            self.assertIn("seen_program.cc:", rank["call"]["site"])
            self.assertGreaterEqual(rank["call"]["number"], 100)
        names = [rank["host"] for rank in communicator["seen"]]
        self.assertEqual((names[0], names[2]), (names[1], names[3]))
        until(lambda: host.text(STATUS), lambda text: ", other hosts as of " in text)

    def test_a_late_rank_of_another_host_is_named_with_its_line(self):
        job, host = self.start("late", "0011")
        job.wait_for("evaluates", ranks=[3])
        code, seen, _ = until(lambda: host.status("--late", "0.5"), is_late)
        self.assertEqual((code, seen["health"]), (1, "late"))
        (late,) = seen["late"]
        self.assertEqual(late["rank"], 3)
        self.assertIn("not in a call", late["reason"])
        self.assertIn("seen_program.cc:", late["reason"])
        self.assertIn(0, late["waiting"])
        _, seen, _ = until(host.status, lambda found: found[1]["stragglers"])
        self.assertEqual((seen["stragglers"][0]["rank"], seen["stragglers"][0]["passed_on"]), (3, False))
        self.assertRegex(host.text(STATUS, "--late", "0.5"),
                         r"\(training\): rank 3 \(host .*\) is (at .*, )?not in a call")

    def test_ranks_alone_on_three_hosts_see_one_another(self):
        job, host = self.start("late", "012")
        job.wait_for("evaluates", ranks=[2])
        _, seen, (communicator,) = until(lambda: host.status("--late", "0.5"), is_late)
        self.assertEqual(ranks_of(communicator), [0, 1, 2])
        self.assertEqual([late["rank"] for late in seen["late"]], [2])

    def test_parts_of_several_hosts_are_seen_whole(self):
        job, host = self.start("parts", "0011")
        found = until(lambda: host.status("--late", "5"), is_complete)[2]
        self.assertEqual([ranks_of(each) for each in found], [[0, 1, 2, 3], [0, 1], [0, 1]])

    def test_a_deadlock_between_hosts_is_found(self):
        job, host = self.start("deadlock", "01")
        (cycle,) = until(lambda: host.status("--late", "0.3"), lambda found: found[1]["cycles"])[1]["cycles"]
        self.assertEqual(sorted(place["rank"] for place in cycle), [0, 1])

    def test_a_stopped_host_does_not_answer(self):
        job, host = self.start("calls", "0011", CCOM_DEAD_MS="60000")
        for rank in (2, 3):
            job.stop(rank)
        code, seen, (communicator,) = until(host.status, lambda found: found[1]["late"] and found[2][0]["no_answer"])
        self.assertEqual((code, ranks_of(communicator), communicator["no_answer"]), (1, [0, 1], [2, 3]))
        self.assertEqual({late["reason"] for late in seen["late"]}, {"unknown, no answer"})
        self.assertIn("ranks 2 and 3 are unknown, no answer", host.text(STATUS))
        self.assertIn("ranks 2 and 3 are unknown, no answer", host.text(TOP, "--once", "-i", "0.3"))
        for rank in (2, 3):
            job.resume(rank)
        self.assertEqual(ranks_of(until(host.status, is_complete)[2][0]), [0, 1, 2, 3])

    def test_top_shows_them_once_and_live(self):
        job, host = self.start("calls", "01")
        until(lambda: host.text(TOP, "--once", "-i", "0.3"), lambda text: "as of" in text and "unknown" not in text)
        top = subprocess.Popen([*host.enter, TOP, "--json", "-i", "0.2"], stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + PATIENCE
        complete = 0
        for line in top.stdout:
            found = of_job(json.loads(line), job)
            complete = complete + 1 if found and is_complete((0, 0, found)) else 0
            if complete == 5 or time.monotonic() > deadline:
                break
        top.kill()
        top.wait()
        top.stdout.close()
        self.assertEqual(complete, 5, "looks in a row that saw both hosts")

# SPDX-License-Identifier: Apache-2.0
"""What ccom-status and ccom-top say of a job of several hosts, asked on one of them: empty file systems over folders in
/proc hide the processes of the others, so all that is known of these has come over the job's network."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest

import jsonschema
from support import PATIENCE, STATUS, TOP, Job, TestCase, main, of_job, status, until

SCHEMA = json.load(open(os.environ["CCOM_TEST_SCHEMA"], encoding="utf-8"))
NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]


class HostsJob(Job):
    """Each rank is on the host of that name in `hosts`. What on_first() starts sees processes of the first one only."""

    def __init__(self, what, hosts, **environment):
        self.hosts = hosts
        super().__init__(what, len(hosts), CCOM_HOSTID=hosts, **environment)

    def on_first(self):
        hidden = [str(each.pid) for each, host in zip(self.processes, self.hosts) if host != self.hosts[0]]
        hide = "".join(f"mount -t tmpfs none /proc/{pid} && " for pid in hidden)
        return [*NAMESPACE, "sh", "-c", hide + 'exec "$0" "$@"']

    def status(self, *arguments):
        """Exit code, JSON and the communicators of this job."""
        code, seen = status(*arguments, prefix=self.on_first())
        jsonschema.validate(seen, SCHEMA)
        return code, seen, of_job(seen, self)

    def text(self, *arguments):
        return subprocess.run([*self.on_first(), *arguments], capture_output=True, text=True, check=False).stdout


def ranks_of(communicator):
    return [rank["rank"] for rank in communicator["seen"]]


def is_complete(found):
    return bool(found[2]) and all(len(each["seen"]) == each["ranks"] for each in found[2])


@unittest.skipUnless(subprocess.run([*NAMESPACE, "true"], check=False).returncode == 0, "may not make mount namespaces")
class Hosts(TestCase):
    def test_all_ranks_of_two_hosts_are_seen(self):
        with HostsJob("calls", ["a", "a", "b", "b"]) as job:
            (communicator,) = until(is_complete, lambda: job.status("--late", "5"))[2]
            self.assertEqual((communicator["hosts"], ranks_of(communicator)), (2, [0, 1, 2, 3]))
            self.assertEqual(communicator["no_answer"], [])
            self.assertEqual({rank["pid"] for rank in communicator["seen"]}, {each.pid for each in job.processes})
            for rank in communicator["seen"]:
                is_here = rank["rank"] < 2
                self.assertEqual(rank["told_seconds_ago"] is None, is_here)
                self.assertEqual(rank["calls"] is None, not is_here)
                self.assertIn("seen_program.cc:", rank["call"]["site"])
                self.assertGreaterEqual(rank["call"]["number"], 100)
            names = [rank["host"] for rank in communicator["seen"]]
            self.assertEqual((names[0], names[2]), (names[1], names[3]))
            self.assertIn(", other hosts as of ", job.text(STATUS))

    def test_a_late_rank_of_another_host_is_named_with_its_line(self):
        with HostsJob("late", ["a", "a", "b", "b"]) as job:
            job.wait_for("evaluates", [3])
            code, seen, _ = until(lambda found: found[1]["late"] and is_complete(found),
                                  lambda: job.status("--late", "0.5"))
            self.assertEqual((code, seen["health"]), (1, "late"))
            (late,) = seen["late"]
            self.assertEqual(late["rank"], 3)
            self.assertIn("not in a call", late["reason"])
            self.assertIn("seen_program.cc:", late["reason"])
            self.assertIn(0, late["waiting"])
            _, seen, _ = until(lambda found: found[1]["stragglers"], job.status)
            self.assertEqual((seen["stragglers"][0]["rank"], seen["stragglers"][0]["passed_on"]), (3, False))
            self.assertRegex(job.text(STATUS, "--late", "0.5"),
                             r"\(training\): rank 3 \(host .*\) is (at .*, )?not in a call")

    def test_ranks_alone_on_three_hosts_see_one_another(self):
        with HostsJob("late", ["a", "b", "c"]) as job:
            job.wait_for("evaluates", [2])
            _, seen, (communicator,) = until(lambda found: found[1]["late"] and is_complete(found),
                                             lambda: job.status("--late", "0.5"))
            self.assertEqual(ranks_of(communicator), [0, 1, 2])
            self.assertEqual([late["rank"] for late in seen["late"]], [2])

    def test_parts_of_several_hosts_are_seen_whole(self):
        with HostsJob("parts", ["a", "a", "b", "b"]) as job:
            found = until(is_complete, lambda: job.status("--late", "5"))[2]
            self.assertEqual([ranks_of(each) for each in found], [[0, 1, 2, 3], [0, 1], [0, 1]])

    def test_a_deadlock_between_hosts_is_found(self):
        with HostsJob("deadlock", ["a", "b"]) as job:
            (cycle,) = until(lambda found: found[1]["cycles"], lambda: job.status("--late", "0.3"))[1]["cycles"]
            self.assertEqual(sorted(place["rank"] for place in cycle), [0, 1])

    def test_a_stopped_host_does_not_answer(self):
        with HostsJob("calls", ["a", "a", "b", "b"], CCOM_DEAD_MS="60000") as job:
            for process in job.processes[2:]:
                process.send_signal(signal.SIGSTOP)
            code, seen, (communicator,) = until(lambda found: found[1]["late"] and found[2][0]["no_answer"], job.status)
            self.assertEqual((code, ranks_of(communicator), communicator["no_answer"]), (1, [0, 1], [2, 3]))
            self.assertEqual({late["reason"] for late in seen["late"]}, {"unknown, no answer"})
            self.assertIn("ranks 2 and 3 are unknown, no answer", job.text(STATUS))
            self.assertIn("ranks 2 and 3 are unknown, no answer", job.text(TOP, "--once", "-i", "0.3"))
            for process in job.processes[2:]:
                process.send_signal(signal.SIGCONT)
            self.assertEqual(ranks_of(until(is_complete, job.status)[2][0]), [0, 1, 2, 3])

    def test_top_shows_them_once_and_live(self):
        with HostsJob("calls", ["a", "b"]) as job:
            until(lambda text: "as of" in text and "unknown" not in text, lambda: job.text(TOP, "--once", "-i", "0.3"))
            top = subprocess.Popen([*job.on_first(), TOP, "--json", "-i", "0.2"], stdout=subprocess.PIPE, text=True)
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


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What ccom-status says of jobs: healthy ones, late and stopped ranks, deadlocks, deaths, parts; and that its JSON is
of the documented form."""

import subprocess

import jsonschema
from harness.processes import until
from support import SCHEMA, STATUS, TestCase, of_job, status


def checked(*arguments):
    code, seen = status(*arguments)
    jsonschema.validate(seen, SCHEMA)
    return code, seen


class Status(TestCase):
    def test_a_job_that_runs_is_healthy(self):
        job = self.job("calls", 3)
        code, seen = until(lambda: checked("--late", "5"), lambda found: found[0] == 0)
        (communicator,) = of_job(seen, job)
        self.assertEqual(seen["health"], "healthy")
        self.assertEqual((communicator["name"], communicator["ranks"], communicator["hosts"]), ("training", 3, 1))
        self.assertEqual([rank["rank"] for rank in communicator["seen"]], [0, 1, 2])
        self.assertEqual({rank["pid"] for rank in communicator["seen"]}, set(job.pids))
        for rank in communicator["seen"]:
            self.assertGreaterEqual(rank["calls"], 100)
            self.assertEqual(rank["calls"], sum(total["calls"] for total in rank["totals"]))
            self.assertIn("seen_program.cc:", rank["call"]["site"])
            self.assertIn("train_step", rank["call"]["site"])

    def test_a_rank_that_sleeps_in_user_code_is_named_with_its_line(self):
        job = self.job("late", 4)
        job.wait_for("evaluates", ranks=[3])

        def is_right(found):
            return found[1]["stragglers"] and [len(late["waiting"]) for late in found[1]["late"]] == [3]

        found = until(lambda: checked("--late", "0.5"), is_right)
        code, seen = found
        self.assertEqual((code, seen["health"]), (1, "late"))
        (late,) = seen["late"]
        self.assertEqual((late["rank"], late["waiting"]), (3, [0, 1, 2]))
        self.assertIn("not in a call", late["reason"])
        self.assertIn("seen_program.cc:", late["reason"])
        self.assertEqual(seen["stragglers"][0]["rank"], 3)
        self.assertGreater(seen["stragglers"][0]["share"], 0.05)
        text = subprocess.run([STATUS, "--late", "0.5"], capture_output=True, text=True, check=False).stdout
        self.assertIn("ranks 0-2 wait for it", text)

    def test_a_stopped_rank_is_late_although_it_cannot_answer(self):
        job = self.job("calls", 3, CCOM_DEAD_MS="60000")
        job.stop(1)
        code, seen = until(checked, lambda found: any("has not run" in late["reason"] for late in found[1]["late"]))
        self.assertEqual((code, seen["late"][0]["rank"]), (1, 1))
        job.resume(1)

    def test_two_communicators_in_opposite_order_are_a_deadlock(self):
        job = self.job("deadlock", 2)
        code, seen = until(lambda: checked("--late", "0.3"), lambda found: found[1]["cycles"])
        self.assertEqual(code, 1)
        names = {each["communicator"]: each["name"] for each in of_job(seen, job)}
        (cycle,) = seen["cycles"]
        self.assertEqual(sorted(place["rank"] for place in cycle), [0, 1])
        self.assertEqual(len({place["communicator"] for place in cycle}), 2)
        self.assertIn("whole", [names[place["communicator"]] for place in cycle])

    def test_a_killed_rank_is_a_failure(self):
        job = self.job("calls", 3)
        job.kill(2)
        code, seen = until(checked, lambda found: found[0] in (2, 4))
        if code == 2:  # the others may have ended already
            self.assertEqual(seen["health"], "failed")
            self.assertTrue(seen["dead"] or any(each["error"] for each in seen["communicators"]))

    def test_parts_stand_behind_their_whole(self):
        job = self.job("parts", 4)
        communicators = of_job(checked()[1], job)
        self.assertEqual([each["ranks"] for each in communicators], [4, 2, 2])
        self.assertEqual({each["parent"] for each in communicators[1:]}, {communicators[0]["communicator"]})
        self.assertEqual([len(each["seen"]) for each in communicators], [4, 2, 2])

    def test_ranks_alone_on_their_hosts_are_seen(self):
        job = self.job("calls", 1)
        (communicator,) = of_job(checked()[1], job)
        self.assertEqual([rank["rank"] for rank in communicator["seen"]], [0])
        job = self.job("calls", 2, hosts=2)
        (communicator,) = of_job(checked()[1], job)
        self.assertEqual((communicator["hosts"], [rank["rank"] for rank in communicator["seen"]]), (2, [0, 1]))

    def test_of_a_job_that_has_ended_nothing_is_left(self):
        job = self.short_job()
        job.succeed()
        self.assertEqual(of_job(checked()[1], job), [])

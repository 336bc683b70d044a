# SPDX-License-Identifier: Apache-2.0
"""Hosts with two rails for data, of which one dies in the middle of a job, and comes back: calls go on, their results
are right, and the log names the rail. A dead rank is told from a dead rail, and without its last rail a rank has an
error.
"""
from harness.case import TestCase, program
from harness.processes import until
from harness.world import World

BENCH, PROGRAM = program("ccom-bench"), program("rank_program")
DEAD_MS = 3000  # a rail is given up after half of that, of silence in the middle of a call
RAILS = {"CCOM_SOCKET_IFNAME": "eth0", "CCOM_TCP_RAILS": "eth1,eth2", "CCOM_TRANSPORT": "shm,tcp",
         "CCOM_DEAD_MS": str(DEAD_MS), "CCOM_TIMEOUT_MS": "60000"}
NOTICED_WITHIN = 30


class Rails(TestCase):
    def waits_for_log(self, job, text):
        until(job.all_errors, lambda said: text in said, NOTICED_WITHIN)

    def computes_while(self, fault, lost, links=3, **environment):
        """Some hundred checked calls of several sizes; `fault` happens after some. `lost`: how the addresses of the
        rail begin.
        """
        world = self.enterContext(World(4, 2, "namespaces", links=links, rate="1gbit"))
        command = [BENCH, "allreduce,alltoall", "--sizes", "8,300K,3M", "-n", "40", "-w", "1", "--check", "every",
                   "--timeout", "300"]
        job = world.start(command, **{**RAILS, **environment})
        job.wait_for("307200", 120, [0])  # is being measured, or was
        fault(world.hosts)
        self.assertIn("# wrong values: 0 OK", job.succeed(300)[0].output)
        self.names_the_rail(job, lost)

    def names_the_rail(self, job, lost):
        """A process that has connections to the other host says so once, whatever their number: to each of its two
        ranks, for each of the program's two communicators.
        """
        said = 0
        for rank in job.ranks:
            others = "[23]" if rank < 2 else "[01]"
            losses = [line for line in job.errors(rank).splitlines() if "degraded" in line]
            self.assertLessEqual(len(losses), 1, losses)
            for line in losses:
                self.assertRegex(line, rf"rank {rank}: degraded: a rail to rank {others} is lost \(channel 0\): "
                                       rf"{lost}\S+ - {lost}")
            said += len(losses)
        self.assertGreaterEqual(said, 1)

    def test_results_are_right_after_one_of_two_cables_is_pulled(self):
        """The other one also has the control connections."""
        self.computes_while(lambda hosts: hosts.cut(1, link=1), "10.77.1.", links=2,
                            CCOM_SOCKET_IFNAME="eth0,eth1", CCOM_TCP_RAILS="")

    def test_results_are_right_after_a_pulled_cable(self):
        self.computes_while(lambda hosts: hosts.cut(1, link=1), "10.77.1.")

    def test_results_are_right_after_a_black_hole_inside_tls(self):
        self.computes_while(lambda hosts: hosts.black_hole(0, link=2), "10.77.2.", CCOM_TLS="1")

    def test_results_are_right_where_pairs_connect_on_use_before_and_after_a_pulled_cable(self):
        """Those that alltoall alone needs connect when one rail is dead."""
        self.computes_while(lambda hosts: hosts.cut(1, link=1), "10.77.1.", CCOM_CONNECT="use")

    def starts(self):
        world = self.enterContext(World(4, 2, "namespaces", links=3))
        job = world.start([PROGRAM, "loop", "65536"], **RAILS)
        job.wait_for("ready")
        return world.hosts, job

    def test_a_rail_that_comes_back_is_used_and_the_other_may_die(self):
        hosts, job = self.starts()
        for link in (1, 2, 1):
            hosts.black_hole(1, link)
            self.waits_for_log(job, f"10.77.{link}.1")
            hosts.heal(1, link)
            self.waits_for_log(job, "in use again")
        self.assertNotIn("failed", "".join(map(job.output, job.ranks)))

    def test_a_dead_rank_is_told_from_a_dead_rail(self):
        hosts, job = self.starts()
        hosts.cut(1, link=2)
        self.waits_for_log(job, "degraded: a rail to rank")
        job.kill(3)
        for line in job.wait_for("failed", NOTICED_WITHIN, [0, 1, 2]):
            self.assertRegex(line, r"^failed 6 \[3\] ")

    def test_a_dead_host_is_no_dead_rail(self):
        hosts, job = self.starts()
        for link in range(3):
            hosts.black_hole(1, link)
        said = job.wait_for("failed", NOTICED_WITHIN)
        self.assertRegex(said[0], r"^failed 6 \[2,3\] ")
        self.assertNotIn("degraded", job.all_errors())

    def test_without_the_last_rail_there_is_an_error(self):
        hosts, job = self.starts()
        hosts.cut(1, link=1)
        self.waits_for_log(job, "degraded: a rail to rank")
        hosts.cut(1, link=2)
        said = job.wait_for("failed", NOTICED_WITHIN)
        # Each side blames the other and tells its host; who is told first names that one.
        self.assertRegex(said[0], r"^failed 6 \[[0-3]\] .*(no response from 10\.77\.2\.|Connection timed out)")

# SPDX-License-Identifier: Apache-2.0
"""A job's start among strangers: the part of bench/faults that --strangers runs.

Four ranks wait until all have the id, so the rendezvous server listens, and start together. The time of a start: from
the last rank's call of ccomCommInitRank to the last one's return. Three arms take turns: alone, among strangers, alone
again; the last one shows what the ratio is worth. Alone means that the same crowd tries ports at which nobody listens.

The strangers of a start are 2 N connections to each port that listens: N that say nothing, and N that send 400 bytes of
garbage and connect again when they have been closed. At the rendezvous server all are there before the start. Of the
ports that listen during the start alone (control connections, tcp) they do not know when, so they try all ports of the
job's CCOM_PORT_RANGE every millisecond. The crowd's own work is not the library's: it has the last core for itself and
the ranks the others, in all arms, and new connections are paced, PACE of them a second together.
"""
import os
import resource
import select
import signal
import socket
import struct
import time

GARBAGE = b"\xa5" * 400
CONNECT_TIME = struct.pack("ll", 0, 10_000)  # 10 ms
PORTS = 16  # of a job
LEAST_TURNS = 400  # of the crowd in a second; it has some 700 if nothing else wants its core, up to a pace of 8,000
SETTLING = 0.5  # seconds from the first connection to the start: less than the two for which an idle one may stay


class Strangers:
    """A process with the crowd of one start. Returns when all who can are connected."""

    def __init__(self, ports, count, pace, core):
        ready, said = os.pipe()
        self.results, results = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                os.sched_setaffinity(0, {core})
                Crowd(ports, count, pace).run(said, results)
            finally:
                os._exit(1)
        os.close(said)
        os.close(results)
        os.read(ready, 1)
        os.close(ready)

    def end(self):
        """How many connections were made since, and how often a second the crowd had its turn."""
        os.kill(self.process, signal.SIGTERM)
        made = os.read(self.results, 64)
        os.waitpid(self.process, 0)
        os.close(self.results)
        return int(made.split()[0]), float(made.split()[1])


class Crowd:
    def __init__(self, ports, count, pace):
        self.count, self.pace = count, pace
        self.idle = {port: [] for port in ports}
        self.loud = {port: 0 for port in ports}  # how many are connected
        self.port_of = {}  # of loud sockets, by descriptor
        self.sockets = {}
        self.events = select.epoll()
        self.made = 0
        self.is_over = False

    def connect(self, port):
        """None: nobody listens there."""
        stranger = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, CONNECT_TIME)
        try:
            stranger.connect(("127.0.0.1", port))
        except BlockingIOError:  # the port's queue is full
            pass
        except OSError:
            stranger.close()
            return None
        self.made += 1
        return stranger

    def add_idle(self, port):
        stranger = self.connect(port)
        if stranger:
            self.idle[port].append(stranger)
        return stranger is not None

    def add_loud(self, port):
        stranger = self.connect(port)
        if not stranger:
            return False
        try:
            stranger.send(GARBAGE, socket.MSG_DONTWAIT)
        except OSError:
            pass
        self.events.register(stranger, select.EPOLLRDHUP)
        self.sockets[stranger.fileno()] = stranger
        self.port_of[stranger.fileno()] = port
        self.loud[port] += 1
        return True

    def drop_closed(self):
        for descriptor, _ in self.events.poll(0):
            self.events.unregister(descriptor)
            self.sockets.pop(descriptor).close()
            self.loud[self.port_of.pop(descriptor)] -= 1

    def come(self, most):
        """At most that many to all ports that listen."""
        self.drop_closed()
        for port in sorted(self.idle, key=lambda port: len(self.idle[port]) + self.loud[port]):  # those that open last
            listens = True
            while most >= 1 and listens and min(len(self.idle[port]), self.loud[port]) < self.count:
                add = self.add_idle if len(self.idle[port]) < min(self.count, self.loud[port] + 1) else self.add_loud
                listens = add(port)
                most -= listens
        return most

    def run(self, said, results):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "is_over", True))
        begin = time.monotonic()
        self.come(len(self.idle) * 2 * self.count)
        while time.monotonic() < begin + SETTLING:
            time.sleep(0.01)
            self.drop_closed()
        os.write(said, b"!")
        self.made, credit, begin = 0, 0.0, time.monotonic()
        turns, then = 0, begin
        while not self.is_over:
            time.sleep(0.001)
            now = time.monotonic()
            credit = self.come(min(credit + (now - then) * self.pace, self.pace / 100 + 1))
            then = now
            turns += 1
        os.write(results, f"{self.made} {turns / (time.monotonic() - begin)}".encode())
        os._exit(0)


def time_of_start(job, wait_for, ranks, crowd):
    """One start in milliseconds, and how many connections came meanwhile; crowd(): makes the strangers. None if
    something else has kept the crowd from its core: that start had no strangers."""
    wait_for(job, "waits", range(ranks))
    strangers = crowd()
    for rank in range(ranks):
        job.kill(rank, signal.SIGUSR1)
    times = wait_for(job, "started", range(ranks)).values()
    made, turns = strangers.end()
    if turns < LEAST_TURNS:
        return None
    return (max(int(end) for _, _, end in times) - max(int(begin) for _, begin, _ in times)) / 1e6, made

# SPDX-License-Identifier: Apache-2.0
"""CCOM_METRICS of real ranks, read by Prometheus's own parser of OpenMetrics: a file, a loopback port, and clients of
the port that do not behave."""

import os
import socket
import tempfile
import urllib.error
import urllib.request

from harness.processes import until
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from support import TestCase


def parsed(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def free_ports():
    """The first of two."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue


def fetch(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return answer.headers["content-type"], answer.read().decode()


def total(families, name):
    return sum(sample.value for sample in families[name].samples if sample.name == name + "_total")


class Metrics(TestCase):
    def test_a_file_tells_what_the_rank_did(self):
        with tempfile.TemporaryDirectory() as folder:
            self.short_job(CCOM_METRICS=f"{folder}/ccom-%r.prom").succeed()
            self.assertEqual(sorted(os.listdir(folder)), ["ccom-0.prom", "ccom-1.prom"])
            families = parsed(open(f"{folder}/ccom-1.prom", encoding="utf-8").read())
            calls = [sample for sample in families["ccom_calls"].samples if sample.labels["operation"] == "allreduce"]
            self.assertEqual([(sample.value, sample.labels["rank"], sample.labels["up_to_bytes"], sample.labels["name"])
                              for sample in calls], [(10, "1", "64", "short")])
            self.assertEqual(total(families, "ccom_data_bytes"), 80)
            self.assertEqual(families["ccom_healthy"].samples[0].value, 1)
            self.assertEqual(families["ccom_data_bytes"].unit, "bytes")
            self.assertEqual(families["ccom_call_seconds"].type, "summary")

    def test_a_file_is_always_whole_and_its_counters_never_fall(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        job = self.job("calls", 2, CCOM_METRICS=f"{folder}/%r")
        last, changes = 0, 0

        def look():
            nonlocal last, changes
            calls = total(parsed(open(f"{folder}/0", encoding="utf-8").read()), "ccom_calls")
            self.assertGreaterEqual(calls, last)
            last, changes = calls, changes + (calls > last)
            return changes

        until(look, lambda changes: changes >= 3)
        self.assertTrue(all(process.poll() is None for process in job.processes))

    def test_a_port_answers_prometheus(self):
        port = free_ports()
        self.job("calls", 2, CCOM_METRICS=f"tcp://127.0.0.1:{port}")
        for rank in range(2):
            kind, text = fetch(port + rank)
            self.assertIn("application/openmetrics-text", kind)
            samples = parsed(text)["ccom_ranks"].samples
            self.assertEqual([(sample.labels["rank"], sample.value) for sample in samples], [(str(rank), 2)])
        with self.assertRaises(urllib.error.HTTPError) as refused:
            fetch(port, "/other")
        self.assertEqual(refused.exception.code, 404)
        refused.exception.close()

    def test_clients_that_do_not_behave_are_no_matter(self):
        port = free_ports()
        job = self.job("calls", 2, CCOM_METRICS=f"tcp://127.0.0.1:{port}")
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        silent[0].close()
        for junk in (b"\0" * 100000, b"GET / HTTP/1.1\r\nX: " + b"y" * 100000, b"\r\n\r\n",
                     b"POST /metrics HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                try:
                    client.sendall(junk)
                    client.settimeout(20)
                    while client.recv(65536):
                        pass
                except OSError:
                    pass
        before = total(parsed(fetch(port)[1]), "ccom_calls")
        until(lambda: total(parsed(fetch(port)[1]), "ccom_calls"), lambda calls: calls > before + 100)
        self.assertTrue(all(process.poll() is None for process in job.processes))
        for client in silent[1:]:
            client.close()

    def test_a_full_disk_or_a_taken_port_does_not_end_the_job(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.short_job(CCOM_METRICS=f"tcp://127.0.0.1:{taken.getsockname()[1]}").succeed()
        self.short_job(CCOM_METRICS="/nonexistent/%r").succeed()

    def test_addresses_that_other_hosts_reach_are_refused(self):
        for value in ("tcp://0.0.0.0:9400", "tcp://10.0.0.7:9400", "http://127.0.0.1:9400", "/tmp/same-for-both",
                      "/tmp/%x"):
            job = self.short_job(CCOM_METRICS=value)
            self.assertTrue(all(end.code != 0 for end in job.wait()), value)

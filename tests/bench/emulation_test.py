# SPDX-License-Identifier: Apache-2.0
"""What bench/emulation makes of times: ratios, and where the emulation orders algorithms otherwise than the simulation.
"""
import argparse
import importlib.machinery
import importlib.util
import os
import sys
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, "bench")
sys.path.insert(0, BENCH)
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("emulation", os.path.join(BENCH, "emulation"))
emulation = importlib.util.module_from_spec(importlib.util.spec_from_loader("emulation", LOADER))
LOADER.exec_module(emulation)


class Ordering(unittest.TestCase):
    def test_agrees_where_the_order_is_the_same(self):
        self.assertEqual(emulation.disagreements({"a": 10, "b": 20, "c": 40}, {"a": 15, "b": 16, "c": 90}, 0.05), [])

    def test_names_a_pair_that_is_the_other_way_round(self):
        self.assertEqual(emulation.disagreements({"a": 10, "b": 20}, {"a": 30, "b": 16}, 0.05), [("a", "b")])

    def test_times_that_are_close_have_no_order(self):
        self.assertEqual(emulation.disagreements({"a": 100, "b": 104}, {"a": 30, "b": 16}, 0.05), [])


class Table(unittest.TestCase):
    OPTIONS = argparse.Namespace(collective="allreduce", scale="1e-3", close=0.05, repeats=1)

    def test_has_a_ratio_for_each_algorithm_and_a_verdict_for_each_size(self):
        lines, farthest, differing = emulation.table(self.OPTIONS, "ring:4", 4, {("ring", 8): 11.0, ("tree", 8): 9.0},
                                                     {("ring", 8): 10.0, ("tree", 8): 20.0})
        self.assertIn("1.100", lines[2])
        self.assertIn("0.450", lines[3])
        self.assertIn("differs: ring before tree", lines[4])
        self.assertAlmostEqual(farthest, 0.55)
        self.assertEqual(differing, 1)

    def test_leaves_out_what_was_not_simulated(self):
        lines, farthest, differing = emulation.table(self.OPTIONS, "ring:4", 4, {("ring", 8): 11.0, ("odd", 8): 9.0},
                                                     {("ring", 8): 10.0})
        self.assertFalse(any("odd" in line for line in lines))
        self.assertIn("agrees", lines[-2])
        self.assertAlmostEqual(farthest, 0.1)
        self.assertEqual(differing, 0)

    def test_takes_the_median_of_the_runs(self):
        times = iter((5.0, 30.0, 7.0))
        original, emulation.emulate_once = emulation.emulate_once, lambda *_: {("ring", 8): next(times)}
        try:
            self.assertEqual(emulation.emulate(argparse.Namespace(repeats=3), "ring:4", 4), {("ring", 8): 7.0})
        finally:
            emulation.emulate_once = original

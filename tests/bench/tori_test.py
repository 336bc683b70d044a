#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/tori and bench/scale without a simulator: the fabric they write, the search, the tables."""
import importlib.machinery
import importlib.util
import json
import os
import sys
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench")
sys.path.insert(0, BENCH)
sys.dont_write_bytecode = True


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(BENCH, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


tori, scale = load("tori"), load("scale")
PARAMETERS = {"post_ns": 700.0, "receive_ns": 900.0, "bytes_per_second": 5e9, "reduce_bytes_per_second": 16e9,
              "rendezvous_bytes": 20000.0, "rendezvous_ns": 3000.0, "reduce_ns": 0.0, "copy_bytes_per_second": 6e9}


class PretendPredictor:
    """A message: what both ends and the way take, bytes at the link's rate and again at the reductions'."""

    def predict(self, _collective, _shape, sizes, parameters):
        return {size: (self.time(size, parameters), "line") for size in sizes}

    @staticmethod
    def time(size, parameters):
        seconds = size / parameters["bytes_per_second"] + size / parameters["reduce_bytes_per_second"]
        short = size < parameters["rendezvous_bytes"]
        protocol = size / parameters["copy_bytes_per_second"] * 1e9 if short else parameters["rendezvous_ns"]
        return (tori.LATENCY_NS + parameters["post_ns"] + parameters["receive_ns"] + protocol) / 1e3 + seconds * 1e6


class Tori(unittest.TestCase):
    def test_a_torus_has_two_links_per_dimension_and_one_where_it_is_two_long(self):
        for dims, links in (([4, 4], 64), ([2, 2, 2], 24), ([4, 4, 4], 384), ([64, 64], 16384)):
            fabric = tori.torus(dims, PARAMETERS)
            pairs = [(link[0], link[1]) for link in fabric["links"]]
            self.assertEqual(len(set(pairs)), links)
            self.assertEqual(pairs, sorted(pairs))
            self.assertTrue(all((b, a) in set(pairs) for a, b in pairs[:100]))

    def test_the_last_dimension_runs_fastest(self):
        pairs = [(link[0], link[1]) for link in tori.torus([3, 4], PARAMETERS)["links"]]
        self.assertEqual([b for a, b in pairs if a == 0], [1, 3, 4, 8])

    def test_the_search_explains_times_that_the_model_made(self):
        predictor = PretendPredictor()
        rows = [("allreduce", "2x2x2", 8**k, predictor.time(8**k, PARAMETERS)) for k in range(1, 9)]
        found = tori.calibrate(predictor, rows)
        self.assertLess(tori.misfit(predictor, rows, found), 0.05)

    def test_allreduces_that_the_network_does_itself_are_left_out(self):
        rows = tori.read_rows(tori.DATA)
        self.assertEqual([row[:3] for row in rows if tori.is_in_hardware(row)],
                         [("allreduce", shape, 4) for shape in ("2x2x2", "4x4x4", "64x64")])

    def test_the_predictions_in_the_repository_are_as_near_as_the_page_says(self):
        with open(os.path.join(BENCH, "data", "torus_predictions.json"), encoding="utf-8") as file:
            found = json.load(file)
        medians = tori.shape_medians(found["rows"])
        self.assertLessEqual(medians["all", "others"], 0.121)
        self.assertEqual(len(found["rows"]),
                         len([row for row in tori.read_rows(tori.DATA) if not tori.is_in_hardware(row)]))
        self.assertEqual(set(found["parameters"]), set(tori.GRID))

    def test_the_data_has_the_rows_of_all_shapes(self):
        rows = tori.read_rows(tori.DATA)
        self.assertEqual(len(rows), 76)
        self.assertEqual({row[1] for row in rows}, {"2x2x2", "4x4x4", "64x64"})


class Scale(unittest.TestCase):
    def test_sizes_with_less_than_an_element_per_rank_are_left_out_where_parts_belong_to_ranks(self):
        self.assertTrue(scale.runs_at("allreduce", 8, 1024))
        self.assertFalse(scale.runs_at("allgather", 1024, 1024))
        self.assertTrue(scale.runs_at("allgather", 4096, 1024))
        self.assertTrue(scale.runs_at("reduce", 1 << 30, 1024))
        self.assertFalse(scale.runs_at("reduce", 1 << 30, 4096))

    def test_others_than_the_choice_are_for_allreduces_of_few_ranks_and_all_hosts_for_long_messages_of_1024(self):
        asked = [plan for plan in scale.PLANS if scale.is_asked("64*m/1", "allreduce", plan, 1 << 28, 1024)]
        self.assertEqual(asked, [scale.CHOSEN, scale.RING, scale.HIERARCHICAL, scale.ALL_HOSTS])
        asked = [plan for plan in scale.PLANS if scale.is_asked("64*m/1", "alltoall", plan, 1 << 28, 1024)]
        self.assertEqual(asked, [scale.CHOSEN, scale.ALL_HOSTS])
        asked = [plan for plan in scale.PLANS if scale.is_asked("256*m/1", "allreduce", plan, 1 << 28, 4096)]
        self.assertEqual(asked, [scale.CHOSEN])

    def test_a_figure_shows_the_plans_that_ran(self):
        done = {"time_us": 5.0, "bound_us": 4.0}
        sizes = {8: {scale.CHOSEN: done, scale.RING: {"failed": "more than 60 s"}}, 1024: {scale.CHOSEN: done}}
        svg = scale.draw("4*ring:2", "allreduce", sizes, 8)
        self.assertIn(scale.CHOSEN, svg)
        self.assertNotIn(scale.RING, svg)

    def test_the_page_has_the_tables_of_the_data_and_no_case_without_a_time(self):
        with open(scale.DATA, encoding="utf-8") as file:
            self.assertEqual([r for r in json.load(file)["records"] if "time_us" not in r], [])
        with open(scale.PAGE, encoding="utf-8") as file:
            self.assertEqual(scale.with_tables(file.read(), scale.DATA), open(scale.PAGE, encoding="utf-8").read())

    def test_what_exceeds_the_goal_is_bold(self):
        self.assertEqual(scale.ratio_cell({"time_us": 3.0, "bound_us": 2.0}), "1.50")
        self.assertEqual(scale.ratio_cell({"time_us": 3.2, "bound_us": 2.0}), "**1.60**")
        self.assertEqual(scale.ratio_cell({"failed": "more than 60 s"}), "more than 60 s")

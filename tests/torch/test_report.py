# SPDX-License-Identifier: Apache-2.0
"""ccom.torch.report: who made the others wait, how much, and before which line of Python."""
import re

import launch
import pytest

pytestmark = pytest.mark.ccom


def require_rank_3(entry, known_ranks):
    worst = entry["report"]["stragglers"][0]
    assert worst["rank"] == 3 and worst["seen_by"] == 3 and not worst["passed_on"], entry
    line = launch.line_of("late.py", "# line of the sum")
    assert worst["place"]["site"] == f"late.py:{line} (step)" and worst["place"]["collective"] == "allreduce"
    assert 0.2 < worst["share"] <= 1 and worst["place"]["seconds"] > worst["seconds"] / 2
    sentence = (r"rank 3 made the others wait [0-9]+ % of the time .* as 3 of 3 say; .* before allreduce at "
                rf"late\.py:{line} \(step\), in [0-9]+ of [0-9]+ waits, the longest for .* before #[0-9]+")
    assert re.search(sentence, entry["text"]), entry["text"]
    assert entry["report"]["known_ranks"] == 4 and entry["host"]["known_ranks"] == known_ranks


def test_a_report_names_the_late_rank_its_share_and_the_line():
    entries = launch.ranks("late.py", count=4).told
    assert len(entries) == 4
    for entry in entries:
        require_rank_3(entry, known_ranks=4)
    assert len({str(entry["report"]) for entry in entries}) == 1, "all ranks say the same"


def test_a_report_is_about_all_hosts():
    entries = launch.ranks("late.py", count=4, per_rank=lambda rank: {"CCOM_HOSTID": f"host{rank // 2}"}).told
    assert all(entry["report"]["known_ranks"] == 4 and entry["host"]["known_ranks"] == 2 for entry in entries)
    assert all(entry["report"]["stragglers"][0]["rank"] == 3 for entry in entries), entries[0]["text"]


def test_the_end_of_a_group_says_it_too():
    job = launch.ranks("late.py", count=4, per_rank=lambda rank: {"CCOM_REPORT": "1"})
    said = job.output
    assert len(re.findall(r"waits since the communicator started", said)) == 1 + 4, said  # four print the report
    assert re.search(r"\(comm\).*rank 3 made the others wait [0-9]+ % of the time", said), said

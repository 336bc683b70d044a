# SPDX-License-Identifier: Apache-2.0
"""The only rule by which a run leaves a test case out. Pure: no clock, no files.

A run of a part (the release build, torch, ...) knows all its cases. It executes, in this order,

1. the turn: the cases that have not run for longest, as many as cost a tenth of the time of all;
2. what is due: each case that has not passed with what it depends on now, those that have ever run first: what they
   depend on has changed, or they failed.

All others are spared. Where several cases have not run for equally long, a hash of the commit and the case decides,
so two commits on fresh machines begin with different cases. The turn comes first, so that no stream of changes can
keep a case out: where a run has time for the turn, each case runs at least once in any 12 runs.
"""

import dataclasses
import hashlib

SHARE_OF_TURN = 10  # the turn costs 1/10 of all cases
NEVER = -1


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    digest: str  # of all that the case depends on


@dataclasses.dataclass(frozen=True)
class Record:
    """What the ledger knows of a case."""

    digest: str = ""  # with which it passed last; "" if it never did, or failed since
    run: int = NEVER  # the last run of its part that executed it
    seconds: float | None = None


@dataclasses.dataclass(frozen=True)
class Choice:
    turn: list
    due: list
    spared: list

    @property
    def todo(self):
        return self.turn + self.due


def estimate(records, default=2.0):
    """How long a case takes of which nothing is known: the median of those that are known."""
    known = sorted(record.seconds for record in records.values() if record.seconds is not None)
    return known[len(known) // 2] if len(known) > 20 else default


def rank_in_commit(commit, name):
    return hashlib.sha256(f"{commit}\0{name}".encode()).digest()


def choose(cases, records, commit):
    """cases: all of a part; records: {name: Record}; commit: what is tested."""
    nothing = Record()
    guess = estimate(records)

    def seconds(case):
        known = records.get(case.name, nothing).seconds
        return guess if known is None else known

    oldest_first = sorted(
        cases, key=lambda case: (records.get(case.name, nothing).run, rank_in_commit(commit, case.name))
    )
    share = sum(map(seconds, cases)) / SHARE_OF_TURN
    turn, due, spared, spent = [], [], [], 0.0
    for case in oldest_first:
        if spent < share:
            turn.append(case)
            spent += seconds(case)
        elif records.get(case.name, nothing).digest != case.digest:
            due.append(case)
        else:
            spared.append(case)
    due.sort(key=lambda case: case.name not in records)
    return Choice(turn, due, spared)

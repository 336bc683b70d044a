# SPDX-License-Identifier: Apache-2.0
"""The mode of the machine during a run: are the processors near to each other or far apart? Pure.

Virtual processors move between physical cores. What a run measured is compared only with what others measured in the
same mode. bench/peers/passing.c tells it before and after each run: a record's passing_us is those two figures, or None
where there is one processor only, or from before there was such a probe.
"""
import math

NEAR, FAR, CHANGING, UNKNOWN = "near", "far", "changing", ""
# Two probes of one run that differ by more than this say that the processors moved meanwhile.
STEADY = 1.6
# Processors are far apart if passing bytes between them takes more than this times the fastest probe of all.
FAR_APART = 2.0
# A mode with fewer repeats of ccom has a table of its own only if there is no other.
ENOUGH = 2


def is_steady(probes):
    return not probes or max(probes) <= STEADY * min(probes)


def settled(run, again):
    """Calls run(), which returns what it found and its probes, until these agree, at most 1 + `again` times. Returns
    what the last one found, and the probes of those before it."""
    discarded = []
    while True:
        found, probes = run()
        if is_steady(probes) or len(discarded) == again:
            return found, discarded
        discarded.append(probes)


def fastest(records):
    """The smallest probe of a run in which the processors did not move, or None if there is none; of the slower nine
    tenths of the runs: one that fell into a move, or found both virtual processors on one core, is much faster than any
    between two.
    """
    probes = [record["passing_us"] for record in records if record.get("passing_us")]
    steady = sorted(min(pair) for pair in [pair for pair in probes if is_steady(pair)] or probes)
    return steady[len(steady) // 10] if steady else None


def most_near(records):
    """The longest probe of near processors, or None if there was none."""
    best = fastest(records)
    return FAR_APART * best if best else None


def mode_of(record, best):
    """`best`: fastest() of the whole comparison."""
    probes = record.get("passing_us")
    if not probes:
        return UNKNOWN
    if not is_steady(probes):
        return CHANGING
    return FAR if math.sqrt(probes[0] * probes[1]) > FAR_APART * best else NEAR


def by_mode(records, best=None):
    """{mode: records}, in the order near, far, changing, unknown. `best`: if these records are not the whole
    comparison.
    """
    best = best or fastest(records)
    groups = {mode: [record for record in records if mode_of(record, best) == mode]
              for mode in (NEAR, FAR, CHANGING, UNKNOWN)}
    return {mode: group for mode, group in groups.items() if group}


def shown(records, best, counts=lambda record: True):
    """Of the records of one cell: {mode: records} of the modes that deserve a table, at least the mode of most.
    `counts`: whether a record's repeat is one of the ENOUGH."""
    groups = by_mode(records, best)
    enough = {mode: group for mode, group in groups.items()
              if mode != CHANGING and len({record["repeat"] for record in group if counts(record)}) >= ENOUGH}
    return enough or dict([max(groups.items(), key=lambda item: len(item[1]))])


def runs(records):
    """The probes of each run; a run has a record per size."""
    return {(record["repeat"], record["config"], record["collective"], record["ranks"]): record["passing_us"]
            for record in records}


def describe(records, discarded):
    """One line about the modes of a comparison. `discarded`: how many runs were repeated."""
    best = fastest(records)
    if best is None:
        return "distance of the processors: not measured"
    parts = []
    for mode, group in by_mode(records).items():
        if mode != UNKNOWN:
            found = runs(group).values()
            parts.append(f"{mode} in {len(found)} runs ({min(map(min, found)):.1f}-{max(map(max, found)):.1f} us)")
    return f"32 KiB from one processor to another: {', '.join(parts)}; {discarded} runs were discarded and repeated"

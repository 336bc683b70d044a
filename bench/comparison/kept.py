# SPDX-License-Identifier: Apache-2.0
"""What bench/tables has measured, in files that hold the parts of one machine, transport and number of ranks.

A part is one collective with one number of ranks over one transport. Such a file is one of bench/compare (bench/plot
draws it), with `transport`, and `parts`: for each the date, the seconds and the number of its runs.
"""
import dataclasses
import glob
import json
import os

from comparison import bars, machine, modes, peers, results

RANKS = (2, 4, 8)
LISTS = ("parts", "failures", "discarded", "records")


@dataclasses.dataclass(frozen=True)
class Part:
    transport: str
    collective: str
    ranks: int

    @property
    def name(self):
        return ("tcp-" if self.transport == "tcp" else "") + f"{self.collective}-{self.ranks}"

    @property
    def has_bars(self):
        return bars.row_of(self.transport, self.collective, self.ranks, "ccom") is not None

    def holds(self, record):
        return (record["collective"], record["ranks"]) == (self.collective, self.ranks)


PARTS = tuple(Part(transport, collective, ranks) for transport in ("shm", "tcp") for ranks in RANKS
              for collective in peers.ALL)


def path_of(folder, part):
    """Named by the processor at hand."""
    over = "tcp-" if part.transport == "tcp" else ""
    return os.path.join(folder, f"{machine.slug()}-tables-{over}{part.ranks}.json")


def machine_of(path):
    return os.path.basename(path).partition("-tables-")[0]


def read(path):
    """None: nothing is kept there."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def write(path, document):
    """A line per record, and all of it or nothing."""
    heads = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in document.items() if key not in LISTS]
    lists = [f"{json.dumps(key)}: [" + ",".join(f"\n{json.dumps(entry)}" for entry in document[key]) + "]"
             for key in LISTS]
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("{" + ",\n".join(heads + lists) + "}\n")
    os.replace(path + ".new", path)


def machines(folder):
    """{name: documents} of all files in a folder, by the name of the machine."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "*-tables-*.json"))):
        found.setdefault(machine_of(path), []).append(read(path))
    return found


def records_of(documents):
    return [record for document in documents for record in document["records"]]


def without(document, part):
    """The document as if the part had not been measured."""
    return {**document, **{key: [entry for entry in document[key] if not part.holds(entry)] for key in LISTS}}


def forget(path, part):
    """Leaves a part out of a file, and removes one that holds nothing else."""
    document = read(path)
    left = without(document, part) if document else None
    if left and left["parts"]:
        write(path, left)
    elif left:
        os.remove(path)


def added(document, part, run):
    """The document (or None) with one more run of a part: run is what comparison.measuring has found."""
    before = document or {"transport": part.transport, "machine": {}, "versions": {}, **{key: [] for key in LISTS}}
    runs, seconds = runs_of(before, part), sum(entry["seconds"] for entry in before["parts"] if part.holds(entry))
    entry = {"collective": part.collective, "ranks": part.ranks, "date": run["date"],
             "seconds": seconds + run["seconds"], "runs": runs + 1}
    # What every record would say is left out: the peer is the configuration, and all are verified.
    records = [{key: value for key, value in record.items() if key not in ("peer", "verified")}
               for record in run["records"]]
    return {**before, "machine": run["machine"], "versions": {**before["versions"], **run["versions"]},
            "parts": [other for other in before["parts"] if not part.holds(other)] + [entry],
            "failures": before["failures"] + run["failures"], "discarded": before["discarded"] + run["discarded"],
            "records": before["records"] + records}


def runs_of(document, part):
    return sum(entry["runs"] for entry in document["parts"] if part.holds(entry)) if document else 0


def next_repeat(document, part):
    """The number of the first repeat of another run."""
    return max((record["repeat"] + 1 for record in document["records"] if part.holds(record)), default=0) \
        if document else 0


def near_repeats(documents, document, part):
    """In how many repeats of a part each configuration of ours has met near processors. `documents`: all of the
    machine, which say together what is near."""
    best = modes.fastest(records_of(documents))
    found = {}
    for record in document["records"] if document else []:
        if part.holds(record) and results.is_ours(record["config"]):
            is_near = modes.mode_of(record, best) in (modes.NEAR, modes.UNKNOWN)
            found.setdefault(record["config"], set()).update([record["repeat"]] if is_near else [])
    return min(map(len, found.values()), default=0)

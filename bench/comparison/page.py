# SPDX-License-Identifier: Apache-2.0
"""docs/performance.md, from what bench/tables keeps. Pure."""
from comparison import bars, kept, modes, peers, results

METRIC = "loop_us"
OURS = ("ccom", "ccom-mapped")
WANTED = 5  # repeats
HEAD = """# Performance

`bench/tables` has made this page from the figures in `bench/baselines/*-tables-*.json`, and makes it again from them
with `--page`; changes belong there. What is measured, how, and against which libraries:
[bench/README.md](../bench/README.md#other-libraries); figures of other machines, and what was found where ccom is
behind, stand there too.

Each figure is the median time of a call of ccom over that of the best setting of the best other library, in calls back
to back, by bytes of the larger buffer; two are for ordinary buffers and for mapped ones (`ccomMemAlloc`). Below 1 ccom
is faster. The row below an allreduce, allgather, reduce-scatter, broadcast or alltoall is ccom's time over the limit:
what the machine allows without a library. A figure is bold where it is above its bar. A number in brackets is that of
the repeats of ccom where there are fewer than {wanted}; * marks a figure for which other processes were never quiet.
"""
NOTHING = "\nNo machine has been measured.\n"
TITLES = {modes.NEAR: "Near processors", modes.FAR: "Far processors",
          modes.UNKNOWN: "Processors, of unknown distance"}


def cells_of(document, best):
    """{mode: {(collective, ranks): {bytes: {config: Summary}}}} of one file; `best`: of all files of the machine."""
    return {mode: results.cells(records, METRIC) for mode, records in modes.by_mode(document["records"], best).items()}


class Cell:
    """A ratio with its bar, or None: `ours` and `other` are the summaries, `against` names the other."""

    def __init__(self, what, config, size, ours, other, against, bar):
        self.what, self.config, self.size = what, config, size
        self.ours, self.other, self.against, self.bar = ours, other, against, bar
        self.ratio = ours.median / other.median

    def is_above(self):
        # As it is shown: 0.804 is within 0.8.
        return self.bar is not None and round(self.ratio, 2) > self.bar

    def text(self):
        text = f"{self.ratio:.2f}" + ("\\*" if self.ours.starred or self.other.starred else "")
        return f"**{text}**" if self.is_above() else text


def row(document, collective, ranks, rows, judged, to_limit):
    """One line of a table: for each of bars.SIZES the cells, one for each kind of buffers, or none."""
    transport = document["transport"]
    what = ("TCP, " if transport == "tcp" else "") + f"{collective}, {ranks} ranks"
    line = []
    for size in bars.SIZES:
        summaries = rows.get(results.true_size(size, collective, ranks), {})
        best, cells = results.best_peer(summaries), []
        for config in OURS:
            other = results.limit_of(config) if to_limit else best
            if config not in summaries or other not in summaries:
                continue
            bar = (bars.to_limit(transport, collective, ranks, size) if to_limit
                   else bars.to_best(transport, collective, ranks, config, size))
            cells.append(Cell(what, config, size, summaries[config], summaries[other], other, bar if judged else None))
        line.append(cells)
    return "over the limit" if to_limit else what, line


def text_of(cells):
    repeats = min((cell.ours.repeats for cell in cells), default=WANTED)
    return " / ".join(cell.text() for cell in cells) + (f" ({repeats})" if repeats < WANTED else "")


def table(documents, best, mode):
    """The lines of one mode, and its cells."""
    judged = mode != modes.FAR
    lines, found = [], []
    for document in documents:
        cells = cells_of(document, best).get(mode, {})
        for collective in peers.ALL:
            for ranks in kept.RANKS:
                rows = cells.get((collective, ranks), {})
                for to_limit in (False, True):
                    head, line = row(document, collective, ranks, rows, judged, to_limit)
                    if any(line):
                        lines.append(f"| {head} | " + " | ".join(map(text_of, line)) + " |")
                        found += [cell for cells in line for cell in cells]
    if not lines:
        return [], []
    sizes = [results.readable_size(size) for size in bars.SIZES]
    return ["| | " + " | ".join(sizes) + " |", "|---" * (1 + len(sizes)) + "|", *lines], found


def above(cells):
    """What is said of the cells with bars: how many are within them, and those that are not."""
    judged = [cell for cell in cells if cell.bar is not None]
    misses = [cell for cell in judged if cell.is_above()]
    lines = [f"{len(judged) - len(misses)} of {len(judged)} figures are within their bars."]
    if misses:
        lines += ["", "| above the bar | buffers | size | ratio | bar | ccom us | other us | other |", "|---" * 8 + "|"]
        lines += [f"| {cell.what} | {'mapped' if cell.config == 'ccom-mapped' else 'ordinary'} | "
                  f"{results.readable_size(cell.size)} | {cell.ratio:.2f} | {cell.bar:g} | "
                  f"{results.readable(cell.ours)} | {results.readable(cell.other)} | {cell.against} |"
                  for cell in misses]
    return lines


def failures(documents):
    found = dict.fromkeys(
        f"{entry['config']} in {'TCP, ' if document['transport'] == 'tcp' else ''}{entry['collective']}, "
        f"{entry['ranks']} ranks" for document in documents for entry in document["failures"])
    return ["", f"Runs that failed, and are left out: {'; '.join(found)}."] if found else []


def section(documents):
    """The lines of one machine."""
    # As tables are read: shared memory before TCP, few ranks before many.
    documents = sorted(documents, key=lambda document: (document["transport"],
                                                        [entry["ranks"] for entry in document["parts"]]))
    records = kept.records_of(documents)
    best = modes.fastest(records)
    dates = sorted(entry["date"] for document in documents for entry in document["parts"])
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    here = documents[-1]["machine"]
    versions = {name: version for document in documents for name, version in document["versions"].items()
                if not name.startswith("limit") and name != "ccom-mapped"}
    lines = ["", f"## {here['cpu']}, {here['processors']} processors", "",
             f"{when}. {here['memory_gib']} GiB, Linux {here['kernel']}, {here['system']}. "
             + "; ".join(f"{name} {version}" for name, version in versions.items()) + ".", "",
             modes.describe(records, sum(len(document["discarded"]) for document in documents)) + "."]
    for mode, title in TITLES.items():
        of_mode, cells = table(documents, best, mode)
        if of_mode:
            lines += ["", f"### {title}", "", *of_mode]
            lines += ["", *above(cells)] if any(cell.bar is not None for cell in cells) else []
    return lines + failures(documents)


def page(machines):
    """The whole text. `machines`: kept.machines()."""
    lines = [HEAD.format(wanted=WANTED), *bars.table()]
    for documents in machines.values():
        lines += section(documents)
    return "\n".join(lines) + "\n" + ("" if machines else NOTHING)

# SPDX-License-Identifier: Apache-2.0
"""Records of measurements, and what is said about them: medians, best peers, ratios, tables. Pure.

A record is one line of a peer's output and where it came from: config ("openmpi", "openmpi:ring", "ccom",
"ccom-mapped"), collective, ranks, bytes, loop_us, sync_us, verified, repeat, foreign (processors that others kept busy
meanwhile), passing_us (the distance of the processors before and after; modes.py).
"""
import dataclasses
import itertools
import json
import statistics

from comparison import modes

# Above this many foreign processors a measurement counts only if there is no better one.
MOST_FOREIGN = 0.5
FIELDS = {"collective": str, "ranks": int, "bytes": int, "loop_us": (int, float), "sync_us": (int, float),
          "verified": bool}


class Malformed(Exception):
    """A peer printed something that is not a result."""


def is_ours(config):
    return config == "ccom" or config.startswith("ccom-")


def limit_of(config):
    """The limit beside which a configuration of ours is put: "limit" for "ccom", "limit-mapped" for "ccom-mapped"."""
    return config.replace("ccom", "limit", 1)


def is_peer(config):
    return not is_ours(config) and config not in ("limit", "limit-mapped")


def true_size(size, collective, ranks):
    """Bytes of the larger buffer when its size is rounded down to whole floats, at least one per rank where they share.
    """
    unit = 4 * (1 if collective in ("allreduce", "broadcast", "reduce") else ranks)
    return max(size // unit, 1) * unit


def parse(text):
    """The version, or None, and the results in what a peer printed. Lines that are not JSON objects are ignored."""
    version = None
    results = []
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise Malformed(f"not JSON: {line!r}") from error
        if "version" in entry:
            version = str(entry["version"])
            continue
        for field, kind in FIELDS.items():
            if not isinstance(entry.get(field), kind):
                raise Malformed(f"{field} is missing or of a wrong type: {line!r}")
        if not (entry["loop_us"] > 0 and entry["sync_us"] > 0):
            raise Malformed(f"times must be positive: {line!r}")
        results.append(entry)
    return version, results


@dataclasses.dataclass(frozen=True)
class Summary:
    median: float
    least: float
    most: float
    repeats: int
    starred: bool  # during every repeat others were busy


def summarise(records, metric):
    """Of records of one cell, mode and configuration: those with little foreign load, or all if there are none such."""
    clean = [record for record in records if record.get("foreign", 0) <= MOST_FOREIGN]
    values = [record[metric] for record in clean or records]
    return Summary(statistics.median(values), min(values), max(values), len(values), not clean)


def cells(records, metric):
    """{(collective, ranks): {bytes: {config: Summary}}}, in the order of the records, which are of one mode."""
    groups = {}
    for record in records:
        rows = groups.setdefault((record["collective"], record["ranks"]), {})
        rows.setdefault(record["bytes"], {}).setdefault(record["config"], []).append(record)
    return {
        cell: {size: {config: summarise(group, metric) for config, group in rows[size].items()}
               for size in sorted(rows)}
        for cell, rows in groups.items()
    }


def cells_by_mode(records, metric):
    """(mode, collective, ranks, {bytes: {config: Summary}}) of each table. Records of different modes are never in one.
    """
    best = modes.fastest(records)
    for cell in dict.fromkeys((record["collective"], record["ranks"]) for record in records):
        of_cell = [record for record in records if (record["collective"], record["ranks"]) == cell]
        for mode, group in modes.shown(of_cell, best, lambda record: is_ours(record["config"])).items():
            yield mode, *cell, cells(group, metric)[cell]


def best_peer(row):
    """The configuration of another library with the smallest median, or None."""
    others = [config for config in row if is_peer(config)]
    return min(others, key=lambda config: row[config].median, default=None)


def ratio(row, config="ccom"):
    """config's median divided by the best peer's, or None if one of them is missing."""
    best = best_peer(row)
    return row[config].median / row[best].median if best is not None and config in row else None


def ratio_to_limit(row, config):
    """config's median divided by that of the limit with such buffers, or None if one of them is missing."""
    limit = limit_of(config)
    return row[config].median / row[limit].median if limit in row and config in row else None


def contenders(records, factor):
    """{(collective, ranks, config): sizes} where a peer came within `factor` of the best peer of a mode, by either
    metric; three times that where it met a busy machine."""
    kept = {}
    groups = modes.by_mode(records).values()
    for metric, group in itertools.product(("loop_us", "sync_us"), groups):
        for (collective, ranks), rows in cells(group, metric).items():
            for size, row in rows.items():
                best = best_peer(row)
                for config, summary in row.items():
                    limit = factor * (3 if summary.starred else 1) * row[best].median if best is not None else 0
                    if is_peer(config) and summary.median <= limit:
                        kept.setdefault((collective, ranks, config), set()).add(size)
    return kept


def readable_size(size):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def readable_us(value):
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def readable(summary):
    star = "*" if summary.starred else ""
    if summary.repeats == 1:
        return f"{readable_us(summary.median)}{star}"
    return f"{readable_us(summary.median)}{star} ({readable_us(summary.least)}-{readable_us(summary.most)})"


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(row, widths)).rstrip() for row in rows)


def table(rows, verbose=False):
    """The table of one collective and number of ranks: a line per size. rows: {bytes: {config: Summary}}."""
    ours = sorted({config for row in rows.values() for config in row if is_ours(config)})
    limited = [config for config in ours if any(limit_of(config) in row for row in rows.values())]
    peers = sorted({config for row in rows.values() for config in row if is_peer(config)})
    lines = [["size"] + [f"{config} us" for config in ours] + ["best peer us", "best peer"] +
             [f"{config} / best" for config in ours] +
             [title for config in limited for title in (f"{limit_of(config)} us", f"{config} / {limit_of(config)}")] +
             (peers if verbose else [])]
    for size, row in rows.items():
        best = best_peer(row)
        line = [readable_size(size)] + [readable(row[config]) if config in row else "-" for config in ours]
        line += [readable(row[best]), best] if best is not None else ["-", "-"]
        for config in ours:
            value = ratio(row, config)
            line.append("-" if value is None else f"{value:.2f}")
        for config in limited:
            limit, value = limit_of(config), ratio_to_limit(row, config)
            line += [readable(row[limit]) if limit in row else "-", "-" if value is None else f"{value:.2f}"]
        if verbose:
            line += [readable(row[config]) if config in row else "-" for config in peers]
        lines.append(line)
    return aligned(lines)


def repeats(rows):
    """How many repeats the cells of a table have."""
    found = [summary.repeats for row in rows.values() for summary in row.values()]
    return f"{min(found)} to {max(found)} repeats" if min(found) < max(found) else f"{max(found)} repeats"


def report(records, metrics=("loop_us", "sync_us"), verbose=False):
    """All tables, with titles."""
    parts = []
    for metric in metrics:
        for mode, collective, ranks, rows in cells_by_mode(records, metric):
            where = f", {mode} processors" if mode else ""
            title = (f"{collective}, {ranks} ranks, {metric.removesuffix('_us')}{where}: median (min-max) of "
                     f"{repeats(rows)}, us per call")
            parts.append(f"{title}\n{table(rows, verbose)}\n")
    return "\n".join(parts)

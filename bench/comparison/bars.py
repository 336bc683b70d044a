# SPDX-License-Identifier: Apache-2.0
"""What ccom should take at most, near processors, as a share of the time of the best setting of the best other library,
and over the limit. Pure."""
from comparison import peers

KIB, MIB = 1 << 10, 1 << 20
# Ends of the spans of sizes, in bytes of the larger buffer, and what they are called.
SPANS = {KIB: "8 B to 1 KiB", 64 * KIB: "8 to 64 KiB", 4 * MIB: "512 KiB to 4 MiB", 25 * MIB: "25 MiB"}
SIZES = (8, KIB, 8 * KIB, 64 * KIB, 512 * KIB, MIB, 4 * MIB, 25 * MIB)

# (what, for each span)
ORDINARY = ("every collective, 2 ranks, ordinary buffers", (0.8, 0.95, 0.95, 0.9))
MAPPED = ("every collective, 2 ranks, mapped buffers", (0.8, 0.9, 0.6, 0.7))
SUMS = ("allreduce and reduce_scatter, 2 ranks, mapped buffers", (0.8, 0.9, 0.35, 0.4))
SUMS_AT_64K = 0.35
SHARED = ("every collective, 4 and 8 ranks on 2 processors", (0.9, 0.9, 0.9, 0.9))
TCP = ("allreduce over TCP, 2 and 4 ranks", (0.9, 0.9, 0.9, 0.9))
LIMIT = ("allreduce over the limit, 2 ranks", (1.4, 1.2, 1.15, 1.15))
ALL = (ORDINARY, MAPPED, SUMS, SHARED, TCP, LIMIT)


def row_of(transport, collective, ranks, config):
    """The row of the bars for a configuration of ours, or None."""
    if transport == "tcp":
        return TCP if collective == "allreduce" and ranks in (2, 4) else None
    if collective not in peers.ALL:
        return None
    if ranks in (4, 8):
        return SHARED
    if ranks != 2:
        return None
    if config == "ccom":
        return ORDINARY
    return SUMS if collective in ("allreduce", "reduce_scatter") else MAPPED


def of_span(row, size):
    """The bar of a row for a size of SIZES, or None."""
    for bar, end in zip(row[1] if row else (), SPANS):
        if size <= end:
            return SUMS_AT_64K if row is SUMS and size == 64 * KIB else bar
    return None


def to_best(transport, collective, ranks, config, size):
    """The most that config's time may be, divided by the best peer's, or None."""
    return of_span(row_of(transport, collective, ranks, config), size)


def to_limit(transport, collective, ranks, size):
    """The same, divided by the limit's."""
    return of_span(LIMIT if (transport, collective, ranks) == ("shm", "allreduce", 2) else None, size)


def table():
    """The lines of the bars, in Markdown."""
    lines = ["| at most | " + " | ".join(SPANS.values()) + " |", "|---" * (1 + len(SPANS)) + "|"]
    for row in ALL:
        texts = [f"{bar:g}" for bar in row[1]]
        if row is SUMS:
            texts[1] += f", {SUMS_AT_64K:g} at 64 KiB"
        lines.append(f"| {row[0]} | " + " | ".join(texts) + " |")
    return lines

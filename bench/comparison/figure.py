# SPDX-License-Identifier: Apache-2.0
"""Time and bus bandwidth against size as an SVG of two panels. Pure: from the JSON of bench/compare to text."""
import math
import re
from xml.sax.saxutils import escape

from comparison import modes, results

WIDTH, HEIGHT = 980, 470
PANEL_TOP, PANEL_HEIGHT, PANEL_WIDTH = 84, 270, 395
PANEL_LEFTS = (70, 560)
INK, FAINT, GRID = "#222222", "#666666", "#e4e4e4"
OURS = {"ccom": ("#e03c31", ""), "ccom-mapped": ("#8e1b3a", "7 3")}
# Distinguishable with any colour vision; peers in the order of their names.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#56b4e9", "#8c6bb1", "#a6761d", "#999999", "#444444")
LABELS = {"ccom": "ccom, ordinary buffers", "ccom-mapped": "ccom, mapped buffers",
          "limit": "limit, ordinary buffers", "limit-mapped": "limit, mapped buffers"}


def bus_factor(collective, ranks):
    """Of algorithm bandwidth: what each rank's connection carries, as in bench/README.md."""
    if collective == "broadcast":
        return 1
    return (2 if collective == "allreduce" else 1) * (ranks - 1) / ranks


def series(rows):
    """{name: {bytes: microseconds}}: ours, and each peer in its best setting per size."""
    lines = {}
    for size, row in rows.items():
        for config, summary in row.items():
            name = config if results.is_ours(config) else config.partition(":")[0]
            line = lines.setdefault(name, {})
            line[size] = min(summary.median, line.get(size, math.inf))
    ours = [name for name in OURS if name in lines]
    return {name: lines[name] for name in ours + sorted(set(lines) - set(ours))}


def styles(names):
    colours = iter(PALETTE * (1 + len(names) // len(PALETTE)))
    return {name: OURS[name] if name in OURS else (next(colours), "") for name in names}


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


def panel(left, title, lines, style, decades=9):
    """One plot: axes, grid, a curve per line. What lies `decades` below the largest value is cut off."""
    bottom, right = PANEL_TOP + PANEL_HEIGHT, left + PANEL_WIDTH
    sizes = sorted({size for points in lines.values() for size in points})
    low, high = bounds([value for points in lines.values() for value in points.values()])
    low = max(low, high / 10**decades)
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
            label = re.sub(r" (?:([KMG])i)?B", r"\1", results.readable_size(size))
            parts.append(text(x, bottom + 16, label))
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


def draw(document, collective, ranks, metric="loop_us"):
    """The SVG of one collective and number of ranks in what bench/compare wrote, in the mode of most records. KeyError
    if it was not measured."""
    records = [record for record in document["records"]
               if (record["collective"], record["ranks"]) == (collective, ranks)]
    if not records:
        raise KeyError((collective, ranks))
    mode, records = max(modes.by_mode(records, modes.fastest(document["records"])).items(),
                        key=lambda item: len(item[1]))
    rows = results.cells(records, metric)[collective, ranks]
    times = series(rows)
    factor = bus_factor(collective, ranks)
    rates = {name: {size: size / us * factor / 1e3 for size, us in points.items()} for name, points in times.items()}
    style = styles(list(times))
    machine = document["machine"]
    how = "calls back to back" if metric == "loop_us" else "single calls, fresh input"
    repeats = max(summary.repeats for row in rows.values() for summary in row.values())
    where = f", {mode} to each other" if mode in (modes.NEAR, modes.FAR) else ""
    below = (f"{machine['cpu']}, {machine['processors']} processors{where}; {how}, slowest rank, median of {repeats} "
             "repeats; "
             "each peer in its best setting per size")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        text(PANEL_LEFTS[0], 26, f"{collective}, float32, {ranks} ranks on one host", 17, "start", INK),
        text(PANEL_LEFTS[0], 46, below, 11.5, "start"),
        *panel(PANEL_LEFTS[0], "time per call, microseconds (lower is better)", times, style),
        *panel(PANEL_LEFTS[1], "bus bandwidth, GB/s (higher is better)", rates, style, decades=3),
        *legend(times, style),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"

# SPDX-License-Identifier: Apache-2.0
"""Programs that stand in the documentation, for tests that run them as they stand there.

In a page: a comment `<!-- test: NAME -->` on a line of its own, and behind it a fenced block. Cells of a tutorial:
`<!-- cell -->`, a fenced block, and, if it prints something, a fenced block `text` with what rank 0 prints; "..."
stands for anything there. How a program is compiled and run: indented lines behind it, and a fenced block `text` with
what they print.

    programs.py docs/doors/python.md            the names of the page's programs
    programs.py docs/doors/python.md NAME       that program
    programs.py README.md --lines NAME          the lines behind it
    programs.py README.md --output NAME         what they print
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
_BLOCK = r"```(?P<language>\w*)\n(?P<text>.*?)^```$"
_PROGRAM = re.compile(r"^<!-- test: (?P<name>[\w.-]+) -->\n+" + _BLOCK, re.DOTALL | re.MULTILINE)
_CELL = re.compile(r"^<!-- cell -->\n+" + _BLOCK + r"(?:\n+```text\n(?P<output>.*?)^```$)?", re.DOTALL | re.MULTILINE)


def _page(page):
    return (ROOT / page).read_text(encoding="utf-8")


def programs(page):
    """name: text. A name stands once on a page, and every mark has its block."""
    text = _page(page)
    found = [(match["name"], match["text"]) for match in _PROGRAM.finditer(text)]
    marks = len(re.findall(r"^<!-- test: ", text, re.MULTILINE))
    if len(dict(found)) != marks:
        raise ValueError(f"{page}: {marks} marks of tests, {len(dict(found))} programs behind them")
    return dict(found)


def behind(page, name):
    """(lines, output): the indented lines between a program and the block of what they print, and that."""
    end = next(match.end() for match in _PROGRAM.finditer(_page(page)) if match["name"] == name)
    between, output = re.match(r"(.*?)^```text\n(.*?)^```$", _page(page)[end:], re.DOTALL | re.MULTILINE).groups()
    return "".join(re.findall(r"^    (.*\n)", between, re.MULTILINE)), output


def cells(page):
    """(text, expected output) of each, in order."""
    text = _page(page)
    found = [(match["text"], match["output"] or "") for match in _CELL.finditer(text)]
    if len(found) != len(re.findall(r"^<!-- cell -->", text, re.MULTILINE)):
        raise ValueError(f"{page}: a mark of a cell has no block behind it")
    return found


def as_one_program(parts, separator):
    """A program that runs the cells in order and prints the separator behind each; ranks other than 0 print nothing."""
    lines = ["import os, sys", "if os.environ.get('CCOM_RANK', '0') != '0': sys.stdout = open(os.devnull, 'w')"]
    for number, (text, _) in enumerate(parts, 1):
        lines.append(f"exec(compile({text!r}, 'cell {number}', 'exec'), globals())")
        lines.append(f"print({separator!r}, flush=True)")
    return "\n".join(lines) + "\n"


def is_as_expected(expected, printed):
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


if __name__ == "__main__":
    if len(sys.argv) == 2:
        print(*programs(sys.argv[1]), sep="\n")
    elif len(sys.argv) == 3:
        print(programs(sys.argv[1])[sys.argv[2]], end="")
    else:
        print(behind(sys.argv[1], sys.argv[3])[["--lines", "--output"].index(sys.argv[2])], end="")

# SPDX-License-Identifier: Apache-2.0
"""docs/errors.md has a section for every result code of ccom.h, and quotes texts that the sources contain."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "errors.md").read_text()


def quoted_texts():
    """(text, parts that must occur in the sources) of each first cell in tables whose first column is "text"."""
    in_table = False
    for line in PAGE.split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            in_table = False
        elif cells[1] == "text":
            in_table = True
        elif in_table and not cells[1].startswith("---") and not cells[1].startswith("("):
            for text in re.split(r"; ", cells[1]):
                yield text, [part for part in re.split(r"\.\.\.|\(never joined\)|\b\d+(?: of \d+)?|: |\brank\b", text)]


def literals():
    """All string literals of the sources, adjacent ones joined, format directives as a gap."""
    found = []
    for folder in ("src", "transports"):
        for path in sorted((ROOT / folder).rglob("*.cc")):
            for run in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*(?:PRI\w+\s*)?)+', path.read_text()):
                found.append(re.sub(r'"\s*(?:PRI\w+\s*)?"', "", run).replace('\\"', '"'))
    return "\n".join(found)


class Errors(unittest.TestCase):
    def test_every_code_has_a_section(self):
        header = (ROOT / "include" / "ccom" / "ccom.h").read_text()
        codes = re.findall(r"^  (ccom\w+) = (\d+),", header[: header.index("} ccomResult_t;")], re.M)
        self.assertGreater(len(codes), 10)
        for name, number in codes:
            if name != "ccomSuccess":
                self.assertIn(f"\n## {name} ({number})\n", PAGE)

    def test_quoted_texts_are_the_librarys(self):
        sources = literals()
        checked = 0
        for text, parts in quoted_texts():
            for part in parts:
                words = part.strip(" ,:")
                if len(words) >= 6:
                    checked += 1
                    with self.subTest(text=text):
                        self.assertIn(words, sources)
        self.assertGreater(checked, 40)


if __name__ == "__main__":
    unittest.main()

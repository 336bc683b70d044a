# SPDX-License-Identifier: Apache-2.0
"""docs/errors.md has a section for every result code of ccom.h and a place for every key, and quotes texts that the
sources contain.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "errors.md").read_text()


def quoted_texts():
    """(text, parts that must occur in the sources) of each second cell in tables whose first two columns are "key" and
    "text".
    """
    in_table = False
    for line in PAGE.split("\n"):
        cells = [cell.strip() for cell in line.split("|")]
        if not line.startswith("|"):
            in_table = False
        elif cells[1:3] == ["key", "text"]:
            in_table = True
        elif in_table and not cells[2].startswith("---") and not cells[2].startswith("("):
            for text in re.split(r"; ", cells[2]):
                yield text, [part for part in re.split(r"\.\.\.|\(never joined\)|\b\d+(?: of \d+)?|: |\brank\b", text)]


def literals():
    """All string literals of the sources, adjacent ones joined, format directives as a gap."""
    found = []
    for folder in ("src", "topology", "transports"):
        for path in sorted((ROOT / folder).rglob("*.cc")):
            for run in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*(?:PRI\w+\s*)?)+', path.read_text()):
                found.append(re.sub(r'"\s*(?:PRI\w+\s*)?"', "", run).replace('\\"', '"'))
    return "\n".join(found)


def keys():
    """(number, name, code) of the table in base/error_key.h."""
    table = (ROOT / "src" / "base" / "error_key.h").read_text()
    return [(int(number), name, code) for number, name, code in re.findall(r"^  X\((\d+), (\w+), (\w+)\)", table, re.M)]


class Errors(unittest.TestCase):
    def test_keys_are_numbered_in_order(self):
        self.assertEqual([number for number, _, _ in keys()], list(range(1, len(keys()) + 1)))

    def test_every_key_is_explained_once_in_the_section_of_its_code(self):
        sections = re.split(r"^## ", PAGE, flags=re.M)
        explained = [int(number) for number in re.findall(r'<a id="ccom-e(\d{3})"></a>', PAGE)]
        self.assertEqual(sorted(explained), [number for number, _, _ in keys()])
        for number, name, code in keys():
            with self.subTest(key=name):
                section = next(section for section in sections if section.startswith(f"ccom{code} ("))
                self.assertIn(f'<a id="ccom-e{number:03}"></a>', section)
                self.assertRegex(section, rf"\bCCOM-E{number:03}\b")

    def test_every_key_of_one_trouble_is_an_errors(self):
        sources = "".join(path.read_text() for folder in ("src", "transports", "topology")
                          for path in (ROOT / folder).rglob("*.cc"))
        general = len({code for _, _, code in keys()})
        for _, name, _ in keys()[general:]:
            with self.subTest(key=name):
                self.assertTrue(f"ErrorKey::{name}" in sources, "no error has this key")

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
                        self.assertTrue(words in sources, f"no error says: {words}")
        self.assertGreater(checked, 40)


if __name__ == "__main__":
    unittest.main()

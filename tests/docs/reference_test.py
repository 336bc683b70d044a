# SPDX-License-Identifier: Apache-2.0
"""The C API's reference (docs/site/c_reference.py) has an entry with text for everything that libccom.so exports and
for each type and number of ccom.h.

  reference_test.py libccom.so
"""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "docs" / "site"))
import c_reference  # noqa: E402

HEADER = (ROOT / "include" / "ccom" / "ccom.h").read_text()
PAGE = c_reference.reference(HEADER)
LIBRARY = sys.argv.pop(1)


def entry(name):
    found = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    return found.group(1) if found else None


class Reference(unittest.TestCase):
    def test_has_every_exported_function_with_its_text(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True,
                                 text=True).stdout
        functions = re.findall(r" T (ccom\w+)", symbols)
        self.assertGreater(len(functions), 40)
        for name in functions:
            with self.subTest(function=name):
                text = entry(name)
                self.assertIsNotNone(text)
                self.assertIn(f"{name}(", text)
                self.assertTrue(re.sub(r"```.*?```", "", text, flags=re.S).strip())

    def test_has_every_type_and_every_number(self):
        # The compiler's view of the header: comments and macros are gone.
        plain = subprocess.run(["cc", "-E", "-P", "-x", "c", "-"], input=HEADER, check=True, capture_output=True,
                               text=True).stdout
        types = set(re.findall(r"\}\s*(ccom\w+)\s*;", plain))
        types |= set(re.findall(r"typedef struct \w+\s*\*\s*(ccom\w+);", plain))
        self.assertGreater(len(types), 10)
        for name in types:
            self.assertIsNotNone(entry(name), name)
        numbers = re.findall(r"\b(ccom[A-Z]\w*) = (\w+)", plain)
        self.assertGreater(len(numbers), 40)
        for name, number in numbers:
            self.assertIn(f"| `{name}` | {number} |", PAGE)

    def test_refuses_a_function_without_a_comment(self):
        mute = re.sub(r"/\* Returns when every rank has called it\. \*/\n", "", HEADER)
        self.assertNotEqual(mute, HEADER)
        with self.assertRaisesRegex(ValueError, "without a comment: ccomBarrier$"):
            c_reference.reference(mute)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""No dead links in the repository's Markdown files: files exist, and so do the headings behind "#". Needs nothing but
Python.
"""
import os
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")


def files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "build")))
        yield from (pathlib.Path(folder, name) for name in sorted(names) if name.endswith(".md"))


def prose(path):
    """The text without fenced blocks and code spans."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]+`", "", text)


def anchors(path):
    """Of headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-"))
    return found


def dead_links(root):
    for path in files(root):
        for link in LINK.findall(prose(path)):
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", target):
                continue  # other hosts are not asked
            linked = (path.parent / target) if target else path
            where = f"{path.relative_to(root)}: {link}"
            if not linked.exists():
                yield f"{where}: no such file"
            elif anchor and linked.suffix == ".md" and anchor not in anchors(linked):
                yield f"{where}: no such heading"


class Links(unittest.TestCase):
    def test_lead_somewhere(self):
        self.assertGreater(len(list(files(ROOT))), 30)
        self.assertEqual([], list(dead_links(ROOT)))

    def test_that_are_dead_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            page.write_text(
                "# A heading, here\n[a](page.md#a-heading-here) [b](gone.md) [c](#gone) `[d](no-link.md)`\n")
            self.assertEqual(["page.md: gone.md: no such file", "page.md: #gone: no such heading"],
                             list(dead_links(page.parent)))


if __name__ == "__main__":
    unittest.main()

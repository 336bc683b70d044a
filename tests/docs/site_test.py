# SPDX-License-Identifier: Apache-2.0
"""The documentation site is built without a warning, its links lead somewhere, and it asks no other host for anything;
a dead link ends the build. Skipped where scripts/build-docs --environment has not been run.

  site_test.py FOLDER     in which a copy of the pages is built
"""
import html.parser
import pathlib
import shutil
import subprocess
import sys
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COPY = pathlib.Path(sys.argv.pop(1)).resolve() / "site"
ENVIRONMENT = ROOT / "build" / "docs" / "environment" / "installed.txt"


class Page(html.parser.HTMLParser):
    """Its anchors, its links, and what a browser fetches to show it."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.fetched = {""}, [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.add(values.get("id", ""))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif "src" in values or (tag == "link"
                                 and values.get("rel") in ("stylesheet", "icon", "preload", "preconnect")):
            self.fetched.append(values.get("src") or values["href"])


def build():
    return subprocess.run([ROOT / "scripts" / "build-docs", "--pages", COPY], capture_output=True, text=True)


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(COPY, ignore_errors=True)

        def ignored(folder, names):  # the copy must not contain itself
            return [name for name in names
                    if name.startswith((".", "build")) or pathlib.Path(folder, name) in COPY.parents]

        shutil.copytree(ROOT, COPY, ignore=ignored)
        cls.result = build()
        cls.site = COPY / "build" / "docs" / "site"

    def setUp(self):
        self.assertEqual(0, self.result.returncode, self.result.stderr)

    def test_links_lead_somewhere_and_nothing_is_fetched_from_elsewhere(self):
        pages = {path: Page(path) for path in self.site.rglob("*.html") if path.name != "404.html"}
        self.assertGreater(len(pages), 40)
        for path, page in pages.items():
            for address in page.fetched:
                self.assertNotRegex(address, r"^(\w+:)?//", path)
                self.assertTrue((path.parent / address.split("?")[0]).exists(), f"{path}: {address}")
            for link in page.links:
                parts = urllib.parse.urlsplit(link)
                if parts.scheme or parts.netloc:
                    continue
                target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
                target = target / "index.html" if target.is_dir() else target
                self.assertTrue(target.exists(), f"{path}: {link}")
                if target in pages:
                    self.assertIn(parts.fragment, pages[target].anchors, f"{path}: {link}")

    def test_every_page_is_there(self):
        for page in ("index", "docs/tutorials/c", "docs/errors", "docs/decisions/0001-plans-as-data",
                     "include/ccom/ccom"):
            self.assertTrue((self.site / f"{page}.html").exists(), page)

    def test_zz_dead_links_and_pages_without_a_place_end_the_build(self):
        page = COPY / "docs" / "nowhere.md"
        page.write_text("# Nowhere\n\n[gone](gone.md), [no heading](errors.md#gone)\n")
        result = build()
        page.unlink()
        self.assertEqual(1, result.returncode)
        for fault in ("gone.md", "errors.md#gone", "not included in the \"nav\""):
            self.assertIn(fault, result.stderr)


if __name__ == "__main__":
    if not ENVIRONMENT.exists():
        print("skipped: build/docs/environment is not there; scripts/build-docs --environment makes it")
        sys.exit(77)
    unittest.main()

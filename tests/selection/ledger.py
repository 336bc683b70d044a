# SPDX-License-Identifier: Apache-2.0
"""What passed on this machine, with which contents: a database in the user's cache folder, or at CCOM_TEST_LEDGER.

It counts the runs of each part; there are no dates in it. Several runs may use it at the same time.
"""

import os
import pathlib
import sqlite3

from choice import Record

SCHEMA = """
create table if not exists cases (
    part text, name text, digest text not null, run integer not null, seconds real, primary key (part, name));
create table if not exists parts (part text primary key, runs integer not null);
"""


def default_path():
    named = os.environ.get("CCOM_TEST_LEDGER")
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(named) if named else pathlib.Path(cache) / "ccom" / "tests.sqlite"


class Ledger:
    def __init__(self, path=None):
        path = pathlib.Path(path or default_path())
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, timeout=60)
        self._database.executescript(SCHEMA)

    def begin(self, part):
        """The number of the run of this part that begins now."""
        with self._database:
            # A new row: the rows' order is that of the parts' last runs.
            self._database.execute(
                "insert or replace into parts values "
                "(:part, 1 + coalesce((select runs from parts where part = :part), 0))",
                {"part": part},
            )
            return self._database.execute("select runs from parts where part = ?", (part,)).fetchone()[0]

    def place(self, part):
        """The greater, the later was the part's last run; 0: it never ran."""
        found = self._database.execute("select rowid from parts where part = ?", (part,)).fetchone()
        return found[0] if found else 0

    def records(self, part):
        rows = self._database.execute("select name, digest, run, seconds from cases where part = ?", (part,))
        return {name: Record(digest, run, seconds) for name, digest, run, seconds in rows}

    def save(self, part, run, results):
        """results: [(name, digest if it passed or was skipped, else "", seconds)]."""
        with self._database:
            self._database.executemany(
                "insert or replace into cases values (?, ?, ?, ?, ?)",
                [(part, name, digest, run, seconds) for name, digest, seconds in results],
            )

    def forget(self, part, names):
        """Cases that exist no more."""
        with self._database:
            self._database.executemany(
                "delete from cases where part = ? and name = ?", [(part, name) for name in names]
            )

# SPDX-License-Identifier: Apache-2.0
"""Measures the parts of bench/tables, keeps each that is finished, and writes the page."""
import argparse
import sys

from comparison import bars, kept, measuring, modes, page, results


def write_page(options):
    text = page.page(kept.machines(options.baselines))
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(text)


class Tables:
    """Measures parts and keeps them. `folder`: for programs."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.found = {}  # by transport, what measuring.available() says

    def compare_options(self, part, repeats):
        """Those of bench/compare for one run of a part."""
        options = self.options
        return argparse.Namespace(
            build=options.build, peers_dir=options.peers_dir, peers=options.peers, extra=[], transport=part.transport,
            buffers=["ordinary"] if part.transport == "tcp" else ["ordinary", "mapped"], against_limit=True,
            ranks=[part.ranks], collectives=[part.collective], repeats=repeats,
            sizes=[8, 65536] if options.smoke else list(bars.SIZES), budget_ms=options.budget_ms, dirty=True, prune=1.5,
            patience=options.patience, again=0 if options.smoke else 2, timeout=options.timeout, quick=options.smoke)

    def documents(self, part):
        """All that is kept of this machine, and the file of the part, or None."""
        path = kept.path_of(self.options.baselines, part)
        name = kept.machine_of(path)
        return kept.machines(self.options.baselines).get(name, []), kept.read(path)

    def measure(self, part):
        """One run of a part. Returns whether ccom has done all of it."""
        everything, document = self.documents(part)
        options = self.compare_options(part, self.options.repeats - kept.near_repeats(everything, document, part))
        if part.transport not in self.found:
            self.found[part.transport] = measuring.available(options, self.folder)
            if not any(results.is_ours(peer.name) for peer in self.found[part.transport][0]):
                sys.exit("bench/tables: there is no ccom to measure")
        near_us = modes.most_near(kept.records_of(everything)) if kept.runs_of(document, part) else None
        comparison = measuring.Comparison(options, *self.found[part.transport], kept.next_repeat(document, part),
                                          near_us)
        comparison.run()
        run = comparison.document()
        kept.write(kept.path_of(self.options.baselines, part), kept.added(document, part, run))
        write_page(self.options)
        near = kept.near_repeats(*self.documents(part), part)
        measuring.say(f"{part.name}: {run['seconds']} s, {near} of {self.options.repeats} repeats with near processors")
        return not comparison.our_failures()

    def is_due(self, part, runs):
        everything, document = self.documents(part)
        return (kept.runs_of(document, part) < runs
                and kept.near_repeats(everything, document, part) < self.options.repeats)

    def run(self):
        """All parts, then those again that have met too few near processors. Returns the names of those that failed."""
        failed = {}
        if self.options.again:
            for part in self.options.parts:
                kept.forget(kept.path_of(self.options.baselines, part), part)
        for runs in range(1, self.options.runs + 1):
            due = [part for part in self.options.parts if self.is_due(part, runs)]
            measuring.say(f"run {runs}: {len(due)} of {len(self.options.parts)} parts are to be measured")
            for number, part in enumerate(due, 1):
                measuring.say(f"{part.name}, {number} of {len(due)}")
                failed[part.name] = not self.measure(part)
        return [name for name, has_failed in failed.items() if has_failed]

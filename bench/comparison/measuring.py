# SPDX-License-Identifier: Apache-2.0
"""Runs ccom, the other libraries and the limit, interleaved, in all configurations. `options` of what is here are those
of bench/compare, in one namespace."""
import os
import sys
import tempfile
import time

from comparison import machine, modes, peers, results, running


def say(text):
    print(text, file=sys.stderr, flush=True)


def available(options, folder):
    """What can run, ccom first, and the probe of processors. Says of each other peer why it cannot."""
    shop = peers.Workshop(folder, options.build, options.peers_dir)
    wanted = [(f"ccom ({buffers})", lambda shop, buffers=buffers: peers.ccom(shop, buffers))
              for buffers in options.buffers]
    if options.against_limit:
        wanted += [(f"limit ({buffers})", lambda shop, buffers=buffers: peers.limit(shop, buffers))
                   for buffers in options.buffers]
    wanted += [(name, peers.PEERS[name]) for name in options.peers if name]
    found = []
    for name, find in wanted:
        try:
            peer = find(shop)
            found.append(peers.over_tcp(peer) if options.transport == "tcp" else peer)
        except peers.Unavailable as reason:
            say(f"{name} is left out: {reason}")
    return found + [peers.extra(text) for text in options.extra], shop.passing()


class Comparison:
    """One run: the configurations, what was measured, and what failed. `first`: the number of its first repeat.
    `near_us`: each start waits for processors that are as near as this, within the patience of the options."""

    def __init__(self, options, found, passing, first=0, near_us=None):
        self.first, self.near_us = first, near_us
        self.start_time = time.time()
        self.options, self.passing = options, passing
        self.configs = [(f"{peer.name}:{setting.name}" if setting.name else peer.name, peer, setting)
                        for peer in found for setting in (peer.settings[:1] if options.quick else peer.settings)]
        self.records = []
        self.discarded = []  # runs during which the processors moved
        self.versions = {}
        self.patience = 10 * options.patience  # left in all
        self.failures = {}  # (config, collective, ranks) -> why

    def environment(self, peer, setting, config, collective, ranks, sizes, sync):
        pinned = ranks <= len(os.sched_getaffinity(0)) and not peer.has_threads
        return {
            "COMPARE_SYNC": sync, "COMPARE_COLLECTIVE": collective, "COMPARE_SIZES": ",".join(map(str, sizes)),
            "COMPARE_BUDGET_MS": str(self.options.budget_ms), "COMPARE_DIRTY": str(int(self.options.dirty)),
            "COMPARE_PEER": config, "COMPARE_RANKS": str(ranks), "COMPARE_PIN": str(int(pinned)),
            "COMPARE_WAIT": "sleep" if peer.has_threads else "",
            "COMPARE_TIMEOUT_S": str(int(self.options.timeout) + 10), **peer.environment, **setting.environment,
        }

    def measure(self, repeat, config, peer, setting, collective, ranks, sizes):
        """All sizes of one peer, again if the processors moved meanwhile."""
        records, discarded = modes.settled(lambda: self.start(config, peer, setting, collective, ranks, sizes),
                                           self.options.again)
        where = {"config": config, "repeat": self.first + repeat}
        self.records += [{**record, **where} for record in records]
        self.discarded += [{**where, "collective": collective, "ranks": ranks, "passing_us": probes}
                           for probes in discarded]

    def start(self, config, peer, setting, collective, ranks, sizes):
        """One start of one peer: records of all sizes, and the distance of the processors before and after, which a
        failure leaves out."""
        failed = False
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ccom-compare-") as folder:
            base = self.environment(peer, setting, config, collective, ranks, sizes, os.path.join(folder, "sync"))
            self.patience -= running.wait_until_quiet(min(self.options.patience, self.patience))
            if self.near_us:
                self.patience -= running.wait_until_near(self.passing, self.near_us,
                                                         min(self.options.patience, self.patience))
            before = running.passing_us(self.passing)
            try:
                printed, foreign = running.run(peer.launches(ranks), base, self.options.timeout)
                version, found = results.parse(printed)
            except running.Failed as reason:
                # What was measured and verified before stands.
                version, found, foreign, failed = *results.parse(reason.printed), 0, True
                self.fail(config, collective, ranks, reason)
            except results.Malformed as reason:
                self.fail(config, collective, ranks, reason)
                return [], None
            after = running.passing_us(self.passing)
        self.versions[peer.name] = version or self.versions.get(peer.name, "")
        for entry in found:
            if not entry["verified"]:
                sys.exit(f"{config}: wrong data: {collective}, {ranks} ranks, {entry['bytes']} bytes")
        probes = [before, after] if before and after else None
        records = [{**entry, "foreign": round(foreign, 3), "passing_us": probes} for entry in found]
        return records, None if failed else probes

    def fail(self, config, collective, ranks, reason):
        self.failures[config, collective, ranks] = str(reason)
        say(f"{config} fails in {collective} with {ranks} ranks: {reason}")

    def sizes_for(self, kept, config, collective, ranks):
        """After a failure: what went well. Peers that are far behind are not asked again."""
        sizes = {results.true_size(size, collective, ranks) for size in self.options.sizes}
        if (config, collective, ranks) in self.failures:
            sizes &= {record["bytes"] for record in self.records
                      if (record["config"], record["collective"], record["ranks"]) == (config, collective, ranks)}
        if kept is not None and results.is_peer(config):
            sizes &= kept.get((collective, ranks, config), set())
        return sorted(sizes)

    def run(self):
        kept = None
        for repeat in range(self.options.repeats):
            for ranks in self.options.ranks:
                for collective in self.options.collectives:
                    turn = repeat % len(self.configs)
                    for config, peer, setting in self.configs[turn:] + self.configs[:turn]:
                        sizes = self.sizes_for(kept, config, collective, ranks)
                        if sizes and collective in setting.collectives:
                            self.measure(repeat, config, peer, setting, collective, ranks, sizes)
            say(f"repeat {repeat + 1} of {self.options.repeats} done")
            if repeat == 0 and self.options.prune > 0:
                kept = results.contenders(self.records, self.options.prune)

    def our_failures(self):
        return [key for key in self.failures if results.is_ours(key[0])]

    def document(self):
        """Everything that was measured, and on what."""
        return {"date": time.strftime("%Y-%m-%d", time.gmtime(self.start_time)),
                "seconds": round(time.time() - self.start_time), "machine": machine.describe(),
                "versions": self.versions,
                "failures": [{"config": config, "collective": collective, "ranks": ranks, "reason": reason}
                             for (config, collective, ranks), reason in self.failures.items()],
                "discarded": self.discarded, "records": self.records}

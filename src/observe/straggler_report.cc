// SPDX-License-Identifier: Apache-2.0
#include "observe/straggler_report.h"

#include <algorithm>
#include <map>

#include "base/json_text.h"
#include "base/text.h"

namespace ccom {
namespace {

using Straggler = WaitReport::Straggler;

double share_of(double part, double whole) { return whole > 0 ? std::min(part / whole, 1.0) : 0; }

void add_wait(const RankWaits& of, const RankWaits::For& wait, Straggler& straggler) {
  const double share = share_of(wait.seconds, of.seconds);
  if (share >= WaitReport::kLeastShare) ++straggler.seen_by;
  if (straggler.seen_from >= 0 && wait.seconds <= straggler.seconds) return;
  straggler.seconds = wait.seconds;
  straggler.share = share;
  straggler.share_of_calls = share_of(wait.seconds, of.in_calls);
  straggler.seen_from = of.rank;
  straggler.where = wait;
}

bool is_told(const Straggler& straggler) { return straggler.share >= WaitReport::kLeastShare; }

// "allreduce at train.py:88 (step)"
std::string place_of(const RankWaits::For& where) {
  return std::string(traits_of(where.collective).name) + (where.site.empty() ? "" : " at " + where.site);
}

std::string sentence(const Straggler& straggler, const WaitReport& report) {
  const RankWaits::For& where = straggler.where;
  const size_t others = report.ranks.size() - (std::ranges::count(report.ranks, straggler.rank, &RankWaits::rank));
  std::string text = printed("rank %d made the others wait %.0f %% of the time (%.3g s", straggler.rank,
                             100 * straggler.share, straggler.seconds);
  text += printed(", %.0f %% of their time in calls), as %zu of %zu say", 100 * straggler.share_of_calls,
                  straggler.seen_by, others);
  if (where.place_seconds > where.seconds / 2) {
    text += printed("; %.0f %% of that before ", 100 * share_of(where.place_seconds, where.seconds)) + place_of(where);
    text += printed(", in %llu of %llu waits", static_cast<unsigned long long>(where.place_waits),
                    static_cast<unsigned long long>(where.waits));
    text += printed(", the longest for %.3g s", where.longest_seconds);
    if (where.longest_call != 0) text += printed(" before #%llu", static_cast<unsigned long long>(where.longest_call));
  }
  if (straggler.passed_on) text += "; it may have passed on what others did: it has waited itself";
  return text;
}

std::string json_of(const Straggler& straggler) {
  const RankWaits::For& where = straggler.where;
  JsonObjectText place;
  place.add("collective", std::string(traits_of(where.collective).name)).add("site", where.site);
  place.add("seconds", where.place_seconds).add("waits", static_cast<size_t>(where.place_waits));
  place.add("longest_seconds", where.longest_seconds).add("longest_call", static_cast<size_t>(where.longest_call));
  JsonObjectText object;
  object.add("rank", straggler.rank).add("share", straggler.share).add("seconds", straggler.seconds);
  object.add("share_of_calls", straggler.share_of_calls).add("seen_by", straggler.seen_by);
  object.add("seen_from", straggler.seen_from).add("passed_on", straggler.passed_on);
  return object.add("waits", static_cast<size_t>(where.waits)).add_text("place", place.text()).text();
}

}  // namespace

WaitReport report_waits(std::vector<RankWaits> ranks, int nranks) {
  WaitReport report;
  report.nranks = nranks;
  std::ranges::sort(ranks, {}, &RankWaits::rank);
  std::map<Rank, Straggler> found;
  for (const RankWaits& of : ranks) {
    report.seconds = std::max(report.seconds, of.seconds);
    for (const RankWaits::For& wait : of.waited_for) add_wait(of, wait, found[wait.rank]);
  }
  for (auto& [rank, straggler] : found) {
    straggler.rank = rank;
    const auto own = std::ranges::find(ranks, rank, &RankWaits::rank);
    straggler.passed_on = own != ranks.end() && own->waited >= straggler.seconds / 2;
    report.stragglers.push_back(straggler);
  }
  std::ranges::stable_sort(report.stragglers, [](const Straggler& a, const Straggler& b) {
    return std::pair(a.passed_on, -a.seconds) < std::pair(b.passed_on, -b.seconds);
  });
  report.ranks = std::move(ranks);
  return report;
}

std::string text_of(const WaitReport& report) {
  std::string text = printed("waits since the communicator started %.3g s ago", report.seconds);
  const int unknown = report.nranks - static_cast<int>(report.ranks.size());
  if (unknown > 0) text += printed(", without what %d of %d ranks say", unknown, report.nranks);
  text += ":";
  size_t told = 0, more = 0;
  for (const Straggler& straggler : report.stragglers) {
    if (!is_told(straggler)) continue;
    if (++told > WaitReport::kMost) {
      ++more;
    } else {
      text += "\n" + sentence(straggler, report);
    }
  }
  if (told == 0) text += "\nno rank made the others wait for more than 1 % of the time";
  if (more > 0) text += printed("\nand %zu more ranks for 1 %% or longer", more);
  if (told > 0 && std::ranges::any_of(report.ranks, &RankWaits::is_sampled))
    text += "\ntime in calls shorter than 4 KiB is taken from one in 64 of them";
  return text;
}

std::string json_of(const WaitReport& report) {
  JsonList stragglers, ranks;
  size_t told = 0;
  for (const Straggler& straggler : report.stragglers)
    if (is_told(straggler) && ++told <= WaitReport::kMost) stragglers.add(json_of(straggler));
  for (const RankWaits& of : report.ranks) {
    const auto made = std::ranges::find(report.stragglers, of.rank, &Straggler::rank);
    JsonObjectText object;
    object.add("rank", of.rank).add("in_calls_seconds", of.in_calls).add("is_sampled", of.is_sampled);
    object.add("waited_seconds", of.waited);
    object.add("made_wait_seconds", made == report.stragglers.end() ? 0.0 : made->seconds);
    ranks.add(object.text());
  }
  JsonObjectText object;
  object.add("seconds", report.seconds).add("nranks", report.nranks).add("known_ranks", report.ranks.size());
  return object.add_text("stragglers", stragglers.text()).add_text("ranks", ranks.text()).text();
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/json.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/collective.h"
#include "base/text.h"
#include "tools/jobs/words.h"

namespace ccom {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;  // of the form: grows when something changes its meaning or goes

// As text: readers of JSON lose digits of numbers of 64 bits.
ordered_json number_text(uint64_t number) { return number == 0 ? ordered_json() : ordered_json(hexadecimal(number)); }

ordered_json known(double number) { return number < 0 ? ordered_json() : ordered_json(number); }
ordered_json known(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }

ordered_json call_json(const RankActivity& activity) {
  if (activity.call.number == 0) return {};
  const CallKind kind = parts_of(activity.call.kind);
  return {{"number", activity.call.number}, {"operation", operation_of(activity)},    {"type", type_of(kind)},
          {"count", activity.call.count},   {"algorithm", known(activity.algorithm)}, {"site", known(activity.site)}};
}

ordered_json totals_json(const CallTotals& totals) {
  ordered_json all = ordered_json::array();
  for (const CallTotals::Of& of : totals.calls) {
    all.push_back(
        {{"operation", std::string(traits_of(of.collective).name)},
         {"up_to_bytes", of.size_class + 1 < kSizeClasses ? ordered_json(largest_in(of.size_class)) : ordered_json()},
         {"calls", of.calls},
         {"bytes", of.bytes},
         {"seconds", of.seconds},
         {"is_exact", of.is_exact},
         {"waited_seconds", of.waited_seconds}});
  }
  return all;
}

ordered_json waited_for_json(const CallTotals& totals) {
  ordered_json all = ordered_json::array();
  for (const CallTotals::WaitedFor& of : totals.waited_for)
    all.push_back({{"rank", of.rank}, {"seconds", of.seconds}, {"too_many_seconds", of.too_many_seconds}});
  return all;
}

ordered_json rate_json(const std::optional<Rate>& rate) {
  if (!rate) return {};
  return {{"calls_per_second", rate->calls},
          {"bytes_per_second", rate->bytes},
          {"share_in_calls", rate->in_calls},
          {"share_waited", rate->waited}};
}

ordered_json rank_json(const CommunicatorSeen& communicator, const RankSeen& rank, const Rates* rates) {
  const RankActivity& activity = rank.activity;
  ordered_json json = {{"rank", activity.rank},
                       {"host", known(rank.host)},
                       {"pid", activity.pid == 0 ? ordered_json() : ordered_json(activity.pid)},
                       {"state", name_of(activity.state)},
                       {"seconds", known(activity.seconds)},
                       {"call", call_json(activity)},
                       {"waits_for", activity.waits_for < 0 ? ordered_json() : ordered_json(activity.waits_for)},
                       {"waited_seconds", activity.waited},
                       {"place", known(activity.place)},
                       {"messages", activity.messages},
                       {"silent_seconds", known(activity.silent)},
                       {"text", text_of(activity)},
                       {"told_seconds_ago", known(rank.told_before)},
                       {"calls", rank.is_here() ? ordered_json(rank.calls()) : ordered_json()},
                       {"bytes", rank.is_here() ? ordered_json(rank.bytes()) : ordered_json()},
                       {"totals", totals_json(rank.totals)},
                       {"waited_for", waited_for_json(rank.totals)}};
  if (rates != nullptr) json["rate"] = rate_json(rates->of(communicator.number, activity.rank));
  return json;
}

ordered_json communicator_json(const CommunicatorSeen& communicator, const Rates* rates) {
  ordered_json ranks = ordered_json::array();
  for (const RankSeen& rank : communicator.seen) ranks.push_back(rank_json(communicator, rank, rates));
  ordered_json json = {{"communicator", hexadecimal(communicator.number)},
                       {"parent", number_text(communicator.parent)},
                       {"name", known(communicator.name)},
                       {"ranks", communicator.ranks},
                       {"hosts", communicator.hosts},
                       {"age_seconds", communicator.age},
                       {"error", known(communicator.error)},
                       {"failed_ranks", communicator.failed},
                       {"seen", std::move(ranks)},
                       {"no_answer", communicator.unknown}};
  if (rates != nullptr) json["rate"] = rate_json(rates->of(communicator));
  return json;
}

ordered_json link_json(const LinkSeen& link, const Rates* rates) {
  ordered_json json = {{"pid", link.pid},
                       {"ranks", link.ranks},
                       {"local", link.local},
                       {"remote", link.remote},
                       {"connections", link.connections},
                       {"sent_bytes", link.sent},
                       {"received_bytes", link.received},
                       {"retransmitted_segments", link.retransmits},
                       {"round_trip_seconds", link.rtt},
                       {"sending_seconds", link.sending}};
  const std::optional<LinkRate> rate = rates == nullptr ? std::nullopt : rates->of(link);
  if (rate)
    json["rate"] = {{"sent_bytes_per_second", rate->sent},
                    {"received_bytes_per_second", rate->received},
                    {"retransmitted_segments_per_second", rate->retransmits},
                    {"share_sending", rate->sending}};
  return json;
}

ordered_json place_json(const Health::Place& place) {
  return {{"communicator", hexadecimal(place.communicator)}, {"rank", place.rank}};
}

ordered_json late_json(const Health& health) {
  ordered_json all = ordered_json::array();
  for (const Health::LateRank& late : health.late)
    all.push_back({{"communicator", hexadecimal(late.communicator)},
                   {"rank", late.rank},
                   {"seconds", late.seconds},
                   {"waiting", late.waiting},
                   {"reason", late.reason}});
  return all;
}

ordered_json busy_links_json(const Health& health) {
  ordered_json all = ordered_json::array();
  for (const Health::BusyLink& link : health.busy_links)
    all.push_back({{"pid", link.pid},
                   {"ranks", link.ranks},
                   {"local", link.local},
                   {"remote", link.remote},
                   {"share", link.share},
                   {"bytes_per_second", link.bytes_per_second}});
  return all;
}

ordered_json stragglers_json(const Health& health) {
  ordered_json all = ordered_json::array();
  for (const Health::Straggler& straggler : health.stragglers)
    all.push_back({{"communicator", hexadecimal(straggler.communicator)},
                   {"rank", straggler.rank},
                   {"seconds", straggler.seconds},
                   {"share", straggler.share},
                   {"passed_on", straggler.passed_on}});
  return all;
}

}  // namespace

std::string to_json(const HostSeen& seen, const Health& health, const Rates* rates) {
  ordered_json cycles = ordered_json::array(), dead = ordered_json::array(), communicators = ordered_json::array(),
               links = ordered_json::array();
  for (const Health::Cycle& cycle : health.cycles) {
    ordered_json places = ordered_json::array();
    for (const Health::Place& place : cycle) places.push_back(place_json(place));
    cycles.push_back(std::move(places));
  }
  for (const Health::Place& place : health.dead) dead.push_back(place_json(place));
  for (const CommunicatorSeen& communicator : seen.communicators)
    communicators.push_back(communicator_json(communicator, rates));
  for (const LinkSeen& link : seen.links) links.push_back(link_json(link, rates));
  const ordered_json json = {{"version", kVersion},
                             {"health", name_of(health.verdict)},
                             {"late", late_json(health)},
                             {"stragglers", stragglers_json(health)},
                             {"busy_links", busy_links_json(health)},
                             {"cycles", std::move(cycles)},
                             {"dead", std::move(dead)},
                             {"communicators", std::move(communicators)},
                             {"links", std::move(links)},
                             {"unlisted_communicators", seen.unlisted},
                             {"processes_of_other_versions", seen.other_versions}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "tools/jobs/words.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/collective.h"
#include "base/text.h"
#include "observe/call_counters.h"

namespace ccom {

static_assert(size_class(uint64_t{64} << 4 * 4) == 4 && size_class((uint64_t{64} << 4 * 4) + 1) == 5);

const char* name_of(RankActivity::State state) {
  switch (state) {
    case RankActivity::State::Absent: return "absent";
    case RankActivity::State::Outside: return "outside";
    case RankActivity::State::InCall: return "in call";
    case RankActivity::State::Transfers: return "transfers";
    case RankActivity::State::Message: return "message";
    case RankActivity::State::Left: return "left";
    case RankActivity::State::Dead: return "dead";
  }
  return "unknown";
}

std::string operation_of(const RankActivity& of) {
  if (of.call.number == 0) return "";
  const CallKind kind = parts_of(of.call.kind);
  return static_cast<size_t>(kind.collective) < kCollectiveTraits.size() ? call_name(kind.collective, kind.is_v)
                                                                         : "unknown";
}

std::string type_of(const CallKind& kind) { return std::string(name_of(kind.type)); }

uint64_t largest_in(size_t size_class) { return uint64_t{64} << 4 * size_class; }

std::string short_figure(double number) {
  constexpr std::array kUnits = {"", " k", " M", " G", " T", " P"};
  if (!std::isfinite(number) || number < 0) return "?";
  size_t unit = 0;
  while (number >= 999.5 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  const int digits = number == std::floor(number) && unit == 0 ? 0 : number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
  return printed("%.*f%s", digits, number, kUnits[unit]);
}

std::string short_seconds(double seconds) {
  if (!(seconds >= 0)) return "";
  if (seconds < 0.9995) return printed("%.0f ms", seconds * 1e3);
  if (seconds < 99.95) return printed("%.1f s", seconds);
  const auto whole = static_cast<long long>(std::min(seconds, 1e12));
  if (whole < 3600) return printed("%lld:%02lld", whole / 60, whole % 60);
  if (whole < 100 * 3600) return printed("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  return printed("%lld days", whole / 86400);
}

std::string percent(double share) { return printed("%.0f %%", share * 100); }

std::string does(const RankActivity& activity) {
  const std::string call = operation_of(activity) + " #" + std::to_string(activity.call.number);
  const std::string at = activity.site.empty() ? "" : " at " + activity.site;
  switch (activity.state) {
    case RankActivity::State::InCall: return call + at;
    case RankActivity::State::Outside: break;
    default: return text_of(activity);
  }
  const std::string since = activity.seconds > 0 ? " " + short_seconds(activity.seconds) : "";
  if (!activity.place.empty()) return "outside" + since + " at " + activity.place;
  return "outside" + since + (activity.call.number == 0 ? ", no call yet" : ", after " + call + at);
}

std::string cut(const std::string& text, size_t columns) {
  size_t width = 0, at = 0, end = 0;  // end: of what fits before the dots
  while (at < text.size()) {
    if (width + 3 <= columns) end = at;
    if (++width > columns) return text.substr(0, end) + std::string("...").substr(0, columns);
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
  }
  return text;
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "trace/clock_offsets.h"

#include <algorithm>

namespace ccom {
namespace {

struct Window {
  int64_t begin_ns = 0, end_ns = 0;  // on the other machine's clock
  int64_t least = INT64_MIN, most = INT64_MAX;

  void add(const SharedCall& call) {
    end_ns = std::max(end_ns, call.other.first_ended_ns);
    least = std::max(least, call.reference.last_begun_ns - call.other.first_ended_ns);
    most = std::min(most, call.reference.first_ended_ns - call.other.last_begun_ns);
  }
  // Bounds that exclude each other, because of drift, are as wrong as they are apart.
  ClockOffset::Known middle() const {
    const int64_t width = most - least;
    return {begin_ns + (end_ns - begin_ns) / 2, least + width / 2, std::max(width, -width) / 2 + 1};
  }
};

}  // namespace

int64_t ClockOffset::error_ns() const { return std::ranges::max_element(known, {}, &Known::error_ns)->error_ns; }

int64_t ClockOffset::to_common(int64_t ns) const {
  const auto after = std::ranges::upper_bound(known, ns, {}, &Known::at_ns);
  if (after == known.begin()) return ns + known.front().offset_ns;
  if (after == known.end()) return ns + known.back().offset_ns;
  const Known &left = *(after - 1), &right = *after;
  const double share = static_cast<double>(ns - left.at_ns) / static_cast<double>(right.at_ns - left.at_ns);
  return ns + left.offset_ns + static_cast<int64_t>(share * static_cast<double>(right.offset_ns - left.offset_ns));
}

std::optional<ClockOffset> compare_clocks(const std::vector<SharedCall>& calls, int64_t window_ns) {
  std::vector<Window> windows;
  for (const SharedCall& call : calls) {
    const int64_t begun = call.other.last_begun_ns;
    if (windows.empty() || begun - windows.back().begin_ns >= window_ns)
      windows.push_back({.begin_ns = begun, .end_ns = begun});
    windows.back().add(call);
  }
  if (windows.empty()) return std::nullopt;
  ClockOffset found;
  found.known.clear();
  for (const Window& window : windows) {
    const ClockOffset::Known middle = window.middle();
    if (found.known.empty() || middle.at_ns > found.known.back().at_ns) found.known.push_back(middle);
  }
  return found;
}

}  // namespace ccom

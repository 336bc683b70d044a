// SPDX-License-Identifier: Apache-2.0
#include "sim/fair_wires.h"

#include <algorithm>
#include <cmath>

namespace ccom {
namespace {

constexpr double kRounding = 0.5;  // ps: calls come at whole ones

}  // namespace

void FairWires::advance(Wire& wire, SimTime now) {
  if (!wire.moving.empty()) {
    wire.moved += static_cast<double>(now - wire.since) / static_cast<double>(wire.moving.size());
  }
  wire.since = now;
}

SimTime FairWires::next(Wire& wire, SimTime now) {
  wire.due = kNever;
  if (wire.moving.empty()) return kNever;
  const auto first = std::ranges::min_element(wire.moving, {}, &Moving::ends);
  const double left = std::max(first->ends - wire.moved, 0.0) * static_cast<double>(wire.moving.size());
  wire.due = now + static_cast<SimTime>(std::ceil(left));
  return wire.due;
}

SimTime FairWires::enter(uint32_t index, const WireEntry& entry, SimTime now) {
  Wire& wire = wires_[index];
  const bool waits = std::ranges::any_of(wire.moving, [&](const Moving& at) { return at.entry.pipe == entry.pipe; });
  if (waits) {
    wire.waiting.push_back(entry);
    return wire.due;
  }
  advance(wire, now);
  wire.moving.push_back({wire.moved + static_cast<double>(entry.length), entry});
  return next(wire, now);
}

SimTime FairWires::end(uint32_t index, SimTime now, std::vector<WireEntry>& off) {
  Wire& wire = wires_[index];
  advance(wire, now);
  std::vector<WireEntry> followers;
  std::erase_if(wire.moving, [&](const Moving& at) {
    if (at.ends > wire.moved + kRounding) return false;
    off.push_back(at.entry);
    const auto next = std::ranges::find(wire.waiting, at.entry.pipe, &WireEntry::pipe);
    if (next != wire.waiting.end()) {
      followers.push_back(*next);
      wire.waiting.erase(next);
    }
    return true;
  });
  if (wire.moving.empty()) wire.moved = 0;
  for (const WireEntry& entry : followers) {
    wire.moving.push_back({wire.moved + static_cast<double>(entry.length), entry});
  }
  return next(wire, now);
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/flights.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

namespace ccom::tcp {
namespace {

bool copy_payload(Fragment& fragment) {
  if (!fragment.payload.empty()) {
    fragment.copy.reset(new (std::nothrow) std::byte[fragment.payload.size()]);
    if (fragment.copy == nullptr) return false;
    std::memcpy(fragment.copy.get(), fragment.payload.data(), fragment.payload.size());
    fragment.payload = {fragment.copy.get(), fragment.payload.size()};
  }
  ++std::exchange(fragment.message, nullptr)->settled;
  return true;
}

}  // namespace

bool Flights::is_empty() const {
  return lost_.empty() && std::ranges::all_of(lines_, [](const auto& flights) { return flights.empty(); });
}

bool Flights::settle(size_t line, uint64_t acknowledged) {
  auto& flights = lines_[line];
  const size_t before = flights.size();
  while (!flights.empty() && flights.front().end <= acknowledged) {
    if (Outgoing* const message = flights.front().fragment.message; message != nullptr) ++message->settled;
    flights.pop_front();
  }
  return flights.size() < before;
}

// Older messages first, which the receiver needs first.
void Flights::lose(size_t line, std::optional<Fragment> partial) {
  for (Flight& flight : lines_[line]) {
    if (flight.fragment.message != nullptr) --flight.fragment.message->written;
    lost_.push_back(std::move(flight.fragment));
  }
  lines_[line].clear();
  if (partial) lost_.push_back(*std::move(partial));
  const auto place = [](const Fragment& fragment) {
    return std::tuple(fragment.header.message, fragment.header.offset_bytes);
  };
  std::ranges::stable_sort(lost_, {}, place);
}

Fragment Flights::take_lost() {
  Fragment first = std::move(lost_.front());
  lost_.pop_front();
  return first;
}

// It was written last, unless something was lost meanwhile.
void Flights::keep(Outgoing& message) {
  for (auto& flights : lines_) {
    for (auto flight = flights.rbegin(); flight != flights.rend(); ++flight) {
      if (message.settled == message.fragments) return;
      if (flight->fragment.message == &message && !copy_payload(flight->fragment)) return;
    }
  }
}

void Flights::clear() {
  lost_.clear();
  for (auto& flights : lines_) flights.clear();
}

void Flights::drop_posted() {
  const auto is_posted = [](const Fragment& fragment) { return fragment.message != nullptr; };
  std::erase_if(lost_, is_posted);
  for (auto& flights : lines_) std::erase_if(flights, [&](const Flight& flight) { return is_posted(flight.fragment); });
}

uint64_t Flights::promised_end(size_t line) const {
  const auto& flights = lines_[line];
  const auto is_promised = [](const Flight& flight) { return flight.fragment.message == nullptr; };
  const auto last = std::find_if(flights.rbegin(), flights.rend(), is_promised);
  return last == flights.rend() ? 0 : last->end;
}

}  // namespace ccom::tcp

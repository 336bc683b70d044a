// SPDX-License-Identifier: Apache-2.0
//
// The clocks of several machines compared by what their ranks did together.
//
// Nobody ends a call in which all need something of all before the last one has begun it. So each such call bounds how
// far two clocks are apart, from above and from below:
//
//   begin_A - end_B <= offset <= end_A - begin_B          offset: what is added to B's times to have A's
//
// The bounds of many calls are intersected, in windows of some seconds because clocks drift, and the middle is taken:
// right to half of what is left. The idea is that of Cristian's bound on messages there and back, Probabilistic clock
// synchronization (Distributed Computing 3, 1989).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ccom {

// One machine's part in such a call: when the last of its ranks began, and the first ended.
struct MachineInCall {
  int64_t last_begun_ns = 0, first_ended_ns = 0;
};
struct SharedCall {
  MachineInCall reference, other;
};

// What is to be added to one machine's times, as it changes.
struct ClockOffset {
  struct Known {
    int64_t at_ns = 0;  // on this machine's clock
    int64_t offset_ns = 0;
    int64_t error_ns = 0;
    friend bool operator==(const Known&, const Known&) = default;
  };
  std::vector<Known> known{{}};  // ascending; never empty
  bool is_measured = true;       // false: by the machines' calendars only
  int64_t error_ns() const;      // the largest
  // Between two known ones in proportion.
  int64_t to_common(int64_t ns) const;
};

// Of the other machine. Empty if the calls tell nothing.
std::optional<ClockOffset> compare_clocks(const std::vector<SharedCall>& calls, int64_t window_ns = 5'000'000'000);

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
//
// Where in the user's program a call was made: numbers for return addresses and for texts, once per process.
//
// A number costs a comparison for places from which the process has called lately, and a look-up for others. The text
// of a return address is "module+0x1234 symbol", which anybody can resolve into file and line later (source_line.h); a
// binding of another language says the text itself (ccomSetCallSite). CCOM_CALL_SITES=0: all numbers are 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace ccom {

using CallSite = uint16_t;  // 0: unknown. At most kMostCallSites are told apart; further ones are unknown
inline constexpr uint32_t kMostCallSites = 8192;

namespace internal {
extern std::atomic<bool> is_any_call_site_set;  // by any thread
}

// Of a call that this thread makes now: what it has set, or the place of this return address.
CallSite call_site(const void* return_address) noexcept;

// The last result of call_site() of calls that are likely to come from one place. Belongs to one thread at a time.
class LastCallSite {
 public:
  CallSite of(const void* return_address) noexcept {
    if (return_address != address_ || is_any_set()) [[unlikely]]
      return look_up(return_address);
    return site_;
  }

 private:
  static bool is_any_set() noexcept { return internal::is_any_call_site_set.load(std::memory_order_relaxed); }
  CallSite look_up(const void* return_address) noexcept;

  const void* address_ = nullptr;
  CallSite site_ = 0;
};

// The place of this thread's next calls, until the next set_call_site(); "": their return addresses again. Copied.
void set_call_site(std::string_view text) noexcept;

// "" for 0. Valid for the life of the process.
std::string_view text_of(CallSite site) noexcept;

}  // namespace ccom

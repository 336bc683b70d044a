// SPDX-License-Identifier: Apache-2.0
//
// What a sender has written and the peer's kernel has not acknowledged, where lines may be lost (rails.h).
//
// A fragment is settled when the kernel says that the bytes of its line up to its end are acknowledged: they are in the
// peer's kernel then, and can be read there even if the line fails. Until then its bytes are kept: those of the message
// itself, which is not reported complete; or, once few fragments of it are left, copies. What was under way on a lost
// line is handed back, to be written to another one, a second time for all we know.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "transports/tcp/wire.h"
#include "transports/transport.h"

namespace ccom::tcp {

// Posted and not reported complete.
struct Outgoing {
  Send send;
  uint64_t number = 0;
  size_t fragments = 1;
  size_t pulled = 0;   // by lines
  size_t written = 0;  // to the kernel, and not lost since
  size_t settled = 0;  // or copied
};

struct Fragment {
  FragmentHeader header{};
  ConstBytes payload{};
  Outgoing* message = nullptr;          // null: it has been reported complete
  std::unique_ptr<std::byte[]> copy{};  // of the payload, from then on
};

class Flights {
 public:
  explicit Flights(size_t lines) : lines_(lines) {}

  // Nothing is under way, nor handed back.
  bool is_empty() const;
  bool has_on(size_t line) const { return !lines_[line].empty(); }
  // end: of the fragment, among all bytes written to the line.
  void add(size_t line, Fragment fragment, uint64_t end) { lines_[line].push_back({std::move(fragment), end}); }
  // So many bytes of the line are acknowledged. Whether that has settled anything.
  bool settle(size_t line, uint64_t acknowledged);
  // Hands back all of a line, and `partial`, which was being written to it.
  void lose(size_t line, std::optional<Fragment> partial);
  bool has_lost() const { return !lost_.empty(); }
  Fragment take_lost();
  // Copies what is left of a message that has been written, unless there is no memory.
  void keep(Outgoing& message);
  void clear();
  // Forgets what belongs to messages that have not been reported.
  void drop_posted();
  // The end of the last fragment on the line that belongs to a reported message; 0: there is none.
  uint64_t promised_end(size_t line) const;

 private:
  struct Flight {
    Fragment fragment;
    uint64_t end;
  };
  std::vector<std::deque<Flight>> lines_;
  std::deque<Fragment> lost_;  // by message and offset
};

}  // namespace ccom::tcp

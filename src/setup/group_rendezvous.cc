// SPDX-License-Identifier: Apache-2.0
#include "setup/group_rendezvous.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "setup/exchange.h"
#include "setup/exchanges.pb.h"

namespace ccom {
namespace {

// What a member may send in a round: all strings of the largest group, and what goes with them.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// The size of what a member sends, and as much of it as there is room for: mostly all.
struct Front {
  uint64_t bytes = 0;
  std::array<char, 2040> text{};
  size_t inside() const { return std::min<size_t>(bytes, text.size()); }
};

ConstBytes rest_of(const std::string& text, size_t inside) { return std::as_bytes(std::span(text)).subspan(inside); }

}  // namespace

Result<std::string> GroupRendezvous::swap(int to, const std::string& sent, int from, Deadline deadline) {
  Front own, theirs;
  own.bytes = sent.size();
  std::copy_n(sent.data(), own.inside(), own.text.data());
  CCOM_TRY(links_.swap(to, std::as_bytes(std::span(&own, 1)), from, std::as_writable_bytes(std::span(&theirs, 1)),
                       deadline));
  if (theirs.bytes > kMostBytes)
    return error(Code::InternalError, "member %d of the group sends %llu bytes", from,
                 static_cast<unsigned long long>(theirs.bytes));
  std::string received(theirs.text.data(), theirs.inside());
  received.resize(theirs.bytes);
  if (own.bytes == own.inside() && theirs.bytes == theirs.inside()) return received;
  CCOM_TRY(links_.swap(to, rest_of(sent, own.inside()), from,
                       std::as_writable_bytes(std::span(received)).subspan(theirs.inside()), deadline));
  return received;
}

Result<std::vector<std::string>> GroupRendezvous::all_gather(std::string_view phase, std::string mine,
                                                             Deadline deadline) {
  // Of this member and those behind it, in this order.
  wire::Heard heard;
  heard.set_phase(std::string(phase));
  heard.add_texts(std::move(mine));
  while (heard.texts_size() < members_) {
    const int known = heard.texts_size();
    const int behind = std::min(known, members_ - known);  // members whose texts are still missing, of those it has
    CCOM_TRY_ASSIGN(const std::string received, swap((member_ + members_ - known) % members_, heard.SerializeAsString(),
                                                     (member_ + known) % members_, deadline));
    wire::Heard theirs;
    CCOM_TRY(parse_part(received, phase, (member_ + known) % members_, theirs));
    if (theirs.phase() != phase || theirs.texts_size() < behind) {
      return error(Code::InternalError, "member %d of the group is at \"%s\", member %d at \"%s\"",
                   (member_ + known) % members_, theirs.phase().c_str(), member_, std::string(phase).c_str());
    }
    for (int i = 0; i < behind; ++i) heard.add_texts(std::move(*theirs.mutable_texts(i)));
  }
  std::vector<std::string> all(static_cast<size_t>(members_));
  for (int i = 0; i < members_; ++i)
    all[static_cast<size_t>((member_ + i) % members_)] = std::move(*heard.mutable_texts(i));
  return all;
}

}  // namespace ccom

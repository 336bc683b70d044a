// SPDX-License-Identifier: Apache-2.0
//
// The all-gather among the members of a group, whose links are queues between threads.
#include "setup/group_rendezvous.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "tests/harness/threads.h"

namespace ccom {
namespace {

// A queue for each ordered pair of members.
class Wires {
 public:
  Status swap(int self, int to, ConstBytes sent, int from, Bytes received, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!sent.empty()) queues_[{self, to}].emplace_back(sent.begin(), sent.end());
    changed_.notify_all();
    if (received.empty()) return {};
    auto& queue = queues_[{from, self}];
    if (!changed_.wait_until(lock, deadline.when(), [&] { return !queue.empty(); }))
      return error(Code::Timeout, "nothing from %d", from);
    if (queue.front().size() != received.size()) return error(Code::Mismatch, "%zu bytes", queue.front().size());
    std::memcpy(received.data(), queue.front().data(), received.size());
    queue.pop_front();
    return {};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> queues_;
};

std::string text_of_member(int member, size_t most) {
  return std::string(most == 0 ? 0 : static_cast<size_t>(member) * 7919 % most, static_cast<char>('a' + member % 26));
}

void run(int members, const std::function<void(int, GroupRendezvous&)>& body) {
  Wires wires;
  run_ranks(members, [&](int member) {
    GroupRendezvous rendezvous(
        member, members,
        {.swap = [&wires, member](int to, ConstBytes sent, int from, Bytes received,
                                  Deadline deadline) { return wires.swap(member, to, sent, from, received, deadline); },
         .has_failed = [] { return false; }});
    body(member, rendezvous);
  });
}

// Sizes on both sides of what fits into the first message.
TEST(GroupRendezvous, GathersTheTextsOfAll) {
  for (const int members : {1, 2, 3, 4, 5, 7, 8, 13}) {
    for (const size_t most : {size_t{0}, size_t{100}, size_t{2040}, size_t{100000}}) {
      run(members, [&](int member, GroupRendezvous& rendezvous) {
        for (const char* phase : {"first", "second"}) {
          const auto all = rendezvous.all_gather(phase, text_of_member(member, most), Deadline::after_ms(60000));
          ASSERT_TRUE(all) << all.error().message();
          ASSERT_EQ(all->size(), static_cast<size_t>(members));
          for (int other = 0; other < members; ++other)
            ASSERT_EQ((*all)[static_cast<size_t>(other)], text_of_member(other, most)) << member << " of " << members;
        }
      });
    }
  }
}

TEST(GroupRendezvous, NoticesAnotherPhase) {
  run(3, [](int member, GroupRendezvous& rendezvous) {
    const auto all = rendezvous.all_gather(member == 1 ? "other" : "this", "text", Deadline::after_ms(200));
    ASSERT_FALSE(all);
  });
}

TEST(GroupRendezvous, EndsAtTheDeadline) {
  run(3, [](int member, GroupRendezvous& rendezvous) {
    if (member == 2) return;
    const auto all = rendezvous.all_gather("this", "text", Deadline::after_ms(50));
    ASSERT_FALSE(all);
    EXPECT_EQ(all.error().code(), Code::Timeout);
  });
}

}  // namespace
}  // namespace ccom

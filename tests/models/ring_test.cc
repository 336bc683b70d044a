// SPDX-License-Identifier: Apache-2.0
//
// transports/shm: one ring, and how its two ranks sleep. ShmTransport's own part - a fence, a look at who sleeps, the
// doorbell; a nap around a last look - is repeated here, because a whole transport has too many states.
#include <gtest/gtest.h>

#include "mutations.h"
#include "transports/shm/doorbell.h"
#include "transports/shm/incoming.h"
#include "transports/shm/outgoing.h"

namespace ccom::model {
namespace {

using shm::Progress;

alignas(4096) std::array<std::byte, 8192> memory;

enum class Waits { Poll, Sleep };

// Of two messages, or of one, so that the second has to wait for the first.
shm::Layout layout_of(Waits waits) {
  return {.ranks = 2, .channels = 1, .ring_bytes = waits == Waits::Poll ? size_t{128} : size_t{64}};
}
constexpr Token kNone{};

struct Host {
  explicit Host(Waits waits) : layout(layout_of(waits)) {
    for (int rank : {0, 1}) {
      declare(lines(rank).doorbell, "doorbell");
      declare(lines(rank).sleeping, "sleeping");
    }
    declare(ring.lines->head, "head");
    declare(ring.lines->tail, "tail");
  }
  static shm::RankLines& lines(int rank) { return layout_of(Waits::Poll).rank_lines(memory.data(), rank); }
  // As ShmTransport::notify_all().
  static void notify(int rank) {
    full_fence();
    if (lines(rank).sleeping.load(std::memory_order_relaxed) != 0) shm::ring(lines(rank));
  }
  const shm::Layout layout;
  const shm::RingView ring = layout.ring(memory.data(), layout.ring_index(0, 1, 0));
  shm::Outgoing outgoing{ring};
  shm::Incoming incoming{ring};
};

Envelope envelope_of(uint64_t number) { return {{number}}; }

void send_all(Host& host, uint64_t messages, Waits waits) {
  for (uint64_t number = 1; number <= messages; ++number) {
    const uint64_t payload = 100 * number;
    const Send send{envelope_of(number), std::as_bytes(std::span(&payload, 1)), kNone};
    Progress progress = host.outgoing.advance(send);
    for (; progress == Progress::Waiting; progress = host.outgoing.advance(send)) {
      if (waits == Waits::Poll) {
        spin();
        continue;
      }
      shm::Nap nap(Host::lines(0));
      if (!host.outgoing.has_room(send)) nap.sleep(std::chrono::seconds(1));
    }
    check(progress == Progress::Done, "a broken ring");
    if (waits == Waits::Sleep) Host::notify(1);
  }
}

void receive_all(Host& host, uint64_t messages, Waits waits) {
  for (uint64_t number = 1; number <= messages; ++number) {
    uint64_t payload = 0;
    const Receive receive{envelope_of(number), sizeof payload, reinterpret_cast<std::byte*>(&payload)};
    Progress progress = host.incoming.advance(receive);
    for (; progress == Progress::Waiting; progress = host.incoming.advance(receive)) {
      if (waits == Waits::Poll) {
        spin();
        continue;
      }
      if (host.incoming.has_unnotified()) host.incoming.notified(), Host::notify(0);
      shm::Nap nap(Host::lines(1));
      if (!host.incoming.has_bytes()) nap.sleep(std::chrono::seconds(1));
    }
    check(progress == Progress::Done, "not the message that was sent");
    check(payload == 100 * number, "not the payload that was sent");
    if (waits == Waits::Sleep && host.incoming.needs_notification()) host.incoming.notified(), Host::notify(0);
  }
}

Outcome explore_ring(uint64_t messages, Waits waits, const Options& options) {
  return explore(
      memory,
      [=] {
        auto host = std::make_shared<Host>(waits);
        Program program;
        program.threads.push_back([=] { send_all(*host, messages, waits); });
        program.threads.push_back([=] { receive_all(*host, messages, waits); });
        return program;
      },
      options);
}

TEST(RingModel, MessagesArriveAndNoneIsOverwritten) {
  expect_all_needed([](const Options& options) { return explore_ring(5, Waits::Poll, options); });
}

TEST(RingModel, NobodySleepsThroughAMessage) {
  const char* const reason =
      "the ring's counters carry all data, and the kernel compares the doorbell behind a barrier";
  expect_all_needed([](const Options& options) { return explore_ring(2, Waits::Sleep, options); },
                    {{"load doorbell acquire -> relaxed", reason},
                     {"modify doorbell acq_rel -> acquire", reason},
                     {"modify doorbell acq_rel -> release", reason}});
}

}  // namespace
}  // namespace ccom::model

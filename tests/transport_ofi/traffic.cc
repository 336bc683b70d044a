// SPDX-License-Identifier: Apache-2.0
#include "tests/transport_ofi/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ccom::ofi {
namespace {

constexpr size_t kGuard = 64;
constexpr std::byte kUntouched{0xA5};
constexpr Token kReceives = 1'000'000;  // tokens of receives are that much higher

}  // namespace

void Traffic::CopyingSink::consume(size_t offset_bytes, ConstBytes piece) {
  ASSERT_LE(offset_bytes + piece.size(), bytes.size());
  std::ranges::copy(piece, bytes.begin() + static_cast<ptrdiff_t>(offset_bytes));
}

Traffic::Traffic(OfiJob& job, int ranks, int channels, uint64_t seed, const Load& load)
    : job_(job), ranks_(ranks), random_(seed) {
  for (Rank from = 0; from < ranks; ++from) {
    for (Rank to = 0; to < ranks; ++to) {
      for (int index = 0; from != to && index < channels; ++index) {
        Flow sender{{}, true}, receiver{{}, false};
        const uint64_t count = load.least + random_() % (load.most - load.least + 1);
        for (uint64_t position = 0; position < count; ++position) {
          const size_t size = random_() % 3 == 0 ? random_() % load.large_bytes : random_() % load.small_bytes;
          Message& message =
              messages_.emplace_back(Message{from, to, index, position, pattern(size, random_()), {}, {}, 0});
          message.token = messages_.size();
          if (random_() % 2 == 0) {
            message.sink = std::make_unique<CopyingSink>();
            message.sink->bytes.resize(size);
          } else {
            message.received.assign(size + 2 * kGuard, kUntouched);
          }
          sender.messages.push_back(&message);
          receiver.messages.push_back(&message);
        }
        flows_.push_back(std::move(sender));
        flows_.push_back(std::move(receiver));
      }
    }
  }
}

void Traffic::post_next(Flow& flow) {
  Message& message = *flow.messages[flow.posted++];
  const Envelope envelope{{message.position, message.token}};
  const size_t size = message.sent.size();
  if (flow.is_sender) {
    (void)job_.channel(message.from, message.to, message.index).post_send({envelope, message.sent, message.token});
  } else {
    std::byte* target = message.sink ? nullptr : message.received.data() + kGuard;
    (void)job_.channel(message.to, message.from, message.index)
        .post_receive({envelope, size, target, message.sink.get(), kReceives + message.token});
  }
}

void Traffic::post() {
  std::vector<Flow*> open;
  for (Flow& flow : flows_) open.push_back(&flow);
  while (!open.empty()) {
    const size_t at = random_() % open.size();
    post_next(*open[at]);
    if (open[at]->posted == open[at]->messages.size()) open.erase(open.begin() + static_cast<ptrdiff_t>(at));
    if (random_() % 2 == 0) job_.step();
  }
}

bool Traffic::run(std::chrono::nanoseconds patience) {
  std::vector<size_t> expected(static_cast<size_t>(ranks_));
  for (const Message& message : messages_) {
    ++expected[static_cast<size_t>(message.from)];
    ++expected[static_cast<size_t>(message.to)];
  }
  return job_.step_until(
      [this, &expected] {
        for (Rank rank = 0; rank < ranks_; ++rank) {
          if (job_.report(rank).completed.size() < expected[static_cast<size_t>(rank)]) return false;
        }
        return true;
      },
      patience);
}

bool Traffic::is_complete(Rank rank, Token token) {
  return std::ranges::find(job_.report(rank).completed, token) != job_.report(rank).completed.end();
}

void Traffic::check(bool all_must_be_complete) {
  for (const Message& message : messages_) {
    SCOPED_TRACE(testing::Message() << message.from << " -> " << message.to << " on channel " << message.index
                                    << ", message " << message.position << " of " << message.sent.size() << " bytes");
    const bool has_arrived = is_complete(message.to, kReceives + message.token);
    if (all_must_be_complete) {
      EXPECT_TRUE(has_arrived);
      EXPECT_TRUE(is_complete(message.from, message.token));
    }
    if (message.sink != nullptr) {
      EXPECT_TRUE(!has_arrived || message.sink->bytes == message.sent);
      continue;
    }
    const std::span all(message.received);
    const auto is_untouched = [](std::byte byte) { return byte == kUntouched; };
    EXPECT_TRUE(std::ranges::all_of(all.first(kGuard), is_untouched));
    EXPECT_TRUE(std::ranges::all_of(all.last(kGuard), is_untouched));
    EXPECT_TRUE(!has_arrived || std::ranges::equal(all.subspan(kGuard, message.sent.size()), message.sent));
  }
}

}  // namespace ccom::ofi

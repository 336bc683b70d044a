// SPDX-License-Identifier: Apache-2.0
//
// Random messages between all ranks of a job, drawn from a seed, and whether every byte of them came.
#pragma once

#include <deque>
#include <random>

#include "tests/transport_ofi/ofi_job.h"

namespace ccom::ofi {

// How many messages of a flow, and the sizes of a third of them and of the others.
struct Load {
  uint64_t least = 1, most = 6;
  size_t large_bytes = 400'000, small_bytes = 3000;
};

class Traffic {
 public:
  Traffic(OfiJob& job, int ranks, int channels, uint64_t seed, const Load& load = {});
  // Posts everything, flows interleaved at random, and steps now and then.
  void post();
  // Steps until all is complete, somebody has failed, or patience is over.
  bool run(std::chrono::nanoseconds patience = kPatience);
  // Every message that was reported complete holds exactly what was sent, and nothing around it was touched.
  void check(bool all_must_be_complete);

 private:
  struct CopyingSink final : Sink {
    std::vector<std::byte> bytes;
    void consume(size_t offset_bytes, ConstBytes piece) override;
  };
  struct Message {
    Rank from, to;
    int index;
    uint64_t position;
    std::vector<std::byte> sent, received;  // received has kGuard bytes on both sides
    std::unique_ptr<CopyingSink> sink;
    Token token;
  };
  struct Flow {  // one end of one direction of a channel
    std::vector<Message*> messages;
    bool is_sender;
    size_t posted = 0;
  };
  void post_next(Flow& flow);
  bool is_complete(Rank rank, Token token);

  OfiJob& job_;
  const int ranks_;
  std::mt19937_64 random_;
  std::deque<Message> messages_;
  std::vector<Flow> flows_;
};

}  // namespace ccom::ofi

// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads, on communicators that carry messages, over each way that there is between them.
#pragma once

#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "tests/harness/world.h"

namespace ccom {

// shm: one host. tcp, ofi: one host without shared memory. mixed: two hosts, shm inside and tcp across.
struct Way {
  const char* name;
  const char* transport;
  int ranks_per_host;  // 0: all
};
inline constexpr Way kShm{"shm", nullptr, 0};
inline constexpr Way kTcp{"tcp", "tcp", 0};
inline constexpr Way kOfi{"ofi", "ofi", 0};
inline constexpr Way kMixed{"mixed", nullptr, 2};
inline void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

inline std::string way_name(const testing::TestParamInfo<Way>& way) { return way.param.name; }

struct RankOptions {
  Way way = kShm;
  int64_t timeout_ms = 60000;
};

inline void with_message_ranks(int nranks, const RankOptions& options, const RankBody& body) {
  const int per_host = options.way.ranks_per_host;
  with_ranks({.hosts = hosts_in_order(nranks, per_host == 0 ? nranks : per_host),
              .transport = options.way.transport,
              .messages = true,
              .timeout_ms = options.timeout_ms},
             body);
}

// Posted; the test has failed if it could not be.
inline ccomMessage_t send(const void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm) {
  ccomMessage_t message = nullptr;
  EXPECT_OK(ccomMessageSend(data, bytes, peer, tag, comm, nullptr, nullptr, &message));
  return message;
}
inline ccomMessage_t receive(void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm) {
  ccomMessage_t message = nullptr;
  EXPECT_OK(ccomMessageRecv(data, bytes, peer, tag, comm, nullptr, nullptr, &message));
  return message;
}
// Waits for it, expects `result`, frees it. Returns the peer.
inline int finish(ccomMessage_t message, ccomResult_t result = ccomSuccess) {
  int peer = -2;
  EXPECT_EQ(ccomMessageWait(message, -1, &peer), result) << error_text();
  EXPECT_OK(ccomMessageFree(message));
  return peer;
}
// A receive that ends so: where it is posted, if the communicator has failed by then or fails by what has come, or
// later.
inline void receive_fails(void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm, ccomResult_t expected) {
  ccomMessage_t message = nullptr;
  ccomResult_t result = ccomMessageRecv(data, bytes, peer, tag, comm, nullptr, nullptr, &message);
  if (result == ccomSuccess) {
    result = ccomMessageWait(message, -1, &peer);
    EXPECT_OK(ccomMessageFree(message));
  }
  EXPECT_EQ(result, expected) << error_text();
}

}  // namespace ccom

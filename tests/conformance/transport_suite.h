// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite: checks every sentence of transports/transport.h, for any transport. A transport joins with a
// source file like this and a line of CMake (see CMakeLists.txt):
//
//   class TcpJob final : public Job {
//    public:
//     Result<std::unique_ptr<Transport>> make(Rank rank) override { return tcp::make_tcp_transport({.rank = rank}); }
//   };
//   INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformance,
//                            testing::Values(Member{.name = "loopback", .make_job = [](JobShape) ->
//                            std::unique_ptr<Job> {
//                              return std::make_unique<TcpJob>();
//                            }}), member_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "transports/transport.h"

namespace ccom::conformance {

struct JobShape {
  int ranks = 0;
  int channels = 0;  // the most that any pair will use
};

// What the ranks of one job share: keys, segments, directories. Outlives its transports.
class Job {
 public:
  virtual ~Job() = default;
  // A transport for `rank`, not yet connected. Called once for each rank, one after another; every rank then connects
  // to all others, each in its own thread.
  virtual Result<std::unique_ptr<Transport>> make(Rank rank) = 0;
};

struct Member {
  std::string name;  // letters, digits and _
  std::function<std::unique_ptr<Job>(JobShape)> make_job;
  // For libraries that keep a listener of their own; otherwise nothing may listen once all ranks are connected.
  bool may_listen_after_connect = false;
};

inline void PrintTo(const Member& member, std::ostream* out) { *out << member.name; }

class TransportConformance : public testing::TestWithParam<Member> {};

inline std::string member_name(const testing::TestParamInfo<Member>& info) { return info.param.name; }

}  // namespace ccom::conformance

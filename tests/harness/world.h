// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads over the public API: makes the communicators, calls one function for each rank, destroys them.
#pragma once

#include <ccom/ccom.h>
#include <gmock/gmock.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/harness/ranks.h"

// A call of the API succeeds; otherwise its error is shown.
#define EXPECT_OK(call) EXPECT_EQ(call, ccomSuccess) << ccomGetLastError(nullptr) << ' '
#define ASSERT_OK(call) ASSERT_EQ(call, ccomSuccess) << ccomGetLastError(nullptr) << ' '
// It fails with that code and a text that has that part.
#define EXPECT_ERROR(call, code, part) EXPECT_THAT(outcome_of(call), testing::Pair(code, HasSubstr(part)))

namespace ccom {

using testing::HasSubstr;

// Of this thread's last call.
inline std::string error_text() { return ccomGetLastError(nullptr); }
inline std::pair<ccomResult_t, std::string> outcome_of(ccomResult_t result) { return {result, error_text()}; }

// What calls return by pointers. The test has failed if they did not succeed.
ccomResult_t async_error(ccomComm_t comm);
ccomErrorInfo_t error_info(ccomComm_t comm);
ccomUniqueId new_id();
ccomStream_t new_stream();
ccomRedOp_t new_operator(ccomRedOpFn function, void* context, ccomRedOpOrder_t order, ccomComm_t comm);
int rank_in(ccomComm_t comm);
int ranks_of(ccomComm_t comm);
// Of all ranks of `comm`, in their order.
std::vector<int> gathered(ccomComm_t comm, int value);

// Where ranks run, and what their communicator is told.
struct World {
  const char* name = "";
  std::vector<int> hosts{};  // by rank
  const char* transport = nullptr;
  const char* topology = nullptr;
  const char* algorithm = nullptr;
  const char* determinism = nullptr;
  const char* rounding = nullptr;
  const char* wire = nullptr;
  bool messages = false;
  int64_t timeout_ms = 60000;
  int ranks() const { return static_cast<int>(hosts.size()); }
};
inline void PrintTo(const World& world, std::ostream* out) { *out << world.name; }

// Two ranks whose settings differ: both are refused, by a text that has that part.
void expect_disagreement(const std::function<void(int rank, ccomConfig_t& config)>& set, const std::string& part);

// Hosts of that many ranks each, by rank. Hosts that take turns.
std::vector<int> hosts_in_order(int ranks, int ranks_per_host);
std::vector<int> hosts_in_turn(int ranks, int hosts);

// Sets the communicator to nullptr if it has destroyed it. Where an ASSERT fails it is aborted, so that others end.
using RankBody = std::function<void(int, ccomComm_t&)>;

void with_ranks(const World& world, const RankBody& body);
// On one host, by one call that makes all communicators.
void with_ranks(int ranks, const ccomConfig_t* config, const RankBody& body);
inline void with_ranks(int ranks, const RankBody& body) { with_ranks(ranks, nullptr, body); }

}  // namespace ccom

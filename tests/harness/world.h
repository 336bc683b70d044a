// SPDX-License-Identifier: Apache-2.0
//
// Ranks as threads over the public API: makes the communicators, calls one function for each rank, destroys them.
#pragma once

#include <ccom/ccom.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <vector>

namespace ccom {

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

// SPDX-License-Identifier: Apache-2.0
#include "mutations.h"

#include <gtest/gtest.h>

namespace ccom::model {
namespace {

bool begins(const std::string& text, const char* with) { return text.starts_with(with); }

std::vector<Order> weaker_than(const std::string& site) {
  const bool is_load = begins(site, "load"), is_store = begins(site, "store");
  if (site.ends_with("relaxed")) return {};
  if (site.ends_with("acq_rel")) return {Order::Acquire, Order::Release};
  if (!site.ends_with("seq_cst")) return {Order::Relaxed};
  return {is_load ? Order::Acquire : is_store ? Order::Release : Order::AcqRel, Order::Relaxed};
}

// By what is said of them in a list of survivors.
std::map<std::string, Mutation> mutations_of(const std::map<std::string, uint64_t>& sites) {
  std::map<std::string, Mutation> mutations;
  for (const auto& [site, count] : sites) {
    if (begins(site, "spin") || begins(site, "start")) continue;
    if (begins(site, "load") || begins(site, "store") || begins(site, "modify")) {
      for (const Order order : weaker_than(site))
        mutations[site + " -> " + kOrderNames[static_cast<size_t>(order)]] = {site, order};
    } else {
      mutations[site + " -> none"] = {.site = site, .is_dropped = true};
    }
  }
  return mutations;
}

}  // namespace

void expect_right(const Outcome& outcome) {
  EXPECT_EQ(outcome.wrong, "") << outcome.trace;
  EXPECT_TRUE(outcome.is_complete) << outcome.states << " states, " << outcome.runs << " runs";
  std::printf("%llu states, %llu runs\n", static_cast<unsigned long long>(outcome.states),
              static_cast<unsigned long long>(outcome.runs));
}

void expect_all_needed(const Explore& explore, const std::map<std::string, std::string>& survivors,
                       const Options& options) {
  const Outcome right = explore(options);
  expect_right(right);
  const auto mutations = mutations_of(right.sites);
  for (const auto& [name, mutation] : mutations) {
    Options mutated = options;
    mutated.mutations = {mutation};
    const Outcome found = explore(mutated);
    EXPECT_GT(found.mutated, 0u) << name;
    EXPECT_EQ(found.wrong.empty(), survivors.contains(name)) << name << ": " << found.wrong;
    std::printf("  %-60s %s\n", name.c_str(), found.wrong.empty() ? "not needed" : found.wrong.c_str());
  }
  for (const auto& [name, reason] : survivors) EXPECT_TRUE(mutations.contains(name)) << name << ": " << reason;
}

}  // namespace ccom::model

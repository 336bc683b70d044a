// SPDX-License-Identifier: Apache-2.0
//
// Plan files with random values changed: reading refuses them, or plans can be made from them and a proof comes to an
// end, whatever it says. CCOM_FUZZ=N: N files instead of a few.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <random>

#include "algorithms/stage_plans.h"
#include "base/collective.h"
#include "plan/program_verify.h"
#include "planner/plan_file.h"

namespace ccom {
namespace {

using nlohmann::json;

// Every number and word of a document.
void collect(json& value, std::vector<json*>& leaves) {
  if (value.is_structured()) {
    for (json& inner : value) collect(inner, leaves);
  } else {
    leaves.push_back(&value);
  }
}

void change(json& document, std::mt19937& random) {
  std::vector<json*> leaves;
  collect(document["plans"][0]["program"], leaves);
  json& leaf = *leaves[random() % leaves.size()];
  if (leaf.is_number()) {
    leaf = leaf.get<int64_t>() + static_cast<int64_t>(random() % 5) - 2;
  } else if (leaf.is_boolean()) {
    leaf = !leaf.get<bool>();
  } else {
    leaf = *leaves[random() % leaves.size()];
  }
  if (random() % 4 == 0) change(document, random);
}

// Programs of every kind, as documents.
std::vector<json> documents() {
  std::vector<json> found;
  for (const char* name : {"host:4", "2*host:2", "host:1+host:3", "torus:2x4", "switch:5", "3*ring:2"}) {
    const Topology topology = *make_topology(name);
    for (const CollectiveTraits& traits : kCollectiveTraits) {
      if (traits.collective == Collective::SendReceive) continue;
      const Rank root = is_rooted(traits.collective) ? 1 : -1;
      const auto choice =
          choose(topology, {.shared_memory = true}, {.collective = traits.collective, .bytes = 1 << 16, .root = root});
      if (!choice) continue;
      for (const Candidate& candidate : choice->candidates) {
        if (candidate.legal) found.push_back(json::parse(to_json({{candidate.program}})));
      }
    }
  }
  return found;
}

TEST(PlanFileFuzz, WhatCanBeReadCanBeJudged) {
  const char* wanted = std::getenv("CCOM_FUZZ");
  const int files = wanted == nullptr ? 3000 : std::atoi(wanted);
  const std::vector<json> originals = documents();
  ASSERT_GT(originals.size(), 100u);
  std::mt19937 random(12);
  int read = 0, proved = 0;
  for (int i = 0; i < files; ++i) {
    json document = originals[random() % originals.size()];
    change(document, random);
    const auto entries = plans_from_json(document.dump());
    if (!entries) continue;
    ++read;
    if (wanted != nullptr) std::fprintf(stderr, "%d %s\n", i, document.dump().c_str());
    const Program& program = (*entries)[0].program;
    const Topology hosts = *make_topology("host:" + std::to_string(program.nranks));
    (void)choose(hosts, {.plans = *entries}, {program.collective, 4096, false, program.root});
    proved += verify_program(program, {stage_plan, stage_node_plan}, {}) ? 1 : 0;
  }
  EXPECT_GT(read, files / 20);
  EXPECT_GT(proved, 0);
  EXPECT_LT(proved, read);
}

}  // namespace
}  // namespace ccom

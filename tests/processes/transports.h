// SPDX-License-Identifier: Apache-2.0
//
// The ways in which the ranks of a process test are connected.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/harness/processes.h"
#include "tests/harness/ranks.h"

namespace ccom {

// shm: one host. tcp, ofi: every rank a host of its own. mixed: two hosts, shm inside and tcp across; mixed-tls: all
// that goes across encrypted.
inline Job::Environment environment_for(const std::string& transport, int rank) {
  if (transport == "shm") return {};
  if (transport == "mixed") return {{"CCOM_HOSTID", "host" + std::to_string(rank / 2)}};
  if (transport == "mixed-tls") return {{"CCOM_HOSTID", "host" + std::to_string(rank / 2)}, {"CCOM_TLS", "1"}};
  if (transport == "tcp-on-one-host") return {{"CCOM_TRANSPORT", "tcp"}};
  return {{"CCOM_TRANSPORT", transport}, {"CCOM_HOSTID", "host" + std::to_string(rank)}};
}

// For each rank, with more that is the same for all.
inline auto ranks_on(const std::string& transport, const Job::Environment& more = {}) {
  return [=](int rank) {
    Job::Environment all = more;
    all.merge(environment_for(transport, rank));
    return all;
  };
}

// "[0,1]"
inline std::string list(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return "[" + text + "]";
}

// After a kill: each of them names the victim, and ends.
inline void expect_named(Job& job, const std::vector<int>& survivors, int victim, const std::string& what = "") {
  using std::chrono::milliseconds;
  ASSERT_TRUE(job.wait_for("failed", survivors, milliseconds(20000))) << what << "\n" << job.transcript();
  for (const int rank : survivors)
    EXPECT_THAT(job.line(rank, "failed"), testing::StartsWith("failed 6 [" + std::to_string(victim) + "]")) << what;
  EXPECT_TRUE(job.finish(milliseconds(10000))) << what << ": a survivor hangs at its end\n" << job.transcript();
}

// What a test with such a parameter is called.
inline std::string name_of_case(const testing::TestParamInfo<std::string>& of) {
  std::string name = of.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace ccom

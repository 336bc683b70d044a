// SPDX-License-Identifier: Apache-2.0
//
// Jobs on the emulated EFA.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/harness/effort.h"
#include "tests/transport_ofi/efa/network.h"
#include "tests/transport_ofi/ofi_job.h"

namespace ccom::ofi {

inline uint64_t count_seeds(uint64_t few) { return count_from("CCOM_TEST_SEEDS", few, 10'000); }

inline std::vector<std::string> some_rails(size_t count) {
  std::vector<std::string> rails;
  for (size_t rail = 0; rail < count; ++rail) rails.push_back("rdmap" + std::to_string(rail) + "s6-rdm");
  return rails;
}

inline JobOptions efa_job(int ranks, int channels, size_t rails) {
  return {.ranks = ranks, .channels = channels, .provider = "efa", .rails = some_rails(rails), .bind_address = ""};
}

inline void expect_no_violations() {
  for (const std::string& violation : efa::network().violations()) ADD_FAILURE() << violation;
}

}  // namespace ccom::ofi

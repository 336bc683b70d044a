// SPDX-License-Identifier: Apache-2.0
//
// Plan files (CCOM_PLAN).
#include "planner/plan_file.h"
#include "tests/fuzz/target.h"

namespace ccom {
namespace {

CCOM_FUZZ_TARGET(plan_file) {
  const auto entries = plans_from_json(fuzz::text_of(input));
  if (!entries) return fuzz::require(!entries.error().message().empty());
  const std::string written = to_json(*entries);
  const auto again = plans_from_json(written);
  fuzz::require(again && to_json(*again) == written);
}

}  // namespace
}  // namespace ccom

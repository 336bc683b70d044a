// SPDX-License-Identifier: Apache-2.0
//
// V-forms between real processes, over shared memory, tcp, libfabric, two hosts and a fabric: right results; a count
// that two ranks do not agree on, and a rank that dies, are named to everybody.
#include <gtest/gtest.h>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

const std::vector<int> kAll{0, 1, 2, 3};

class VForms : public testing::TestWithParam<std::string> {
 protected:
  static auto where() {
    return GetParam() == "ring" ? ranks_on("shm", {{"CCOM_TOPOLOGY", "ring:4"}}) : ranks_on(GetParam());
  }
};

TEST_P(VForms, GiveEverybodyItsParts) {
  for (const std::string scale : {"1", "2000", "300001"}) {
    Job job("v_forms_program", 4, {"once", scale}, where());
    EXPECT_TRUE(job.wait_for("right", kAll, milliseconds(60000))) << scale << "\n" << job.transcript();
    EXPECT_TRUE(job.finish(milliseconds(10000)));
  }
}

TEST_P(VForms, NameTheCountsThatDiffer) {
  for (const int odd : {0, 3}) {
    Job job("v_forms_program", 4, {"odd", std::to_string(odd)}, where());
    ASSERT_TRUE(job.wait_for("failed", kAll, milliseconds(30000))) << job.transcript();
    const std::string text = "entry 1 of sendcounts of rank " + std::to_string(odd) + " is 4, entry " +
                             std::to_string(odd) + " of recvcounts of rank 1 is 3";
    for (const int rank : kAll) {
      EXPECT_EQ(job.line(rank, "wrong"), "");
      EXPECT_THAT(job.line(rank, "failed"),
                  testing::AllOf(testing::StartsWith("failed 32 "), testing::HasSubstr(text)));
    }
    EXPECT_TRUE(job.finish(milliseconds(10000)));
  }
}

TEST_P(VForms, NameARankThatDies) {
  for (const std::string scale : {"1", "100000"}) {
    Job job("v_forms_program", 4, {"loop", scale}, where());
    ASSERT_TRUE(job.wait_for("ready", kAll, milliseconds(60000))) << job.transcript();
    job.kill(2);
    expect_named(job, {0, 1, 3}, 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Over, VForms, testing::Values("shm", "tcp", "ofi", "mixed", "tcp-on-one-host", "ring"),
                         name_of_case);

}  // namespace
}  // namespace ccom

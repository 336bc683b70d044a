// SPDX-License-Identifier: Apache-2.0
//
// Misspelt variables are told, with the one that was meant; what others may have named after ccom is left alone.
#include "base/variable_names.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "base/log_writer.h"
#include "base/options.h"
#include "base/text.h"

namespace ccom {
namespace {

using Sentences = std::vector<std::string>;

TEST(VariableNames, TellsWhichOneWasMeant) {
  for (const auto& [given, meant] : {std::pair<std::string, std::string>{"CCOM_TRASNPORT", "CCOM_TRANSPORT"},
                                     {"CCOM_ALGORITHM", "CCOM_ALGO"},
                                     {"CCOM_IFNAME", "CCOM_SOCKET_IFNAME"},
                                     {"CCOM_TIMEOUT", "CCOM_TIMEOUT_MS"},
                                     {"CCOM_PORT_RANG", "CCOM_PORT_RANGE"},
                                     {"CCOM_TORCH_REPLACE_GLO", "CCOM_TORCH_REPLACE_GLOO"}}) {
    EXPECT_EQ(unknown_variables({given}), Sentences{"no such variable " + given + "; did you mean " + meant + "?"});
  }
}

TEST(VariableNames, SuggestsNothingForWhatIsLikeNone) {
  EXPECT_EQ(unknown_variables({"CCOM_WORLD_SIZE"}),
            Sentences{"no such variable CCOM_WORLD_SIZE; docs/variables.md and ccomParamList have all of them"});
}

TEST(VariableNames, KnowsThoseOfOptionsTorchAndTests) {
  std::vector<std::string> names;
  for (const OptionInfo& info : option_table()) names.emplace_back(info.key);
  for (const char* other : other_variables()) names.emplace_back(other);
  names.insert(names.end(), {"CCOM_TEST_LONG", "NCCL_ALGO", "PATH"});
  EXPECT_EQ(unknown_variables(names), Sentences());
}

TEST(VariableNames, LeavesOutWhatKubernetesNamesAfterServices) {
  EXPECT_EQ(
      unknown_variables({"CCOM_PORT", "CCOM_SERVICE_HOST", "CCOM_PORT_4100_TCP_ADDR", "CCOM_JOB_SERVICE_PORT_HTTP"}),
      Sentences());
}

TEST(VariableNames, AreToldOnceWhateverTheLogLevelIs) {
  ::setenv("CCOM_TRASNPORT", "tcp", 1);
  ::setenv("CCOM_LOG", "error", 1);
  testing::internal::CaptureStderr();
  warn_of_unknown_variables();
  warn_of_unknown_variables();
  flush_log(std::chrono::milliseconds(20000));
  const std::string said = testing::internal::GetCapturedStderr();
  const size_t first = said.find("did you mean CCOM_TRANSPORT?");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("did you mean", first + 1), std::string::npos) << said;
}

TEST(EditDistance, CountsSwappedNeighboursAsOne) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("ring", "ring"), 0U);
  EXPECT_EQ(edit_distance("rnig", "ring"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

}  // namespace
}  // namespace ccom

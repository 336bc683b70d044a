// SPDX-License-Identifier: Apache-2.0
//
// What ccomConfig_t.wire refuses.

#include "tests/api/worlds.h"
#include "tests/harness/environment.h"

namespace ccom {
namespace {

ccomResult_t start_alone(const ccomConfig_t& config, const char* wire_variable = "", const char* determinism = "") {
  const ccomUniqueId id = new_id();
  const ScopedVariable wire("CCOM_WIRE", wire_variable);  // empty: as if it were not there
  const ScopedVariable bits("CCOM_DETERMINISM", determinism);
  ccomComm_t comm = nullptr;
  const ccomResult_t result = ccomCommInitRankConfig(&comm, 1, id, 0, &config);
  EXPECT_OK(comm == nullptr ? ccomSuccess : ccomCommDestroy(comm));
  return result;
}

TEST(Wire, UnknownKindsAreErrors) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.wire = "fp4";
  EXPECT_EQ(start_alone(config), ccomConfigError);
  EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr("there are off, fp8 and int8"));
  for (const char* wire : {"off", "fp8", "int8"}) {
    config.wire = wire;
    EXPECT_OK(start_alone(config));
  }
}

TEST(Wire, ContradictsPromisesOfFullPrecision) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.wire = "int8";
  config.determinism = "full";
  EXPECT_EQ(start_alone(config), ccomInvalidArgument);
  config.determinism = nullptr;
  for (const char* rounding : {"once", "stochastic"}) {
    config.rounding = rounding;
    EXPECT_EQ(start_alone(config), ccomInvalidArgument);
    EXPECT_THAT(ccomGetLastError(nullptr), HasSubstr(rounding));
  }
}

TEST(Wire, TheEnvironmentSaysItToo) {
  const ccomConfig_t config = CCOM_CONFIG_INIT;
  EXPECT_EQ(start_alone(config, "fp7"), ccomConfigError);
  EXPECT_EQ(start_alone(config, "fp8", "full"), ccomInvalidArgument);
  EXPECT_OK(start_alone(config, "fp8"));
}

TEST(Wire, RanksMustAgree) {
  expect_disagreement([](int rank, ccomConfig_t& config) { config.wire = rank == 0 ? "fp8" : "int8"; }, "CCOM_WIRE (");
}

TEST(Wire, OtherAlgorithmsAreNotSupportedWhereItHasAnEffect) {
  const World world{.name = "2 x 2", .hosts = {0, 0, 1, 1}, .algorithm = "allreduce:ring", .wire = "fp8"};
  with_ranks(world, [&](int, ccomComm_t comm) {
    std::vector<float> data(20000, 1.0F);
    EXPECT_OK(ccomAllReduce(data.data(), data.data(), 1000, ccomFloat32, ccomSum, comm, nullptr));
    EXPECT_EQ(ccomAllReduce(data.data(), data.data(), 20000, ccomFloat32, ccomSum, comm, nullptr), ccomNotSupported);
    EXPECT_THAT(ccomGetLastError(comm), HasSubstr("wire=fp8"));
  });
}

// As a program of 0.9.0 that was compiled before the field was there.
TEST(Wire, StructuresWithoutTheFieldTakeTheDefault) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.size = offsetof(ccomConfig_t, wire);
  config.wire = "nonsense";
  EXPECT_OK(start_alone(config));
}

}  // namespace
}  // namespace ccom

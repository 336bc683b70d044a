// SPDX-License-Identifier: Apache-2.0
//
// What ccomConfig_t.wire refuses.
#include <cstdlib>
#include <cstring>

#include "tests/api/worlds.h"
#include "tests/harness/environment.h"
#include "tests/harness/threads.h"

namespace ccom {
namespace {

ccomResult_t start_alone(const ccomConfig_t& config, const char* wire_variable = "", const char* determinism = "") {
  ccomUniqueId id;
  EXPECT_EQ(ccomGetUniqueId(&id), ccomSuccess);
  const ScopedVariable wire("CCOM_WIRE", wire_variable);  // empty: as if it were not there
  const ScopedVariable bits("CCOM_DETERMINISM", determinism);
  ccomComm_t comm = nullptr;
  const ccomResult_t result = ccomCommInitRankConfig(&comm, 1, id, 0, &config);
  EXPECT_EQ(comm == nullptr ? ccomSuccess : ccomCommDestroy(comm), ccomSuccess);
  return result;
}

TEST(Wire, UnknownKindsAreErrors) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.wire = "fp4";
  EXPECT_EQ(start_alone(config), ccomConfigError);
  EXPECT_NE(std::strstr(ccomGetLastError(nullptr), "there are off, fp8 and int8"), nullptr);
  for (const char* wire : {"off", "fp8", "int8"}) {
    config.wire = wire;
    EXPECT_EQ(start_alone(config), ccomSuccess) << ccomGetLastError(nullptr);
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
    EXPECT_NE(std::strstr(ccomGetLastError(nullptr), rounding), nullptr) << ccomGetLastError(nullptr);
  }
}

TEST(Wire, TheEnvironmentSaysItToo) {
  const ccomConfig_t config = CCOM_CONFIG_INIT;
  EXPECT_EQ(start_alone(config, "fp7"), ccomConfigError);
  EXPECT_EQ(start_alone(config, "fp8", "full"), ccomInvalidArgument);
  EXPECT_EQ(start_alone(config, "fp8"), ccomSuccess) << ccomGetLastError(nullptr);
}

TEST(Wire, RanksMustAgree) {
  ccomUniqueId id;
  ASSERT_EQ(ccomGetUniqueId(&id), ccomSuccess);
  run_ranks(2, [&](int rank) {
    ccomConfig_t config = CCOM_CONFIG_INIT;
    config.wire = rank == 0 ? "fp8" : "int8";
    ccomComm_t comm = nullptr;
    EXPECT_NE(ccomCommInitRankConfig(&comm, 2, id, rank, &config), ccomSuccess);
    EXPECT_NE(std::strstr(ccomGetLastError(nullptr), "CCOM_WIRE"), nullptr) << ccomGetLastError(nullptr);
  });
}

TEST(Wire, OtherAlgorithmsAreNotSupportedWhereItHasAnEffect) {
  World world{"2 x 2", {0, 0, 1, 1}};
  world.algorithm = "allreduce:ring";
  world.wire = "fp8";
  with_ranks(world, [&](int, ccomComm_t comm) {
    std::vector<float> data(20000, 1.0F);
    EXPECT_EQ(ccomAllReduce(data.data(), data.data(), 1000, ccomFloat32, ccomSum, comm, nullptr), ccomSuccess);
    EXPECT_EQ(ccomAllReduce(data.data(), data.data(), 20000, ccomFloat32, ccomSum, comm, nullptr), ccomNotSupported);
    EXPECT_NE(std::strstr(ccomGetLastError(comm), "wire=fp8"), nullptr) << ccomGetLastError(comm);
  });
}

// As a program of 0.9.0 that was compiled before the field was there.
TEST(Wire, StructuresWithoutTheFieldTakeTheDefault) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.size = offsetof(ccomConfig_t, wire);
  config.wire = "nonsense";
  EXPECT_EQ(start_alone(config), ccomSuccess) << ccomGetLastError(nullptr);
}

}  // namespace
}  // namespace ccom

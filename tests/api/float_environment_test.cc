// SPDX-License-Identifier: Apache-2.0
//
// Results do not depend on the floating-point environments of the threads that call: one rank of several has another
// one, as after torch.set_flush_denormal(True), or where a library of -ffast-math was loaded.
#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/api/worlds.h"
#include "tests/harness/float_environment.h"

namespace ccom {
namespace {

// Half of them subnormal; sums and products that have to be rounded.
std::vector<float> input_of(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const auto drawn = static_cast<float>(i * 2654435761U % 8191 + static_cast<size_t>(rank) * 77 + 1);
    values[i] = std::ldexp(drawn / 3, i % 2 == 0 ? -152 : -10);
  }
  return values;
}

// A premultiplied sum by a scalar that makes products round, then a sum, an average and a user's operator.
std::vector<float> results(ccomComm_t comm, const std::vector<float>& input, ccomRedOp_t premultiplied,
                           ccomRedOp_t user) {
  const size_t count = input.size();
  std::vector<float> all;
  for (const ccomRedOp_t op : {ccomRedOp_t{ccomSum}, ccomRedOp_t{ccomAvg}, premultiplied, user}) {
    std::vector<float> output(count);
    EXPECT_OK(ccomAllReduce(input.data(), output.data(), count, ccomFloat32, op, comm, nullptr));
    all.insert(all.end(), output.begin(), output.end());
  }
  return all;
}

ccomResult_t add(const void* in, void* inout, size_t count, ccomDataType_t /*type*/, void* /*context*/) {
  const auto* const left = static_cast<const float*>(in);
  auto* const right = static_cast<float*>(inout);
  for (size_t i = 0; i < count; ++i) right[i] += left[i];
  return ccomSuccess;
}

class FloatEnvironment : public testing::TestWithParam<World> {};

TEST_P(FloatEnvironment, U3OfOneRankChangesNoResult) {
  const auto ranks = static_cast<size_t>(GetParam().ranks());
  for (const size_t count : {size_t{1}, size_t{60}, size_t{3000}, size_t{70000}}) {
    std::vector<std::vector<float>> expected(ranks);
    with_ranks(GetParam(), [&](int rank, ccomComm_t& comm) {
      const std::vector<float> input = input_of(rank, count);
      float scalar = 0.3f;
      ccomRedOp_t premultiplied{};
      ASSERT_OK(ccomRedOpCreatePreMulSum(&premultiplied, &scalar, ccomFloat32, ccomScalarHostImmediate, comm));
      const ccomRedOp_t user = new_operator(add, nullptr, ccomRedOpCommutative, comm);
      std::vector<float>& first = expected[static_cast<size_t>(rank)];
      first = results(comm, input, premultiplied, user);
      for (const FloatControl& control : kOtherFloatControls) {
        std::vector<float> found;
        if (rank == 1) {
          const InFloatControl set(control);
          found = results(comm, input, premultiplied, user);
          EXPECT_TRUE(set.is_unchanged()) << control.name;
        } else {
          found = results(comm, input, premultiplied, user);
        }
        EXPECT_TRUE(std::ranges::equal(found, first)) << control.name << ", rank " << rank << ", count " << count;
      }
    });
    for (const std::vector<float>& other : expected) EXPECT_TRUE(std::ranges::equal(other, expected[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Api, FloatEnvironment,
                         testing::Values(World{"two", {0, 0}}, World{"four", {0, 0, 0, 0}},
                                         World{"tcp", {0, 0, 0}, "tcp"}, World{"hosts_2_2", {0, 0, 1, 1}}),
                         [](const auto& world) { return std::string(world.param.name); });

}  // namespace
}  // namespace ccom

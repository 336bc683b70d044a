// SPDX-License-Identifier: Apache-2.0
//
// 32 processes take the places of a trn1.32xlarge's cores: results are right, and no byte crosses a link that the 4x4
// torus of devices does not have (cores of one device are joined). 64 processes as two such hosts add links between
// equal places only.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/harness/processes.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;

// Devices of two cores each, 16 per host: same device, or neighbours on the torus of the same host.
bool linked_on_trn1(int a, int b) {
  if (a / 32 != b / 32) return false;
  const int da = a % 32 / 2;
  const int db = b % 32 / 2;
  const int rows = std::abs(da / 4 - db / 4);
  const int columns = std::abs(da % 4 - db % 4);
  return (rows == 0 && (columns <= 1 || columns == 3)) || (columns == 0 && (rows == 1 || rows == 3));
}

void check_links(Job& job, int nranks, bool across_hosts) {
  int used = 0;
  for (int rank = 0; rank < nranks; ++rank) {
    EXPECT_EQ(job.line(rank, "wrong"), "") << "rank " << rank;
    for (const std::string& line : job.lines(rank)) {
      if (!line.starts_with("sent ")) continue;
      std::istringstream words(line.substr(5));
      int peer = -1;
      uint64_t bytes = 0;
      words >> peer >> bytes;
      const bool across = across_hosts && rank / 32 != peer / 32;
      EXPECT_TRUE(across || linked_on_trn1(rank, peer)) << bytes << " bytes from rank " << rank << " to rank " << peer;
      ++used;
    }
  }
  EXPECT_GE(used, nranks - 1) << "a spanning tree is the least there can be";
}

constexpr milliseconds kPatience{180'000};  // a loaded machine takes a minute to start 32 processes

TEST(Trn1Fabric, CarriesBytesOverItsOwnLinksOnly) {
  for (const std::string collective : {"allreduce", "allgather", "broadcast", "alltoall"}) {
    Job job("rank_program", 32, {"links", collective}, [](int) {
      return Job::Environment{{"CCOM_TOPOLOGY", "trn1.32xlarge"}};
    });
    ASSERT_TRUE(job.wait_for("done", first_ranks(32), kPatience)) << collective << "\n" << job.transcript();
    check_links(job, 32, false);
    EXPECT_TRUE(job.finish(milliseconds(10000)));
  }
}

TEST(Trn1Fabric, TwoHostsOf32AreHierarchical) {
  Job job("rank_program", 64, {"links", "allreduce"}, [](int rank) {
    return Job::Environment{{"CCOM_TOPOLOGY", "trn1.32xlarge"}, {"CCOM_HOSTID", "host" + std::to_string(rank / 32)}};
  });
  ASSERT_TRUE(job.wait_for("done", first_ranks(64), kPatience)) << job.transcript();
  check_links(job, 64, true);
  EXPECT_TRUE(job.finish(milliseconds(10000)));
}

}  // namespace
}  // namespace ccom

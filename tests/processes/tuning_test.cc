// SPDX-License-Identifier: Apache-2.0
//
// CCOM_TUNING between processes: ranks whose files say the same start, however the files are written; others are
// refused and name the rank that differs, and a file that cannot be read is refused with its name and the key.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/harness/folder.h"
#include "tests/harness/processes.h"

namespace ccom {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

class Tuning : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  // Whether two ranks, of which rank 0 has file `a` and rank 1 file `b` ("": none), exchange a message.
  static bool starts(const std::string& a, const std::string& b) {
    Job job = make(a, b);
    const bool took = job.wait_for("took", {0, 1}, milliseconds(60000));
    EXPECT_TRUE(took) << job.transcript();
    return job.finish(milliseconds(10000)) && took;
  }

  // What the ranks say who are refused at init.
  static std::vector<std::string> refusals(const std::string& a, const std::string& b) {
    Job job = make(a, b);
    EXPECT_TRUE(job.wait_for("init", {0, 1}, milliseconds(60000))) << job.transcript();
    EXPECT_TRUE(job.finish(milliseconds(10000)));
    return {job.line(0, "init"), job.line(1, "init")};
  }

  static Job make(const std::string& a, const std::string& b) {
    return Job("rank_program", 2, {"timed", "8", "0-1"}, [a, b](int rank) {
      return Job::Environment{{"CCOM_TUNING", rank == 0 ? a : b}};
    });
  }

  const TemporaryFolder folder_;
};

constexpr char kMemory[] = R"({"memory": {"latency_ns": 700, "bytes_per_second": 9e9}, "measured_on": "here"})";

TEST_F(Tuning, EqualFilesStart) {
  const std::string again = R"({"measured_on":"here", "memory":{"bytes_per_second":9000000000, "latency_ns":700.0}})";
  EXPECT_TRUE(starts(file("a.json", kMemory), file("b.json", again)));
}

TEST_F(Tuning, DifferentFilesAreRefusedByTheRankThatDiffers) {
  const std::string slower = R"({"memory": {"latency_ns": 900, "bytes_per_second": 9e9}, "measured_on": "here"})";
  for (const std::string& line : refusals(file("a.json", kMemory), file("b.json", slower))) {
    EXPECT_THAT(line, HasSubstr("1 of 2 ranks have another calibration than rank 0: rank 1"));
  }
}

TEST_F(Tuning, AFileOnOneRankOnlyIsRefused) {
  EXPECT_THAT(refusals(file("a.json", kMemory), "")[1], HasSubstr("rank 1 has none, rank 0 has one of here"));
}

TEST_F(Tuning, ABadFileIsRefusedWithItsNameAndKey) {
  const std::string bad = file("bad.json", R"({"memory": {"latency": 5, "bytes_per_second": 9e9}})");
  const std::string said = refusals(bad, bad)[0];
  EXPECT_THAT(said, HasSubstr(bad));
  EXPECT_THAT(said, HasSubstr("tuning.memory.latency_ns: missing"));
  EXPECT_THAT(refusals(folder_ / "none.json", folder_ / "none.json")[0], HasSubstr("none.json"));
}

}  // namespace
}  // namespace ccom

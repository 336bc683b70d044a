// SPDX-License-Identifier: Apache-2.0
//
// Only regular files are read, no further than the reader allows.
#include "base/files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <string>

#include "tests/harness/folder.h"

namespace ccom {
namespace {

using testing::HasSubstr;

TEST(Files, ReadsRegularFilesAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder / "five") << "12345";
  EXPECT_EQ(*read_file(folder / "five", 5), "12345");
  EXPECT_THAT(read_file(folder / "five", 4).error().message(), HasSubstr("it has more than 4 bytes"));
  EXPECT_EQ(*read_beginning(folder / "five", 4), "1234");
  EXPECT_EQ(*read_beginning(folder / "five", 9), "12345");

  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), S_IRUSR | S_IWUSR), 0);
  std::filesystem::create_symlink("/dev/zero", folder / "endless");
  for (const std::string& other : {folder / "fifo", folder / "endless", folder.path()}) {
    const Result<std::string> read = read_file(other, 100);
    ASSERT_FALSE(read) << other;
    EXPECT_THAT(read.error().message(), HasSubstr(other + ": not a regular file"));
  }
  EXPECT_THAT(read_file(folder / "none", 100).error().message(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace ccom

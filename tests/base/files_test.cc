// SPDX-License-Identifier: Apache-2.0
//
// Only regular files are read, no further than the reader allows; no file takes the place of another one.
#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
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

TEST(Files, NoFileIsCreatedWhereSomethingIs) {
  const TemporaryFolder folder;
  const std::string there = folder / "there", link = folder / "link";
  std::ofstream(there) << "words";
  ASSERT_EQ(::symlink((folder / "elsewhere").c_str(), link.c_str()), 0);
  for (const std::string& path : {there, link}) {
    EXPECT_FALSE(create_file(AT_FDCWD, path, 0600).is_open());
    EXPECT_EQ(errno, EEXIST) << path;
  }
  EXPECT_EQ(contents_of(there), "words");
  EXPECT_TRUE(create_file(AT_FDCWD, folder / "new", 0600).is_open());
}

}  // namespace
}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
//
// The user's own secret: one for all processes of a user, none for anybody else.
#include "bootstrap/user_secret.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/harness/child.h"
#include "tests/harness/folder.h"
#include "tests/harness/results.h"

namespace ccom {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A folder in which everybody may make files, like /tmp.
class UserSecret : public ::testing::Test {
 protected:
  UserSecret() {
    fs::permissions(base_, fs::perms::all | fs::perms::sticky_bit);
    fs::permissions(fs::path(base_).parent_path(), fs::perms::others_exec, fs::perm_options::add);
  }
  std::string folder() const { return base_ + "/ccom-user-" + std::to_string(::geteuid()); }

  const TemporaryFolder place_{"/tmp"};
  const std::string& base_ = place_.path();
};

std::string text_of(const Secret& secret) { return {secret.bytes().begin(), secret.bytes().end()}; }

TEST_F(UserSecret, IsTheSameForAllWhoAskAtOnce) {
  std::vector<std::string> found(16);
  {
    std::vector<std::jthread> askers;
    for (std::string& one : found) askers.emplace_back([&, this] { one = text_of(*user_secret(base_)); });
  }
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), 1U);
  EXPECT_EQ(found.front().size(), Secret::kBytes);
  EXPECT_EQ(fs::status(folder() + "/secret").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1) << "something was left";
}

TEST_F(UserSecret, DiffersBetweenMachines) {
  const std::string other = base_ + "/other";
  fs::create_directory(other);
  EXPECT_NE(text_of(*user_secret(base_)), text_of(*user_secret(other)));
}

TEST_F(UserSecret, IsRefusedIfOthersCouldHaveReadIt) {
  ASSERT_TRUE(user_secret(base_));
  fs::permissions(folder() + "/secret", fs::perms::group_read, fs::perm_options::add);
  Result<Secret> found = user_secret(base_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), Code::ConfigError);
  fs::permissions(folder() + "/secret", fs::perms::group_read, fs::perm_options::remove);
  fs::permissions(folder(), fs::perms::others_all, fs::perm_options::add);
  EXPECT_FALSE(user_secret(base_));
}

TEST_F(UserSecret, SaysWhatToDoWithAHalfWrittenOne) {
  ASSERT_TRUE(user_secret(base_));
  std::ofstream(folder() + "/secret") << "short";
  EXPECT_THAT(error_of(user_secret(base_)).cure(), HasSubstr("remove it"));
}

// In a child, because a process that has become another user cannot come back.
TEST_F(UserSecret, IsAnotherOneForAnotherUserWhoCannotReadOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const Secret ours = value_of(user_secret(base_));
  const std::string path = folder() + "/secret";
  EXPECT_EQ(exit_of([&] {
              constexpr uid_t kNobody = 65534;
              if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) return 1;
              if (::open(path.c_str(), O_RDONLY) >= 0) return 2;
              const Result<Secret> theirs = user_secret(base_);
              return !theirs ? 3 : text_of(*theirs) == text_of(ours) ? 4 : 0;
            }),
            0);
}

// Another user who was first with our folder's name can only keep us from using it.
TEST_F(UserSecret, IsNotTakenFromAFolderOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make folders of others";
  fs::create_directory(folder());
  fs::permissions(folder(), fs::perms::owner_all);
  ASSERT_EQ(::chown(folder().c_str(), 65534, 65534), 0);
  EXPECT_THAT(error_of(user_secret(base_)).message(), HasSubstr("belongs to user 65534"));
}

}  // namespace
}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
//
// T6: where ranks share a secret, the bytes of an id are worthless to who has only those.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/harness/environment.h"
#include "tests/harness/world.h"

namespace ccom {
namespace {

ccomResult_t join(const ccomUniqueId& id) {
  ccomConfig_t config = CCOM_CONFIG_INIT;
  config.initTimeoutMs = 3000;
  ccomComm_t comm = nullptr;
  const ccomResult_t result = ccomCommInitRankConfig(&comm, 1, id, 0, &config);
  if (comm != nullptr) ccomCommDestroy(comm);
  return result;
}

class SharedSecret : public testing::Test {
 protected:
  const ScopedVariable secret_{"CCOM_SECRET", "a-secret-of-this-job"};
};

TEST_F(SharedSecret, IsNeededBesideTheId) {
  const ccomUniqueId id = new_id();
  secret_.set(nullptr);
  EXPECT_NE(join(id), ccomSuccess) << "the id alone is enough";
  secret_.set("a-secret-of-another-job");
  EXPECT_NE(join(id), ccomSuccess) << "any secret will do";
  secret_.set("a-secret-of-this-job");
  EXPECT_OK(join(id));
}

// Random: no table of guesses made before serves them.
TEST_F(SharedSecret, EncryptsAllIdsOfAProcessByAKeyWithOneSalt) {
  constexpr size_t kSaltAt = 72, kSaltBytes = 8;
  const auto salt_of = [](const ccomUniqueId& id) { return std::string(id.internal + kSaltAt, kSaltBytes); };
  ccomUniqueId id, next;
  ASSERT_OK(ccomGetUniqueId(&id));
  ASSERT_OK(ccomGetUniqueId(&next));
  EXPECT_EQ(salt_of(id), salt_of(next));
  EXPECT_NE(salt_of(id), std::string(kSaltBytes, '\0'));
  // Another process, which runs this case up to here.
  if (std::getenv("CCOM_TEST_TELL_SALT") != nullptr) {
    std::fwrite(id.internal + kSaltAt, 1, kSaltBytes, ::fdopen(3, "w"));
    std::_Exit(std::fflush(nullptr));
  }
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "CCOM_TEST_TELL_SALT=1 " + self + " --gtest_filter='SharedSecret.EncryptsAll*' 3>&1 >&2";
  FILE* const other = ::popen(command.c_str(), "r");
  std::string theirs(kSaltBytes, '\0');
  EXPECT_EQ(std::fread(theirs.data(), 1, kSaltBytes, other), kSaltBytes);
  ::pclose(other);
  EXPECT_NE(theirs, salt_of(id));
  EXPECT_OK(join(id));
}

TEST_F(SharedSecret, IsNoneOfTheIdsBusinessWhereItIsNotSet) {
  secret_.set(nullptr);
  const ccomUniqueId id = new_id();
  EXPECT_OK(join(id));
}

}  // namespace
}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
//
// T6: where ranks share a secret, the bytes of an id are worthless to who has only those.
#include <gtest/gtest.h>

#include <string>

#include "ccom/ccom.h"
#include "tests/harness/environment.h"

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
  ccomUniqueId id;
  ASSERT_EQ(ccomGetUniqueId(&id), ccomSuccess);
  secret_.set(nullptr);
  EXPECT_NE(join(id), ccomSuccess) << "the id alone is enough";
  secret_.set("a-secret-of-another-job");
  EXPECT_NE(join(id), ccomSuccess) << "any secret will do";
  secret_.set("a-secret-of-this-job");
  EXPECT_EQ(join(id), ccomSuccess) << ccomGetLastError(nullptr);
}

// Random: no table of guesses made before serves them.
TEST_F(SharedSecret, EncryptsAllIdsOfAProcessByAKeyWithOneSalt) {
  constexpr size_t kSaltAt = 72, kSaltBytes = 8;
  const auto salt_of = [](const ccomUniqueId& id) { return std::string(id.internal + kSaltAt, kSaltBytes); };
  ccomUniqueId id, next;
  ASSERT_EQ(ccomGetUniqueId(&id), ccomSuccess);
  ASSERT_EQ(ccomGetUniqueId(&next), ccomSuccess);
  EXPECT_EQ(salt_of(id), salt_of(next));
  EXPECT_NE(salt_of(id), std::string(kSaltBytes, '\0'));
  EXPECT_EQ(join(id), ccomSuccess) << ccomGetLastError(nullptr);
}

TEST_F(SharedSecret, IsNoneOfTheIdsBusinessWhereItIsNotSet) {
  secret_.set(nullptr);
  ccomUniqueId id;
  ASSERT_EQ(ccomGetUniqueId(&id), ccomSuccess);
  EXPECT_EQ(join(id), ccomSuccess) << ccomGetLastError(nullptr);
}

}  // namespace
}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
//
// T6: where ranks share a secret, the bytes of an id are worthless to who has only those.
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
  EXPECT_OK(join(id));
}

TEST_F(SharedSecret, IsNoneOfTheIdsBusinessWhereItIsNotSet) {
  secret_.set(nullptr);
  const ccomUniqueId id = new_id();
  EXPECT_OK(join(id));
}

}  // namespace
}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "communicators.h"

#include <mutex>
#include <vector>

namespace ccom_jax {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<Member>> members;
  ccomErrorInfo_t last_error = CCOM_ERROR_INFO_INIT;
};

// Never destroyed: XLA's threads may still run when the process ends.
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

}  // namespace

std::shared_ptr<Member> member_of(int64_t number) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (number < 0 || static_cast<size_t>(number) >= all.members.size()) return std::make_shared<Member>();
  return all.members[static_cast<size_t>(number)];
}

void keep_error(const ccomErrorInfo_t& info) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.last_error = info;
}

}  // namespace ccom_jax

int64_t ccom_jax_add(ccomComm_t comm) {
  auto member = std::make_shared<ccom_jax::Member>();
  member->comm = comm;
  if (ccomCommUserRank(comm, &member->rank) != ccomSuccess || ccomCommCount(comm, &member->size) != ccomSuccess)
    return -1;
  ccom_jax::Registry& all = ccom_jax::registry();
  const std::lock_guard lock(all.mutex);
  all.members.push_back(std::move(member));
  return static_cast<int64_t>(all.members.size()) - 1;
}

void ccom_jax_remove(int64_t number) {
  const std::shared_ptr<ccom_jax::Member> member = ccom_jax::member_of(number);
  const std::lock_guard lock(member->in_use);
  member->comm = nullptr;
}

void ccom_jax_last_error(ccomErrorInfo_t* info) {
  ccom_jax::Registry& all = ccom_jax::registry();
  const std::lock_guard lock(all.mutex);
  *info = all.last_error;
}

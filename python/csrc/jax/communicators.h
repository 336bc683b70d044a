// SPDX-License-Identifier: Apache-2.0
//
// The communicators of compiled functions, by number: what XLA keeps of a function, in memory and in files that other
// processes read, says a number, never an address.
#pragma once

#include <ccom/ccom.h>

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>

namespace ccom_jax {

// Thread-safe. Who holds `in_use` shared may use `comm`; it is null once the communicator is closed.
struct Member {
  std::shared_mutex in_use;
  ccomComm_t comm = nullptr;
  int rank = 0;
  int size = 0;
};

// Never null: a number that was never given is a member without a communicator.
std::shared_ptr<Member> member_of(int64_t number);

// What has failed last in a compiled function of this process.
void keep_error(const ccomErrorInfo_t& info);

}  // namespace ccom_jax

extern "C" {
// For ccom/jax/_library.py. The next number, from 0. `comm` is borrowed until ccom_jax_remove.
CCOM_API int64_t ccom_jax_add(ccomComm_t comm);
// Returns when no call uses the communicator any more; later ones are errors.
CCOM_API void ccom_jax_remove(int64_t number);
CCOM_API void ccom_jax_last_error(ccomErrorInfo_t* info);
}

// SPDX-License-Identifier: Apache-2.0
//
// What is common to all who use OpenSSL.
#pragma once

#include "base/mutex.h"
#include "base/status.h"

namespace ccom {

// For unique_ptr: OpensslFree<X509_free>.
template <auto Free>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

// Held while a thread is in OpenSSL. Forks wait until none is: a child would find OpenSSL's locks held for ever. It may
// be held twice, and not where something is waited for. Functions that encrypt, decrypt and compare take no lock and do
// not need it, but for the first of a thread (clear_openssl_errors) and a key update of the peer's, once in 64 GiB.
class OpensslUse {
 public:
  // The first one sets OpenSSL up: where that runs out of memory, its functions read through null pointers. Throws
  // std::bad_alloc then, and in every later use, because OpenSSL does not try again.
  OpensslUse();

 private:
  SharedLock lock_;
};

// Empties the thread's queue of errors where OpensslUse is not held.
void clear_openssl_errors();

// Why `what` has failed, from OpenSSL's queue of errors, which is empty then: ccomOutOfMemory, or else ccomSystemError.
Status openssl_error(const char* what, const char* cure);

}  // namespace ccom

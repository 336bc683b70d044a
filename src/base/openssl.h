// SPDX-License-Identifier: Apache-2.0
//
// What is common to all who use OpenSSL.
#pragma once

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

// To be called before anything else of OpenSSL: where it has run out of memory while it set itself up, its functions
// read through null pointers. Throws std::bad_alloc then, and in every later call, because it does not try again.
void require_openssl();

// Why `what` has failed, from OpenSSL's queue of errors, which is empty then: ccomOutOfMemory, or else ccomSystemError.
Status openssl_error(const char* what, const char* cure);

}  // namespace ccom

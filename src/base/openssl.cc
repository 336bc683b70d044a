// SPDX-License-Identifier: Apache-2.0
#include "base/openssl.h"

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <new>

namespace ccom {
namespace {

// OpenSSL's cleanup at exit frees what threads of gRPC and of communicators that were never destroyed may still use.
// Done before anything else in the process uses OpenSSL: only the first initialisation decides it.
[[maybe_unused]] const int kNoCleanupAtExit = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

}  // namespace

void require_openssl() {
  constexpr uint64_t kAll = OPENSSL_INIT_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_ADD_ALL_CIPHERS |
                            OPENSSL_INIT_ADD_ALL_DIGESTS | OPENSSL_INIT_LOAD_CONFIG;
  static const bool is_ready =
      OPENSSL_init_crypto(kAll, nullptr) == 1 && OSSL_LIB_CTX_get0_global_default() != nullptr;
  if (!is_ready) throw std::bad_alloc();
}

Status openssl_error(const char* what, const char* cure) {
  const unsigned long first = ERR_peek_error();
  bool is_out_of_memory = false;
  for (unsigned long next = ERR_get_error(); next != 0; next = ERR_get_error()) {
    is_out_of_memory |= ERR_GET_REASON(next) == ERR_R_MALLOC_FAILURE;
  }
  if (is_out_of_memory) return error(Code::OutOfMemory, "%s: OpenSSL has run out of memory", what);
  char reason[256];
  ERR_error_string_n(first, reason, sizeof reason);
  return error(Code::SystemError, "%s: %s", what, reason).with_cure(cure);
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "base/openssl.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <pthread.h>

#include <atomic>
#include <new>

#include "base/mutex.h"

namespace ccom {
namespace {

// OpenSSL's cleanup at exit frees what threads of gRPC and of communicators that were never destroyed may still use.
// Done before anything else in the process uses OpenSSL: only the first initialisation decides it.
[[maybe_unused]] const int kNoCleanupAtExit = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

std::atomic<bool> is_ready{false};
// Forks wait for it: a child would find OpenSSL's locks held.
constinit Mutex initialising;

// The lock that one of them takes another one gives back, which clang cannot follow.
void wait_until_initialised() CCOM_NO_THREAD_SAFETY_ANALYSIS { initialising.lock(); }
void let_others_initialise() CCOM_NO_THREAD_SAFETY_ANALYSIS { initialising.unlock(); }
const int openssl_fork_handler = ::pthread_atfork(wait_until_initialised, let_others_initialise, let_others_initialise);

// With the first digest, which OpenSSL looks for under locks as well.
bool initialise() {
  constexpr uint64_t kAll = OPENSSL_INIT_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_ADD_ALL_CIPHERS |
                            OPENSSL_INIT_ADD_ALL_DIGESTS | OPENSSL_INIT_LOAD_CONFIG;
  unsigned char mac[EVP_MAX_MD_SIZE];
  return OPENSSL_init_crypto(kAll, nullptr) == 1 && OSSL_LIB_CTX_get0_global_default() != nullptr &&
         HMAC(EVP_sha256(), mac, 0, mac, 0, mac, nullptr) != nullptr;
}

}  // namespace

void require_openssl() {
  if (is_ready.load(std::memory_order_acquire)) return;
  const Lock lock(initialising);
  if (!is_ready.load(std::memory_order_relaxed) && !initialise()) throw std::bad_alloc();
  is_ready.store(true, std::memory_order_release);
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

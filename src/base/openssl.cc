// SPDX-License-Identifier: Apache-2.0
#include "base/openssl.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <pthread.h>

#include <memory>
#include <new>
#include <utility>

#include "base/fork.h"
#include "base/per_thread.h"

namespace ccom {
namespace {

constinit SharedMutex in_use;

// OpenSSL frees what it has for a thread when that ends, under a lock; this comes before it, because it has the smaller
// key, unless OpenSSL was in use before this library was loaded.
struct ThreadsPart {
  ThreadsPart() { ERR_clear_error(); }  // its queue of errors
  ~ThreadsPart() {
    const SharedLock lock(in_use);
    OPENSSL_thread_stop();
  }
};
PerThread<ThreadsPart> parts;

// OpenSSL's cleanup at exit frees what threads of gRPC and of communicators that were never destroyed may still use.
// Done before anything else in the process uses OpenSSL: only the first initialisation decides it.
[[maybe_unused]] const int kNoCleanupAtExit = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);

// The lock that one of them takes another one gives back, which clang cannot follow. The child has another thread
// number, by which glibc knows who holds it.
void wait_for_users() CCOM_NO_THREAD_SAFETY_ANALYSIS { in_use.lock(); }
void let_others_use_it() CCOM_NO_THREAD_SAFETY_ANALYSIS { in_use.unlock(); }
void replace_lock() { std::construct_at(&in_use); }
const int openssl_fork_handler = ::pthread_atfork(wait_for_users, let_others_use_it, replace_lock);

// With the first digest, which OpenSSL looks for under locks as well.
bool initialise() {
  constexpr uint64_t kAll = OPENSSL_INIT_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_ADD_ALL_CIPHERS |
                            OPENSSL_INIT_ADD_ALL_DIGESTS | OPENSSL_INIT_LOAD_CONFIG;
  unsigned char mac[EVP_MAX_MD_SIZE];
  return OPENSSL_init_crypto(kAll, nullptr) == 1 && OSSL_LIB_CTX_get0_global_default() != nullptr &&
         HMAC(EVP_sha256(), mac, 0, mac, 0, mac, nullptr) != nullptr;
}

}  // namespace

OpensslUse::OpensslUse() : lock_(in_use) {
  static constinit MadeOnce<bool> is_ready;
  is_ready.get([] { return initialise() ? true : throw std::bad_alloc(); });
  (void)parts.get();
}

void clear_openssl_errors() {
  thread_local constinit bool has_queue = false;
  if (!std::exchange(has_queue, true)) const OpensslUse makes_it;
  ERR_clear_error();
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

// SPDX-License-Identifier: Apache-2.0
//
// Memory runs out while OpenSSL or gRPC initialises itself, in the k-th allocation. OpenSSL read through null pointers
// then; the next who used gRPC waited for ever, and so did gRPC where it got no memory for one of its threads. Each k
// in a process of its own, because neither initialises itself a second time.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <new>
#include <stdexcept>

#include "base/secret.h"
#include "bootstrap/grpc_use.h"
#include "bootstrap/tls_identity.h"
#include "tests/harness/child.h"

namespace {

constexpr long kNever = -1;
std::atomic<long> allocations_left = kNever;  // until one fails
std::atomic<long> threads_left = kNever;      // until none start and nothing is allocated any more
std::atomic<long> thread_to_refuse = kNever;  // counted down to 0: that one alone does not start

bool fails() {
  if (threads_left == 0) return true;
  if (allocations_left == kNever || allocations_left-- > 0) return false;
  allocations_left = kNever;
  return true;
}

// OpenSSL takes no others once it has allocated.
void* openssl_malloc(size_t bytes, const char*, int) { return fails() ? nullptr : std::malloc(bytes); }
void* openssl_realloc(void* old, size_t bytes, const char*, int) {
  return fails() ? nullptr : std::realloc(old, bytes);
}
void openssl_free(void* memory, const char*, int) { std::free(memory); }
[[gnu::constructor(101)]] void replace_openssls_malloc() {
  if (CRYPTO_set_mem_functions(&openssl_malloc, &openssl_realloc, &openssl_free) != 1) std::abort();
}

}  // namespace

#include "tests/operator_new.h"

extern "C" int pthread_create(pthread_t* made, const pthread_attr_t* how, void* (*body)(void*), void* argument) {
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left == 0 || (threads_left > 0 && --threads_left == 0)) return EAGAIN;
  if (thread_to_refuse > 0 && --thread_to_refuse == 0) return EAGAIN;
  return create(made, how, body, argument);
}

namespace ccom {
namespace {

constexpr unsigned kMostSeconds = 20;  // of a child

// Of a child, by its exit code. Some libraries end the process.
enum Outcome { Good = 10, Shortage, Broken, Wrong, NothingFailed };

// `use` calls fail_after(k), for k = first, first + step, ... until nothing failed. How often each outcome was.
std::map<int, int> after_allocations(long first, long step, const std::function<Outcome(long k)>& use) {
  std::map<int, int> times;
  for (long k = first;; k += step) {
    const int outcome = exit_of([&] { return use(k); }, kMostSeconds);
    if (outcome == NothingFailed) return times;
    EXPECT_NE(outcome, 128 + SIGALRM) << "hangs after " << k << " allocations";
    EXPECT_NE(outcome, 128 + SIGSEGV) << "after " << k << " allocations";
    EXPECT_NE(outcome, Wrong) << "after " << k << " allocations";
    ++times[outcome];
  }
}

void fail_after(long k) { allocations_left = k; }
// Whether one has failed.
bool stop_failing() { return allocations_left.exchange(kNever) == kNever; }

Outcome derive_a_secret() {
  try {
    const Secret once = Secret::from_text("a secret").derive("a label");
    const Secret again = Secret::from_text("a secret").derive("a label");
    return equal_in_constant_time(std::as_bytes(once.bytes()), std::as_bytes(again.bytes())) ? Good : Wrong;
  } catch (const std::bad_alloc&) {
    return Shortage;
  }
}

// One case has every so many-th allocation, from a first one on.
constexpr long kCasesOfOpenssl = 17, kCasesOfCertificates = 31, kCasesOfGrpc = 3;
class NoMemoryForOpenssl : public testing::TestWithParam<long> {};
INSTANTIATE_TEST_SUITE_P(From, NoMemoryForOpenssl, testing::Range(0L, kCasesOfOpenssl));

TEST_P(NoMemoryForOpenssl, WhileItInitialisesItself) {
  auto times = after_allocations(GetParam(), kCasesOfOpenssl, [](long k) {
    fail_after(k);
    const Outcome first = derive_a_secret();
    if (!stop_failing()) return NothingFailed;
    return std::max(first, derive_a_secret());
  });
  EXPECT_GT(times[Shortage], 0);
  EXPECT_GT(times[Good], 100);
}

class NoMemoryForCertificates : public testing::TestWithParam<long> {};
INSTANTIATE_TEST_SUITE_P(From, NoMemoryForCertificates, testing::Range(0L, kCasesOfCertificates));

TEST_P(NoMemoryForCertificates, WhileOneIsMade) {
  auto times = after_allocations(GetParam(), kCasesOfCertificates, [](long k) {
    const Secret secret = Secret::from_text("a secret");
    fail_after(k);
    Outcome outcome = Shortage;
    try {
      const auto made = make_tls_identity(secret);
      outcome = made ? Good : made.error().code() != Code::InternalError ? Shortage : Wrong;
    } catch (const std::bad_alloc&) {
    }
    return stop_failing() ? outcome : NothingFailed;
  });
  EXPECT_GT(times[Shortage], 0);
}

Outcome use_grpc() {
  try {
    const GrpcUse use;
    return Good;
  } catch (const std::bad_alloc&) {
    return Shortage;
  } catch (const std::runtime_error&) {
    return Broken;
  }
}

class NoMemoryForGrpc : public testing::TestWithParam<long> {};
INSTANTIATE_TEST_SUITE_P(From, NoMemoryForGrpc, testing::Range(0L, kCasesOfGrpc));

TEST_P(NoMemoryForGrpc, WhileItInitialisesItself) {
  auto times = after_allocations(GetParam(), kCasesOfGrpc, [](long k) {
    fail_after(k);
    const Outcome first = use_grpc();
    if (!stop_failing()) return NothingFailed;
    return std::max(first, use_grpc());
  });
  EXPECT_GT(times[Broken], 10);
}

// For k = 1, 2, ... in a child in which the k-th thread does not start, until there are fewer. How often each outcome
// was. Several children at once, because some wait ten seconds for gRPC before they give it up.
std::map<int, int> without_thread(std::atomic<long>& counter) {
  constexpr long kAtOnce = 16;
  std::map<int, int> times;
  for (long first = 1; times[NothingFailed] == 0; first += kAtOnce) {
    std::deque<Child> children;
    for (long k = first; k < first + kAtOnce; ++k) {
      children.emplace_back(
          [&counter, k] {
            counter = k;
            const Outcome used = use_grpc();
            return counter == 0 ? used : NothingFailed;
          },
          kMostSeconds);
    }
    for (long k = first; k < first + kAtOnce; ++k) {
      const int outcome = children[static_cast<size_t>(k - first)].wait();
      EXPECT_NE(outcome, 128 + SIGALRM) << "hangs where thread " << k << " does not start";
      ++times[outcome];
    }
  }
  return times;
}

// Nothing is allocated any more either.
TEST(NoThreadForGrpc, WhileItStartsThem) { EXPECT_GT(without_thread(threads_left)[Shortage], 0); }

// The end of gRPC waited for a thread of its timers for ever.
TEST(NoThreadForGrpc, ForOneOfItsOwn) { EXPECT_GT(without_thread(thread_to_refuse)[Good], 0); }

}  // namespace
}  // namespace ccom

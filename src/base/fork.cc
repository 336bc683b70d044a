// SPDX-License-Identifier: Apache-2.0
#include "base/fork.h"

#include <pthread.h>

namespace ccom {

constinit uint32_t internal::forks = 0;

namespace {

// When the library is loaded: a thread that did it later could be interrupted by a fork.
const int fork_handler = ::pthread_atfork(nullptr, nullptr, [] { ++internal::forks; });

}  // namespace
}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "base/fork.h"

#include <pthread.h>

namespace ccom {
namespace {

uint32_t forks = 0;
// When the library is loaded: a thread that did it later could be interrupted by a fork.
const int fork_handler = ::pthread_atfork(nullptr, nullptr, [] { ++forks; });

}  // namespace

uint32_t fork_generation() { return forks; }

}  // namespace ccom

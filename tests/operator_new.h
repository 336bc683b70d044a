// SPDX-License-Identifier: Apache-2.0
//
// A test program's operator new, which fails where the program's fails() says so. It replaces the library's as well,
// which takes the one that is defined first. To be included by one file of a program, after its
//
//   namespace {
//   bool fails() { ... }
//   }
#pragma once

#include <cstdlib>
#include <new>

// Not inlined, since a compiler that sees malloc() and operator delete warns of a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* const memory = fails() ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return fails() ? nullptr : std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

// SPDX-License-Identifier: Apache-2.0
//
// A piece of work for a stream: like std::function<Status()>, but it may only be moved, and what it captures lies
// inside it, so that a call on a stream allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "base/status.h"

namespace ccom {

// A value that can be moved. Empty: may not be called.
class Work {
 public:
  static constexpr size_t kRoom = 120;  // of a request with all that it keeps

  Work() = default;
  template <typename Fn>
  requires(!std::is_same_v<Fn, Work>) Work(Fn fn)
      : kind_(&kKind<Fn>) {  // NOLINT(google-explicit-constructor): stands for any callable
    static_assert(sizeof(Fn) <= kRoom && alignof(Fn) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Fn>);
    ::new (room_.data()) Fn(std::move(fn));
  }
  Work(Work&& other) noexcept { take(other); }
  Work& operator=(Work&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() { reset(); }

  Status operator()() {
    CCOM_ASSERT(kind_ != nullptr);
    return kind_->run(room_.data());
  }
  // Lets go of what was captured.
  void reset() noexcept {
    if (kind_ != nullptr) std::exchange(kind_, nullptr)->destroy(room_.data());
  }

 private:
  struct Kind {
    Status (*run)(void* fn);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void* fn) noexcept;
  };
  template <typename Fn>
  static constexpr Kind kKind = {
      .run = [](void* fn) -> Status { return (*static_cast<Fn*>(fn))(); },
      .move = [](void* from, void* to) noexcept { ::new (to) Fn(std::move(*static_cast<Fn*>(from))); },
      .destroy = [](void* fn) noexcept { static_cast<Fn*>(fn)->~Fn(); }};

  void take(Work& other) noexcept {
    if (other.kind_ == nullptr) return;
    kind_ = other.kind_;
    kind_->move(other.room_.data(), room_.data());
    other.reset();
  }

  alignas(std::max_align_t) std::array<std::byte, kRoom> room_;
  const Kind* kind_ = nullptr;
};

}  // namespace ccom

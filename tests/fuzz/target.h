// SPDX-License-Identifier: Apache-2.0
//
// Fuzz targets: code that reads what comes from outside the process. Each takes any bytes, must neither crash nor hang,
// and checks what must hold for whatever was accepted. The same targets run under libFuzzer (scripts/fuzz) and, with
// the kept corpus and mutations of it, as an ordinary test (corpus_test.cc).
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace ccom::fuzz {

struct Target {
  const char* name;
  void (*run)(ConstBytes);
};

// Of this program.
inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

struct Registered {
  Registered(const char* name, void (*run)(ConstBytes)) { targets().push_back({name, run}); }
};

// CCOM_FUZZ_TARGET(plan_file) { ... uses `input` ... }
#define CCOM_FUZZ_TARGET(name)                                      \
  void name(::ccom::ConstBytes input);                              \
  const ::ccom::fuzz::Registered registered_##name(#name, &(name)); \
  void name(::ccom::ConstBytes input)

// What must hold for every input.
inline void require(bool holds) {
  if (!holds) std::abort();
}

inline std::string_view text_of(ConstBytes input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// Takes an input apart. At its end everything is zero.
class Reader {
 public:
  explicit Reader(ConstBytes input) : rest_(input) {}
  bool is_empty() const { return rest_.empty(); }
  ConstBytes take(size_t most) {
    const ConstBytes taken = rest_.first(std::min(most, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  template <typename T>
  T number() {
    T value{};
    const ConstBytes bytes = take(sizeof(T));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  size_t below(size_t limit) { return number<uint32_t>() % limit; }

 private:
  ConstBytes rest_;
};

}  // namespace ccom::fuzz

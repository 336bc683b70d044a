// SPDX-License-Identifier: Apache-2.0
//
// Strict reading of JSON. Every key must be known, present and within its range; the first thing that is
// wrong is kept with its path ("topology.hosts[2].cpus"), and reading continues with defaults so that readers need no
// branches.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "topology/json_value.h"
#include "topology/topology.h"

namespace ccom {

// The first problem wins. A value.
class Problem {
 public:
  void add(const std::string& path, const std::string& what) {
    if (status_.is_ok()) status_ = Status(ErrorKey::TopologyFile, path + ": " + what);
  }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

// One value to be read, and where it is.
struct JsonAt {
  const JsonValue& value;
  std::string path;
  Problem& problem;

  int64_t integer(int64_t low, int64_t high) const;
  double number(double low, double high) const;  // both included
  bool boolean() const;
  std::string text(size_t least_bytes, size_t most_bytes) const;  // without control characters
  // `low` and the number of elements if this is an array of at most `most` elements, otherwise a problem and 0.
  size_t array_size(size_t least, size_t most) const;
  JsonAt element(size_t index) const;
};

// An object that is read key by key; finish() complains about keys that nobody asked for.
class JsonObject {
 public:
  explicit JsonObject(const JsonAt& at);
  bool has(const char* key) const;
  JsonAt at(const char* key);  // a problem if missing; the value then reads as null
  void finish() const;

 private:
  JsonAt at_;
  std::set<std::string> asked_;
};

// A document, whose parts JsonAt reads; it must stay alive as long.
class JsonDocument {
 public:
  // Checks syntax, and that no key is repeated and nothing nested absurdly deep.
  static Result<JsonDocument> parse(std::string_view text);
  JsonAt root(const std::string& name, Problem& problem) const { return {*value_, name, problem}; }

 private:
  explicit JsonDocument(std::shared_ptr<const JsonValue> value) : value_(std::move(value)) {}
  std::shared_ptr<const JsonValue> value_;
};

// What occurs in several of our files, and within which limits.
inline constexpr size_t kMaxTextBytes = 1024;
inline constexpr double kMaxLatencyNs = 1e12;
inline constexpr double kMaxBytesPerSecond = 1e15;

// A speed of zero would make every cost infinite: whoever does not know a speed must guess one.
LinkSpeed speed_at(const JsonAt& latency, const JsonAt& bandwidth);
LinkSpeed read_speed(const JsonAt& at);  // {"latency_ns": 620, "bytes_per_second": 9.1e9}

}  // namespace ccom

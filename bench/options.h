// SPDX-License-Identifier: Apache-2.0
//
// The command line of ccom-bench as a value. README.md describes the flags.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/launch/outcome.h"
#include "bench/names.h"
#include "bench/parts.h"

namespace ccom::bench {

enum class Mode { Latency, Throughput };
enum class Check { Off, Edge, Every };
enum class Memory { Heap, Mapped };  // malloc, or ccomMemAlloc, which ccom may share with peers.

struct Options {
  std::vector<Collective> collectives;
  std::vector<int> process_counts;  // Empty: not given.
  bool threads = false;
  std::vector<size_t> sizes;  // Bytes, as requested.
  std::vector<ccomDataType_t> types;
  std::vector<Reduction> reductions;  // Invalid pairs with a type are skipped.
  std::optional<int> root = 0;        // nullopt: each.
  bool out_of_place = true;
  bool in_place = true;
  size_t unalign = 0;
  int warm_up = 5;
  int iterations = 20;
  int group = 0;             // Calls of a group, which is what is timed; 0: calls are in no group.
  Skew skew = Skew::Linear;  // Of v-forms.
  double min_seconds = 0;
  Mode mode = Mode::Latency;
  Check check = Check::Edge;
  Memory memory = Memory::Heap;
  bool stream = false;
  bool overlap = false;   // Also overlap calls with computation; then `stream` is set too.
  std::string algorithm;  // "": ccom's choice; "all": each valid one.
  std::string transport;
  std::string topology;
  int hosts = 0;  // 0: real hosts; otherwise emulated.
  bool explain = false;
  std::string tune;  // "": no tuning; otherwise the file to write, and nothing else is measured.
  std::string json;  // "": none, "-": stdout.
  bool json_append = false;
  bool links = false;
  double timeout_seconds = 600;
  double min_busbw = 0;
  bool progress = true;
  bool is_child = false;  // Started by ccom-bench itself, which enforces the timeout.
};

// Calls that are timed as one.
inline int calls_together(const Options& options) { return std::max(options.group, 1); }

// Explained for a possibly hypothetical topology: no rank is started.
inline bool is_offline(const Options& options) { return options.explain && !options.topology.empty(); }

// "8", "1.5K", "64M", "1GB": K, M, G are powers of 1024, KB, MB, GB of 1000. nullopt if it is none of these.
std::optional<size_t> parse_size(std::string_view text);

struct Sweep {
  size_t begin = 8;
  size_t end = size_t{64} << 20;
  double factor = 8;
  size_t step = 0;  // Not 0: used instead of factor.
};
std::vector<size_t> sizes_of(const Sweep& sweep);

// Ok and filled `options`; or Usage with the text for stderr; `help` is set, and printed on stdout, if that was asked
// for.
launch::Outcome parse_options(const std::vector<std::string>& arguments, Options* options, std::string* help);

}  // namespace ccom::bench

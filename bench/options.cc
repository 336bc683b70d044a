// SPDX-License-Identifier: Apache-2.0
#include "bench/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "bench/command_line/command_line.h"

namespace ccom::bench {
namespace {

using launch::ExitCode;
using launch::failure;
using launch::Outcome;

// Raw values from the command line before they are interpreted.
struct Words {
  std::vector<std::string> collectives;
  std::vector<std::string> sizes;
  std::vector<std::string> types = {"float32"};
  std::vector<std::string> reductions = {"sum"};
  std::vector<std::string> places = {"out", "in"};
  std::string begin = "8";
  std::string end = "64M";
  std::string step;
  double factor = 8;
  std::string root = "0";
  std::string mode = "latency";
  std::string check = "edge";
  std::string memory = "heap";
  std::string skew = "linear";
  bool no_progress = false;
};

// To complete.
template <class Value>
std::vector<std::string> names_and_all(std::span<const Value> values) {
  std::vector<std::string> names{"all"};
  for (const Value value : values) names.emplace_back(name_of(value));
  return names;
}

void describe_ranks(CommandLine& line, Options& options) {
  line.option("--np", options.process_counts,
              "Ranks to start on this machine, one run per number (-np works too); default 4")
      .range(1, 65536);
  line.flag("--threads", options.threads, "Ranks are threads of one process");
  line.option("--hostid-split", options.hosts, "Emulate this many hosts: ranks of different hosts share no memory")
      .range(1, 65536);
  line.option("--timeout", options.timeout_seconds, "Timeout of a run in seconds (exit code 5)").positive();
}

void describe_cases(CommandLine& line, Words& words, Options& options) {
  line.option("op", words.collectives,
              "allreduce, allgather, reduce_scatter, broadcast, reduce, alltoall, gather, scatter, barrier, sendrecv, "
              "allgatherv, reduce_scatterv, alltoallv, gatherv, scatterv: a comma list, or all")
      .offers(names_and_all(all_collectives()));
  line.option("-b,--begin", words.begin, "Smallest size in bytes; K/M/G = 1024, KB/MB/GB = 1000");
  line.option("-e,--end", words.end, "Largest size");
  line.option("-f,--factor", words.factor, "Factor between sizes");
  line.option("-i,--step", words.step, "Step between sizes, instead of a factor");
  line.option("--sizes", words.sizes, "List of sizes, instead of a sweep");
  line.option("-d,--type", words.types, "Element types: a comma list, or all").offers(names_and_all(all_types()));
  line.option("-o,--redop", words.reductions,
              "sum, prod, max, min, avg, band, bor, bxor, land, lor, premulsum, user (a function that sums), "
              "user-ordered (one that does not commute; integers): a comma list, or all")
      .offers(names_and_all(all_reductions()));
  line.option("-r,--root", words.root, "Root rank, or all");
  line.option("--place", words.places, "out, in: out of place, in place").one_of({"out", "in"});
  line.option(
          "--skew", words.skew,
          "Parts of v-forms, ranks * count elements in all; none: equal, linear: proportional to rank + 1, one: all "
          "of them the last rank's")
      .one_of({"none", "linear", "one"});
  line.option("--unalign", options.unalign, "Offset of buffers from a page boundary, in bytes").range(0, 4096);
  line.option("--mem", words.memory, "heap: malloc; mapped: ccomMemAlloc").one_of({"heap", "mapped"});
}

void describe_timing(CommandLine& line, Words& words, Options& options) {
  line.option("-w,--warmup", options.warm_up, "Untimed calls per size").range(0, 1'000'000);
  line.option("-n,--iters", options.iterations, "Timed calls per size").range(1, 10'000'000);
  line.option("--group", options.group,
              "Time groups of this many calls, each with buffers of its own; times are per call")
      .range(1, 65536);
  line.option("--min-time", options.min_seconds, "Time each size for at least this many seconds").non_negative();
  line.option("--mode", words.mode, "latency: a barrier before each timed call; throughput: calls back to back")
      .one_of({"latency", "throughput"});
  line.flag("--stream", options.stream, "Use a created stream instead of the NULL stream");
  line.flag("--overlap", options.overlap,
            "Overlap calls on a stream with computation, and show the share of the time that this hides");
  line.option("--check", words.check, "Verify no call, the first and last ones, or every one")
      .one_of({"off", "edge", "every"});
  line.option("--min-busbw", options.min_busbw, "Exit with 2 if a row's busbw (GB/s) is below this").non_negative();
}

void describe_choice(CommandLine& line, Options& options) {
  line.option("--algo", options.algorithm, "Algorithm to use, or all: one run for each valid one");
  line.option("--transport", options.transport, "Transports to use: shm, tcp, ofi or a list")
      .offers({"shm", "tcp", "ofi"});
  line.option("--topology", options.topology,
              "Topology to impose: a preset (trn1.32xlarge), torus:4x4, a JSON file, ...")
      .file();
  line.flag("--explain", options.explain,
            "Print the chosen algorithm for each size, and why; run nothing. With --topology for that machine, which "
            "may be hypothetical (4*trn1.32xlarge: of 4 hosts), and without ranks");
  line.option("--tune", options.tune,
              "Measure speeds of memory, network and reductions between the ranks (2 by default) and write them to "
              "this file, for CCOM_TUNING")
      .file();
}

void describe_output(CommandLine& line, Words& words, Options& options) {
  line.option("--json", options.json, "Write one JSON object per row to this file; - is stdout, without the table")
      .file();
  line.flag("--links", options.links, "Print the payload bytes sent between each pair of ranks");
  line.flag("--no-progress", words.no_progress, "No progress line, even on a terminal");
  line.flag("--json-append", options.json_append, "").hidden();
  line.flag("--child", options.is_child, "").hidden();
}

// Replaces "all" by everything; keeps the given order.
template <class Value, class Named>
Outcome understand(const std::vector<std::string>& words, const char* what, std::span<const Value> all, Named named,
                   std::vector<Value>* values) {
  for (const std::string& word : words) {
    if (word == "all") {
      values->assign(all.begin(), all.end());
      return {};
    }
    const std::optional<Value> value = named(word);
    if (!value) {
      std::string choices = "all";
      for (const Value choice : all) choices.append(", ").append(name_of(choice));
      return failure(ExitCode::Usage, "%s %s is not known; there are %s", what, word.c_str(), choices.c_str());
    }
    values->push_back(*value);
  }
  return {};
}

Outcome size_word(const std::string& word, const char* flag, size_t* size) {
  const std::optional<size_t> parsed = parse_size(word);
  if (!parsed)
    return failure(ExitCode::Usage, "%s %s: expected a size such as 8, 3000, 64K or 1MB", flag, word.c_str());
  *size = *parsed;
  return {};
}

Outcome understand_sizes(const Words& words, Options* options) {
  for (const std::string& word : words.sizes) {
    size_t size = 0;
    CCOM_LAUNCH_TRY(size_word(word, "--sizes", &size));
    options->sizes.push_back(size);
  }
  if (!options->sizes.empty()) return {};
  Sweep sweep{.factor = words.factor};
  CCOM_LAUNCH_TRY(size_word(words.begin, "-b", &sweep.begin));
  CCOM_LAUNCH_TRY(size_word(words.end, "-e", &sweep.end));
  if (!words.step.empty()) {
    CCOM_LAUNCH_TRY(size_word(words.step, "-i", &sweep.step));
    if (sweep.step == 0) return failure(ExitCode::Usage, "-i 0: the step must be above 0");
  } else if (!(sweep.factor > 1)) {
    return failure(ExitCode::Usage, "-f %g: the factor must be above 1", sweep.factor);
  }
  if (sweep.begin > sweep.end) return failure(ExitCode::Usage, "-b %zu is above -e %zu", sweep.begin, sweep.end);
  options->sizes = sizes_of(sweep);
  return {};
}

Outcome understand_root(const std::string& word, Options* options) {
  options->root.reset();
  if (word == "all") return {};
  int root = 0;
  const auto [end, trouble] = std::from_chars(word.data(), word.data() + word.size(), root);
  if (trouble != std::errc() || end != word.data() + word.size() || root < 0) {
    return failure(ExitCode::Usage, "-r %s: expected a rank or all", word.c_str());
  }
  options->root = root;
  return {};
}

// Checks of flag combinations.
Outcome check_together(const Options& options) {
  if (options.collectives.empty() && options.tune.empty())
    return failure(ExitCode::Usage, "op is required (ccom-bench --help lists the flags)");
  if (!options.tune.empty() && (!options.collectives.empty() || !options.topology.empty() || options.explain))
    return failure(ExitCode::Usage, "--tune measures this machine as it is: without op, --topology and --explain");
  const bool takes_ranks = options.threads || !options.process_counts.empty() || options.hosts > 0;
  if (is_offline(options) && (takes_ranks || !options.algorithm.empty() || !options.transport.empty()))
    return failure(ExitCode::Usage,
                   "--explain --topology takes the ranks from the topology (2*trn1.32xlarge, torus:4x4): without -np, "
                   "--threads, --hostid-split, --algo and --transport");
  return {};
}

Outcome understand_all(const Words& words, Options* options) {
  CCOM_LAUNCH_TRY(understand(words.collectives, "op", all_collectives(), collective_named, &options->collectives));
  CCOM_LAUNCH_TRY(understand(words.types, "type", all_types(), type_named, &options->types));
  CCOM_LAUNCH_TRY(understand(words.reductions, "redop", all_reductions(), reduction_named, &options->reductions));
  CCOM_LAUNCH_TRY(understand_sizes(words, options));
  CCOM_LAUNCH_TRY(understand_root(words.root, options));
  options->out_of_place = std::ranges::count(words.places, "out") > 0;
  options->in_place = std::ranges::count(words.places, "in") > 0;
  options->mode = words.mode == "latency" ? Mode::Latency : Mode::Throughput;
  if (options->overlap && options->mode != Mode::Latency)
    return failure(ExitCode::Usage, "--overlap times single calls: not with --mode throughput");
  if (options->overlap && options->group > 0)
    return failure(ExitCode::Usage, "--overlap times single calls: not with --group");
  options->stream = options->stream || options->overlap;
  options->check = words.check == "off" ? Check::Off : words.check == "edge" ? Check::Edge : Check::Every;
  options->skew = *skew_named(words.skew);
  options->memory = words.memory == "heap" ? Memory::Heap : Memory::Mapped;
  options->progress = !words.no_progress;
  return check_together(*options);
}

}  // namespace

std::optional<size_t> parse_size(std::string_view text) {
  double number = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (trouble != std::errc() || number < 0) return std::nullopt;
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const bool decimal = unit.size() == 2 && unit[1] == 'B';
  if (decimal) unit.remove_suffix(1);
  constexpr std::string_view kPrefixes = "KMGT";
  double scale = 1;
  if (!unit.empty()) {
    const size_t power = kPrefixes.find(unit);
    if (unit.size() != 1 || power == std::string_view::npos) return std::nullopt;
    scale = std::pow(decimal ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  const double bytes = number * scale;
  if (bytes >= std::ldexp(1.0, 53) || bytes != std::floor(bytes)) return std::nullopt;  // Exact, and no part of a byte.
  return static_cast<size_t>(bytes);
}

std::vector<size_t> sizes_of(const Sweep& sweep) {
  std::vector<size_t> sizes;
  for (size_t size = sweep.begin; size <= sweep.end;) {
    sizes.push_back(size);
    const auto scaled = static_cast<size_t>(static_cast<double>(size) * sweep.factor);
    size = sweep.step != 0 ? size + sweep.step : std::max(size + 1, scaled);
  }
  return sizes;
}

Outcome parse_options(const std::vector<std::string>& arguments, Options* options, std::string* help) {
  CommandLine line(
      "ccom-bench", "Measures and verifies collectives.",
      "Exit codes: 0 success, 1 wrong data, 2 below --min-busbw, 3 usage, 4 communication error, 5 timeout.");
  Words words;
  describe_cases(line, words, *options);
  describe_ranks(line, *options);
  describe_timing(line, words, *options);
  describe_choice(line, *options);
  describe_output(line, words, *options);
  const CommandLine::Parsed parsed = line.parse(arguments);
  if (parsed.wrong) return failure(ExitCode::Usage, "%s", parsed.wrong->c_str());
  if (parsed.answer) {
    *help = *parsed.answer;
    return {};
  }
  return understand_all(words, options);
}

}  // namespace ccom::bench

// SPDX-License-Identifier: Apache-2.0
#include "metrics/metrics_text.h"

#include <algorithm>
#include <functional>

#include "base/collective.h"
#include "base/text.h"
#include "base/version.h"

namespace ccom {
namespace {

std::string escaped(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\\' || c == '"') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~' ? '?' : c;
  }
  return quoted;
}

std::string figure(double number) { return printed("%.9g", number); }

std::string label(const char* name, const std::string& value) {
  return std::string(name) + "=\"" + escaped(value) + "\"";
}

std::string labels_of(const RankMetrics& rank) {
  return label("communicator", hexadecimal(rank.communicator)) + "," + label("name", rank.name) + "," +
         label("rank", std::to_string(rank.activity.rank)) + "," + label("host", rank.host);
}

// The size class as the most bytes in it, as buckets are named.
std::string labels_of(const CallTotals::Of& of) {
  const bool is_last = of.size_class + 1 >= kSizeClasses;
  return label("operation", std::string(traits_of(of.collective).name)) + "," +
         label("up_to_bytes", is_last ? "+Inf" : std::to_string(uint64_t{64} << 4 * of.size_class));
}

class Text {
 public:
  explicit Text(const std::vector<RankMetrics>& ranks) : ranks_(ranks) {}

  void begin(const char* family, const char* type, const char* unit, const char* help) {
    text_ += "# TYPE " + std::string(family) + " " + type + "\n";
    if (*unit != 0) text_ += "# UNIT " + std::string(family) + " " + unit + "\n";
    text_ += "# HELP " + std::string(family) + " " + help + "\n";
  }
  void sample(const std::string& name, const std::string& labels, const std::string& value) {
    text_ += name + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
  }
  // One sample for each rank.
  void of_ranks(const std::string& name, const std::function<std::string(const RankMetrics&)>& value) {
    for (const RankMetrics& rank : ranks_) sample(name, labels_of(rank), value(rank));
  }
  // One for each operation and size of each rank.
  void of_calls(const std::string& name, const std::function<std::string(const CallTotals::Of&)>& value) {
    for (const RankMetrics& rank : ranks_)
      for (const CallTotals::Of& of : rank.totals.calls) sample(name, labels_of(rank) + "," + labels_of(of), value(of));
  }
  std::string take() { return std::move(text_) + "# EOF\n"; }

 private:
  const std::vector<RankMetrics>& ranks_;
  std::string text_;
};

void add_counters(Text& text, const std::vector<RankMetrics>& ranks) {
  using Of = CallTotals::Of;
  text.begin("ccom_calls", "counter", "", "Calls that have ended.");
  text.of_calls("ccom_calls_total", [](const Of& of) { return std::to_string(of.calls); });
  text.begin("ccom_data_bytes", "counter", "bytes", "Bytes of the calls' units: those of one rank.");
  text.of_calls("ccom_data_bytes_total", [](const Of& of) { return std::to_string(of.bytes); });
  text.begin("ccom_call_seconds", "summary", "seconds",
             "Duration of calls that were timed: all of 4 KiB and more, one in 64 of the others.");
  for (const RankMetrics& rank : ranks) {
    for (const Of& of : rank.totals.calls) {
      const std::string labels = labels_of(rank) + "," + labels_of(of);
      text.sample("ccom_call_seconds_count", labels, std::to_string(of.timed));
      text.sample("ccom_call_seconds_sum", labels, figure(of.timed_seconds));
    }
  }
  text.begin("ccom_waited_seconds", "counter", "seconds",
             "Time in calls spent waiting for other ranks, of all waits of about a microsecond or longer.");
  text.of_calls("ccom_waited_seconds_total", [](const Of& of) { return figure(of.waited_seconds); });
  text.begin("ccom_waited_for_seconds", "counter", "seconds",
             "Time spent waiting for the rank peer; at most so much where there are more than 16 of them.");
  for (const RankMetrics& rank : ranks)
    for (const CallTotals::WaitedFor& of : rank.totals.waited_for)
      text.sample("ccom_waited_for_seconds_total", labels_of(rank) + "," + label("peer", std::to_string(of.rank)),
                  figure(of.seconds));
}

void add_gauges(Text& text, const std::vector<RankMetrics>& ranks) {
  text.begin("ccom_ranks", "gauge", "", "Ranks of the communicator.");
  text.of_ranks("ccom_ranks", [](const RankMetrics& rank) { return std::to_string(rank.ranks); });
  text.begin("ccom_hosts", "gauge", "", "Hosts of the communicator.");
  text.of_ranks("ccom_hosts", [](const RankMetrics& rank) { return std::to_string(rank.hosts); });
  text.begin("ccom_healthy", "gauge", "", "1: the communicator has no error; 0: it has one.");
  text.of_ranks("ccom_healthy", [](const RankMetrics& rank) { return std::string(rank.has_failed ? "0" : "1"); });
  text.begin("ccom_in_call", "gauge", "", "1: the rank is in a call now.");
  text.of_ranks("ccom_in_call", [](const RankMetrics& rank) {
    return std::string(rank.activity.state == RankActivity::State::InCall ? "1" : "0");
  });
  text.begin("ccom_current_wait_seconds", "gauge", "seconds", "How long the rank has waited for the rank peer by now.");
  for (const RankMetrics& rank : ranks)
    if (rank.activity.waits_for >= 0)
      text.sample("ccom_current_wait_seconds",
                  labels_of(rank) + "," + label("peer", std::to_string(rank.activity.waits_for)),
                  figure(rank.activity.waited));
}

}  // namespace

std::string metrics_text(const std::vector<RankMetrics>& ranks) {
  Text text(ranks);
  text.begin("ccom_library", "info", "", "The library that the process has loaded.");
  text.sample("ccom_library_info", label("version", kVersion), "1");
  add_counters(text, ranks);
  add_gauges(text, ranks);
  return text.take();
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
//
// ccom-top: what the jobs of this user on this host do, again and again. Ends with 0, or with 3 and a line on stderr if
// the command line is wrong or there is no terminal.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "bench/command_line/command_line.h"
#include "tools/jobs/json.h"
#include "tools/jobs/look.h"
#include "tools/top/model.h"
#include "tools/top/screen.h"

namespace {

constexpr int kConfigError = 3;

bool print(const std::string& text) { return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0; }

bool print_table(const ccom::TopModel& model) {
  std::string text;
  for (const ccom::TopLine& line : model.lines(0, 0)) text += line.text + "\n";
  return print(text);
}

bool print_json(const ccom::TopModel& model) {
  return print(ccom::to_json(model.seen(), model.health(), model.rates()) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 1, late_seconds = 1;
  bool is_once = false, is_json = false;
  ccom::CommandLine line("ccom-top",
                         "Shows what the jobs of this user on this host do: communicators, ranks, who waits for whom.");
  line.option("-i,--interval", seconds, "Seconds between two looks").range(0.05, 3600.0);
  line.option("--late", late_seconds, "Seconds that others must have waited for a rank for it to be late").positive();
  line.flag("--once", is_once, "Print a table after one interval, and end");
  line.flag("--json", is_json, "Print a line of JSON after each interval (docs/ccom-status.schema.json)");
  if (const std::optional<int> code = line.exit_code({argv + 1, argv + argc})) return *code;

  const std::chrono::milliseconds interval(static_cast<int64_t>(seconds * 1e3));
  // Later looks find what other hosts have said since the one before, unless that was long ago.
  bool waits = true;
  const auto look = [&] {
    ccom::HostSeen seen = ccom::look_at_host(::geteuid(), {.waits_for_hosts = waits});
    waits = is_once || seconds > ccom::kWatchSeconds / 2;
    return seen;
  };
  ccom::TopModel model(late_seconds);
  if (is_once || is_json) {
    model.add(look());
    do {
      std::this_thread::sleep_for(interval);
      model.add(look());
    } while ((is_json ? print_json(model) : print_table(model)) && !is_once);
    return 0;
  }
  const ccom::Status shown = ccom::show(model, interval, look);
  if (shown.is_ok()) return 0;
  std::fprintf(stderr, "ccom-top: %s\n%s\n", shown.message().c_str(), shown.cure().c_str());
  return kConfigError;
}

// SPDX-License-Identifier: Apache-2.0
//
// ccom-status: what the jobs of this user on this host do now, once, as text or JSON. Ends with the health found: 0
// healthy, 1 ranks are late, 2 something has failed, 4 there are no communicators; or with 3 and a line on stderr if
// the command line is wrong.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "bench/command_line/command_line.h"
#include "tools/jobs/health.h"
#include "tools/jobs/json.h"
#include "tools/jobs/look.h"
#include "tools/jobs/report.h"

int main(int argc, char** argv) {
  double late_seconds = 1;
  bool is_json = false;
  ccom::CommandLine line("ccom-status",
                         "Tells what the jobs of this user on this host do, and whether they are healthy.",
                         "Exit code: 0 healthy, 1 ranks are late, 2 something has failed, 4 no job was found.");
  line.flag("--json", is_json, "Print JSON on one line (docs/ccom-status.schema.json)");
  line.option("--late", late_seconds, "Seconds that others must have waited for a rank for it to be late").positive();
  if (const std::optional<int> code = line.exit_code({argv + 1, argv + argc})) return *code;
  const ccom::HostSeen seen = ccom::look_at_host(::geteuid(), {.waits_for_hosts = true});
  const ccom::Health health = ccom::judge(seen, late_seconds);
  const std::string text = is_json ? ccom::to_json(seen, health, nullptr) + "\n" : ccom::to_text(seen, health);
  std::fputs(text.c_str(), stdout);
  return static_cast<int>(health.verdict);
}

// SPDX-License-Identifier: Apache-2.0
//
// ccom-run: starts any program as N ranks on this host, which find one another by CCOM_RANK, CCOM_NRANKS and CCOM_URL.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "bench/command_line/command_line.h"
#include "bench/launch/processes.h"

namespace {

constexpr int kWrong = 3;

// Options end at the program, whose own are its own.
size_t program_at(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") return i + 1;
    if (words[i].empty() || words[i][0] != '-') return i;
    const bool takes_value = words[i] == "-n" || words[i] == "-np" || words[i] == "--np" || words[i] == "--grace" ||
                             words[i] == "--timeout" || words[i] == "--python" || words[i] == "--completion";
    if (takes_value) ++i;
  }
  return words.size();
}

bool is_python(const std::string& file) { return file.ends_with(".py") && ::access(file.c_str(), F_OK) == 0; }

std::string python() {
  const char* const of_environment = ::getenv("VIRTUAL_ENV");
  if (of_environment == nullptr) return "python3";
  const std::string path = std::string(of_environment) + "/bin/python";
  return ::access(path.c_str(), X_OK) == 0 ? path : "python3";
}

}  // namespace

int main(int argc, char** argv) {
  int ranks = 0;
  double grace = 5, timeout = 0;
  bool tags_output = false;
  std::string interpreter = python();
  ccom::CommandLine line("ccom-run",
                         "Starts a program as the ranks of a job on this host: ccom-run -n 4 PROGRAM [ARGUMENT...]; a "
                         "file that ends in .py is run by Python.",
                         "Exit code: that of the first rank that failed, 128 + signal if a signal ended it, 0 if all "
                         "were good, 3 if the command line is wrong.");
  line.option("-n,--np", ranks, "Number of ranks").range(1, 4096);
  line.flag("--tag-output", tags_output, "Begin each line of output with its rank: [2] ...");
  line.option("--grace", grace, "Seconds that the other ranks have to end when one has failed").non_negative();
  line.option("--timeout", timeout, "Seconds after which the job is ended with code 5; 0: none").non_negative();
  line.option("--python", interpreter, "What runs files that end in .py").file();
  const std::vector<std::string> words(argv + 1, argv + argc);
  const size_t program = program_at(words);
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(program);
  const bool has_dashes = program > 0 && words[program - 1] == "--";
  if (const std::optional<int> code = line.exit_code({words.begin(), begin - (has_dashes ? 1 : 0)})) return *code;
  if (ranks == 0) {
    std::fprintf(stderr, "ccom-run: needs the number of ranks: ccom-run -n 4 PROGRAM\n");
    return kWrong;
  }
  if (begin == words.end()) {
    std::fprintf(stderr, "ccom-run: needs a program: ccom-run -n %d PROGRAM\n", ranks);
    return kWrong;
  }
  ccom::launch::ProcessJob job{.arguments = {begin, words.end()}, .ranks = ranks, .tags_output = tags_output};
  if (is_python(job.arguments.front())) job.arguments.insert(job.arguments.begin(), interpreter);
  job.program = job.arguments.front();
  job.grace = std::chrono::milliseconds(static_cast<int64_t>(std::min(grace, 1e9) * 1000));
  job.timeout = timeout == 0 ? std::chrono::milliseconds(ccom::launch::kNoTimeout)
                             : std::chrono::milliseconds(static_cast<int64_t>(std::min(timeout, 1e8) * 1000));
  return ccom::launch::run_processes(job);
}

// SPDX-License-Identifier: Apache-2.0
//
// A rank for processes_test: "child start RANKS TIMEOUT_MS what..." starts the ranks, "what" of each is one word per
// rank.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/launch/processes.h"

namespace {

int as_rank(const std::string& what) {
  const std::string url = std::getenv("CCOM_URL");
  const std::string folder = std::filesystem::path(url.substr(7)).parent_path();
  if (what == "good") return 0;
  if (what == "crash") return ::raise(SIGKILL);  // The only end that no sanitizer and no library catches.
  if (what == "kill_launcher") return ::kill(::getppid(), SIGKILL);
  if (what == "sleep") return static_cast<int>(::sleep(600));
  if (what == "again") return ccom::launch::run_processes({.arguments = {"child", "good"}, .ranks = 1});
  if (what == "report") {
    const auto mode = static_cast<unsigned>(std::filesystem::status(folder).permissions());
    std::printf("rank %s of %s folder %s mode %o\n", std::getenv("CCOM_RANK"), std::getenv("CCOM_NRANKS"),
                folder.c_str(), mode);
    return 0;
  }
  return std::atoi(what.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  if (argc > 4 && words[1] == "start") {
    std::vector<std::string> arguments = {words[0]};
    arguments.insert(arguments.end(), words.begin() + 4, words.end());
    return ccom::launch::run_processes({.arguments = arguments,
                                        .ranks = std::stoi(words[2]),
                                        .timeout = std::chrono::milliseconds(std::stoi(words[3])),
                                        .grace = std::chrono::milliseconds(3000)});
  }
  const char* rank = std::getenv("CCOM_RANK");
  return rank == nullptr ? 99 : as_rank(words.at(1 + std::stoul(rank)));
}

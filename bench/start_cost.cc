// SPDX-License-Identifier: Apache-2.0
//
// What a start costs: processes of this machine, spread over emulated hosts, start a communicator and call a barrier.
//
//     start_cost RANKS HOSTS      prints one line of JSON
//
//   launch_s   from the first fork to the last rank's end of its first barrier: program loading, start and barrier
//   start_s    the same from the first rank's call of ccomCommInitRank
//   pss_kb     proportional memory of a rank after that, the mean and the largest; private_kb: what it alone has
//   cpu_s      processor time of all ranks, from fork to exit
//   fds        open descriptors of a rank, the largest, and those of rank 0
//   lo_mb      what has crossed the loopback interface meanwhile (of this network namespace)
//
// Ranks of a host are neighbours in number. Settings come from the environment.
#include <ccom/ccom.h>
#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Report {
  int64_t begin_ns = 0, started_ns = 0, met_ns = 0;
  int64_t pss_kb = 0, private_kb = 0, fds = 0;
  int32_t rank = -1, failed = 0;
};

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void read_memory(Report& report) {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kb = 0;
    words >> name >> kb;
    if (name == "Pss:") report.pss_kb = kb;
    if (name == "Private_Clean:" || name == "Private_Dirty:") report.private_kb += kb;
  }
}

int64_t count_descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  int64_t count = -3;  // ".", ".." and its own
  while (folder != nullptr && ::readdir(folder) != nullptr) ++count;
  if (folder != nullptr) ::closedir(folder);
  return count;
}

int run_rank(int rank, int ranks, const char* url, int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Report report;
  report.rank = rank;
  report.begin_ns = now_ns();
  ccomUniqueId id;
  ccomComm_t comm = nullptr;
  bool works = ccomUniqueIdFromUrl(url, ranks, rank, &id) == ccomSuccess &&
               ccomCommInitRank(&comm, ranks, id, rank) == ccomSuccess;
  report.started_ns = now_ns();
  works = works && ccomBarrier(comm, nullptr) == ccomSuccess;
  report.met_ns = now_ns();
  works = works && ccomBarrier(comm, nullptr) == ccomSuccess;  // nobody looks before all have met
  read_memory(report);
  report.fds = count_descriptors();
  works = works && ccomBarrier(comm, nullptr) == ccomSuccess;  // nor ends before all have looked
  report.failed = works ? 0 : 1;
  if (!works) std::fprintf(stderr, "rank %d: %s\n", rank, ccomGetLastError(nullptr));
  if (::write(pipe, &report, sizeof report) != sizeof report) return 9;
  ccomCommDestroy(comm);
  return works ? 0 : 2;
}

uint64_t loopback_bytes() {
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find("lo:");
    if (at != std::string::npos) return std::strtoull(line.c_str() + at + 3, nullptr, 10);
  }
  return 0;
}

double seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int start_rank(int rank, int ranks, int hosts, const std::string& url, const int* pipes) {
  const int child = ::fork();
  if (child != 0) return child;
  ::close(pipes[0]);
  if (hosts > 1) ::setenv("CCOM_HOSTID", ("host" + std::to_string(rank * hosts / ranks)).c_str(), 1);
  const std::string texts[] = {std::to_string(rank), std::to_string(ranks), url, std::to_string(pipes[1])};
  ::execl("/proc/self/exe", "start_cost", texts[0].c_str(), texts[1].c_str(), texts[2].c_str(), texts[3].c_str(),
          nullptr);
  std::_Exit(127);
}

void print(const std::vector<Report>& all, int hosts, int64_t launch_ns, uint64_t bytes) {
  int64_t begin_ns = INT64_MAX, met_ns = 0, most_kb = 0, most_fds = 0, fds_of_0 = 0;
  double pss_kb = 0, private_kb = 0;
  for (const Report& each : all) {
    begin_ns = std::min(begin_ns, each.begin_ns);
    met_ns = std::max(met_ns, each.met_ns);
    most_kb = std::max(most_kb, each.pss_kb);
    most_fds = std::max(most_fds, each.fds);
    pss_kb += static_cast<double>(each.pss_kb) / static_cast<double>(all.size());
    private_kb += static_cast<double>(each.private_kb) / static_cast<double>(all.size());
    if (each.rank == 0) fds_of_0 = each.fds;
  }
  std::printf(
      "{\"ranks\": %zu, \"hosts\": %d, \"launch_s\": %.2f, \"start_s\": %.2f, \"cpu_s\": %.2f, "
      "\"pss_kb\": [%.0f, %lld], \"private_kb\": %.0f, \"fds\": [%lld, %lld], \"lo_mb\": %.1f}\n",
      all.size(), hosts, static_cast<double>(met_ns - launch_ns) / 1e9, static_cast<double>(met_ns - begin_ns) / 1e9,
      seconds_of_children(), pss_kb, static_cast<long long>(most_kb), private_kb, static_cast<long long>(most_fds),
      static_cast<long long>(fds_of_0), static_cast<double>(bytes) / 1e6);
}

int start_all(int ranks, int hosts) {
  char folder[] = "/tmp/ccom-start-XXXXXX";
  int pipes[2];
  if (::mkdtemp(folder) == nullptr || ::pipe(pipes) != 0) return 3;
  const std::string url = "file://" + std::string(folder) + "/id";
  const uint64_t bytes = loopback_bytes();
  const int64_t launch_ns = now_ns();
  int failed = 0;
  for (int rank = 0; rank < ranks; ++rank)
    if (start_rank(rank, ranks, hosts, url, pipes) < 0) failed = 3;
  ::close(pipes[1]);
  std::vector<Report> all;
  for (Report report; ::read(pipes[0], &report, sizeof report) == sizeof report;) {
    all.push_back(report);
    failed |= report.failed;
  }
  const uint64_t crossed = loopback_bytes() - bytes;
  while (::wait(nullptr) > 0) {
  }
  ::unlink((std::string(folder) + "/id").c_str());
  ::rmdir(folder);
  if (failed != 0 || all.size() != static_cast<size_t>(ranks)) return 2;
  print(all, hosts, launch_ns, crossed);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5) return run_rank(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], std::atoi(argv[4]));
  const int ranks = argc == 3 ? std::atoi(argv[1]) : 0, hosts = argc == 3 ? std::atoi(argv[2]) : 0;
  if (ranks < 1 || hosts < 1 || hosts > ranks) {
    std::fprintf(stderr, "usage: start_cost RANKS HOSTS\n");
    return 3;
  }
  return start_all(ranks, hosts);
}

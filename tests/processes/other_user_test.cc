// SPDX-License-Identifier: Apache-2.0
//
// Another user of the host against everything that a job has there: unix sockets, ports, files, what /proc shows; names
// that it has taken before the job came to use them; the rendezvous at a loopback address. It gets in nowhere, and the
// job works or says what is in its way. The whole test runs in namespaces of its own. Only for root.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/secret.h"
#include "tests/harness/effort.h"
#include "tests/harness/paths.h"
#include "tests/harness/processes.h"
#include "tests/harness/waiting.h"
#include "tests/processes/isolated.h"
#include "tests/processes/stranger.h"
#include "tests/processes/transports.h"

namespace ccom {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto kPatience = 60s;
// Where everybody may make files: the job's files and folders are here, too.
const std::string place = "/tmp/place";
const std::string owners_folder = "/tmp/owner", strangers_folder = "/tmp/stranger";

// Why it cannot be done here.
const std::string& obstacle() {
  static const std::string found = [] {
    std::string why = isolate();
    if (why.empty() && std::system("setpriv --version >/dev/null 2>&1") != 0) why = "setpriv is missing";
    return why;
  }();
  return found;
}

void make_folder(const std::string& path, uid_t owner, mode_t mode) {
  ASSERT_TRUE(::mkdir(path.c_str(), mode) == 0 && ::chmod(path.c_str(), mode) == 0 &&
              ::chown(path.c_str(), owner, owner) == 0);
}

class OtherUser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!obstacle().empty()) GTEST_SKIP() << obstacle();
    ::umask(0);  // what is kept from others must not depend on it
    make_folder(place, 0, 01777);
    make_folder(owners_folder, kOwner, 0700);
    make_folder(strangers_folder, kStranger, 0777);
  }
  void TearDown() override {
    for (const fs::directory_entry& entry : fs::directory_iterator("/tmp"))
      if (entry.path() != "/tmp/build") fs::remove_all(entry.path());
  }

  // Ranks as that user.
  static Job job(uid_t user, int nranks, std::vector<std::string> words, const Job::Environment& added,
                 const std::string& transport = "shm") {
    const std::string id = std::to_string(user);
    std::vector<std::string> arguments{"--reuid=" + id, "--regid=" + id, "--clear-groups", "--inh-caps=-all",
                                       seen_by_all(program("rank_program"))};
    arguments.insert(arguments.end(), words.begin(), words.end());
    return Job("/usr/bin/setpriv", nranks, arguments, [&](int rank) {
      Job::Environment all = added;
      all.merge(environment_for(transport, rank));
      all.insert({{"CCOM_URL", "file://" + place + "/id"},
                  {"CCOM_SOCKET_IFNAME", "lo"},
                  {"CCOM_INIT_TIMEOUT_MS", "30000"},
                  {"TMPDIR", place},
                  {"XDG_RUNTIME_DIR", place}});
      return all;
    });
  }
  static void show(StrangerReport& report, const Job& job, int nranks) {
    for (int rank = 0; rank < nranks; ++rank) report.ranks[static_cast<size_t>(rank)] = job.pid(rank);
  }
};

// ---- the sweep

class SweptJob : public OtherUser, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports, SweptJob, ::testing::Values("shm", "mixed", "tcp"),
                         [](const auto& kind) { return std::string(kind.param); });

// As often as it takes to find everything that exists for a moment only.
TEST_P(SweptJob, IsNotEnteredWhileItStarts) {
  constexpr int kRanks = 4;
  const int at_least = is_long() ? 100 : 2, at_most = 300;
  const bool has_sockets = GetParam() != std::string("tcp");
  Stranger stranger;
  StrangerReport& report = stranger.report();
  const auto has_seen_all = [&] {
    return report.ports > 0 && report.files > 0 && report.processes > 0 && (report.sockets > 0 || !has_sockets);
  };
  int starts = 0;
  for (; starts < at_least || (starts < at_most && !has_seen_all()); ++starts) {
    Job started = job(kOwner, kRanks, {"end", "destroy"}, {}, GetParam());
    show(report, started, kRanks);
    ASSERT_TRUE(started.finish(kPatience)) << started.transcript();
    for (int rank = 0; rank < kRanks; ++rank) ASSERT_NE(started.line(rank, "ended 0"), "") << started.transcript();
  }
  EXPECT_EQ(stranger.stop(), "");
  EXPECT_TRUE(has_seen_all()) << report.sockets << " sockets, " << report.ports << " ports, " << report.files
                              << " files, " << report.processes << " processes";
  RecordProperty("starts", starts);
}

TEST_P(SweptJob, IsNotEnteredWhileItRuns) {
  constexpr int kRanks = 4;
  Job running = job(kOwner, kRanks, {"loop", "65536"}, {}, GetParam());
  ASSERT_TRUE(running.wait_for("ready", {0, 1, 2, 3}, kPatience)) << running.transcript();
  Stranger stranger;
  StrangerReport& report = stranger.report();
  show(report, running, kRanks);
  EXPECT_TRUE(wait_until([&report] { return report.sweeps >= 5; }));
  EXPECT_EQ(stranger.stop(), "");
  EXPECT_GT(report.processes, 0);
  EXPECT_EQ(report.ports, 0) << "somebody listens";
  EXPECT_EQ(report.sockets, 0);
  EXPECT_FALSE(running.wait_for("failed", {0}, 0ms)) << running.transcript();
}

// ---- names that are taken

std::string folder_of_launch() {
  std::string name = place + "/ccom-" + std::to_string(kOwner) + "-";
  const Secret digest = Secret::from_text("ompi taken");
  for (const uint8_t byte : digest.bytes().first(8)) {
    for (const int digit : {byte >> 4, byte & 15}) name.push_back("0123456789abcdef"[digit]);
  }
  return name;
}

struct Taken {
  const char* name;
  std::string path;
  Job::Environment environment;
};
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's
void PrintTo(const Taken& taken, std::ostream* out) { *out << taken.path; }

const std::vector<Taken>& taken_names() {
  static const std::vector<Taken> all{
      {"IdFile", place + "/id", {}},
      {"LaunchFolder",
       folder_of_launch(),
       {{"CCOM_URL", ""},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
        {"PMIX_NAMESPACE", "taken"}}},
      {"UserSecret", "/tmp/ccom-user-" + std::to_string(kOwner), {{"CCOM_URL", "tcp://127.0.0.1:4711"}}}};
  return all;
}

// What a stranger puts at a path. The links' ends are a folder of its own, and one of the job's user.
bool put(const std::string& kind, const std::string& path) {
  if (kind == "file") return std::ofstream(path).put('x').good();
  if (kind == "folder") return ::mkdir(path.c_str(), 0777) == 0;
  if (kind == "fifo") return ::mkfifo(path.c_str(), 0666) == 0;
  if (kind == "own link") return ::symlink(strangers_folder.c_str(), path.c_str()) == 0;
  if (kind == "foreign link") return ::symlink(owners_folder.c_str(), path.c_str()) == 0;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

constexpr const char* kKinds[] = {"file", "folder", "fifo", "own link", "foreign link", "socket"};

class TakenName : public OtherUser, public ::testing::WithParamInterface<Taken> {};
INSTANTIATE_TEST_SUITE_P(Names, TakenName, ::testing::ValuesIn(taken_names()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(TakenName, IsAnErrorThatSaysSoOnAllRanks) {
  const std::string& path = GetParam().path;
  for (const std::string kind : kKinds) {
    SCOPED_TRACE(kind);
    ASSERT_EQ(run_as(kStranger, [&] { return put(kind, path) ? 0 : 1; }), 0);
    Job::Environment environment = GetParam().environment;
    Job hindered = job(kOwner, 2, {"end", "destroy"}, environment);
    ASSERT_TRUE(hindered.finish(kPatience)) << hindered.transcript();
    for (const int rank : {0, 1}) {
      EXPECT_THAT(hindered.line(rank, "init"), HasSubstr(path)) << hindered.transcript();
      EXPECT_THAT(hindered.line(rank, "init"), AnyOf(HasSubstr("belongs to user 65534"), HasSubstr("symbolic link"),
                                                     HasSubstr("is not a"), HasSubstr("Permission denied")));
    }
    EXPECT_TRUE(fs::is_empty(owners_folder));
    EXPECT_TRUE(fs::is_empty(strangers_folder));
    fs::remove_all(path);
  }
}

// Folders with the names of abandoned ones, which a job removes if they are its user's. Through links it would remove
// its user's own files.
TEST_F(OtherUser, CannotHaveOurFilesRemovedAsAbandonedOnes) {
  for (const char* name : {"id", "s", "secret"}) std::ofstream(owners_folder + "/" + name) << name;
  const std::string prefixes[] = {place + "/ccom-segment-aaaaa",
                                  folder_of_launch().substr(0, folder_of_launch().size() - 1)};
  const auto take_all = [&] {
    char last = 'a';
    for (const std::string& prefix : prefixes)
      for (const char* kind : kKinds)
        if (!put(kind, prefix + last++)) return 1;
    return 0;
  };
  ASSERT_EQ(run_as(kStranger, take_all), 0);
  Job::Environment environment = taken_names()[1].environment;
  environment["PMIX_NAMESPACE"] = "another";
  Job started = job(kOwner, 2, {"end", "destroy"}, environment);
  ASSERT_TRUE(started.finish(kPatience)) << started.transcript();
  for (const int rank : {0, 1}) EXPECT_NE(started.line(rank, "ended 0"), "") << started.transcript();
  for (const char* name : {"id", "s", "secret"}) EXPECT_TRUE(fs::exists(owners_folder + "/" + name)) << name;
}

// ---- the rendezvous at a loopback address, without a secret

const Job::Environment loopback{{"CCOM_URL", "tcp://127.0.0.1:4711"}};

// A rank 1 of a stranger's beside those of the job, at the same url.
TEST_F(OtherUser, IsNoRankOfAJobAtALoopbackAddress) {
  Job::Environment environment = loopback;
  environment["CCOM_INIT_TIMEOUT_MS"] = "3000";
  environment["CCOM_RANK"] = "1";
  environment["CCOM_NRANKS"] = "2";
  Job strangers = job(kStranger, 1, {"end", "destroy"}, environment);
  Job started = job(kOwner, 2, {"end", "destroy"}, loopback);
  ASSERT_TRUE(started.finish(kPatience)) << started.transcript();
  for (const int rank : {0, 1}) EXPECT_NE(started.line(rank, "ended 0"), "") << started.transcript();
  ASSERT_TRUE(strangers.finish(kPatience)) << strangers.transcript();
  EXPECT_NE(strangers.line(0, "init"), "") << strangers.transcript();
}

bool somebody_listens() {
  std::ifstream list("/proc/net/tcp");
  const std::string all{std::istreambuf_iterator<char>(list), {}};
  return all.find("0100007F:1267 00000000:0000 0A") != std::string::npos;  // port 4711
}

// A stranger was there first, as rank 0.
TEST_F(OtherUser, CanOnlyKeepTheJobFromAPortThatItHasTaken) {
  Job::Environment environment = loopback;
  environment["CCOM_NRANKS"] = "2";
  Job stranger = job(kStranger, 1, {"end", "destroy"}, environment);
  ASSERT_TRUE(wait_until(somebody_listens));
  environment["CCOM_INIT_TIMEOUT_MS"] = "2000";
  Job hindered = job(kOwner, 2, {"end", "destroy"}, environment);
  ASSERT_TRUE(hindered.finish(kPatience)) << hindered.transcript();
  EXPECT_THAT(hindered.line(0, "init"), HasSubstr("127.0.0.1:4711: listen: Address already in use"));
  EXPECT_THAT(hindered.line(1, "init"), HasSubstr("127.0.0.1:4711 does not hold this job's secret"));
}

}  // namespace
}  // namespace ccom

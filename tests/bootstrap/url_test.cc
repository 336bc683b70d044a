// SPDX-License-Identifier: Apache-2.0
//
// Ids from urls: ranks as threads meet through files, host:port and launchers' environments; files and secrets that
// others could have read or written are refused, and old files are not mistaken for new ones.
#include "bootstrap/url.h"

#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <map>

#include "base/owned_folder.h"
#include "base/private_file.h"
#include "bootstrap/job_secret.h"
#include "bootstrap/rendezvous_servers.h"
#include "launch_variables.h"
#include "test_rendezvous.h"

namespace ccom {
namespace {

using namespace ccom::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

MakeId make_id() {
  return [] { return create_unique_id("lo", {}, soon()); };
}
Result<UniqueId> no_id() { return error(Code::InternalError, "this rank must not make an id"); }

// All ranks get their ids from `url` and gather once. Returns rank 0's id.
UniqueId meet(const std::string& url, int nranks, const EnvironmentLookup& environment = process_environment) {
  UniqueId id;
  run_ranks(nranks, [&](Rank rank) {
    const auto mine = unique_id_from_url(url, nranks, rank, soon(), rank == 0 ? make_id() : no_id, environment);
    ASSERT_TRUE(mine) << message_of(mine);
    if (rank == 0) id = *mine;
    const auto rendezvous = value_of(connect_rendezvous(*mine, nranks, rank, soon()));
    const auto parts = value_of(rendezvous->all_gather("addresses", std::to_string(rank), soon()));
    for (int of = 0; of < nranks; ++of) EXPECT_EQ(parts[static_cast<size_t>(of)], std::to_string(of));
  });
  return id;
}

// Until the server, which has heard of the last rank's leave by now, is through with its clean-up.
void wait_for_end(const UniqueId& id) {
  std::atomic<bool> has_ended = false;
  when_rendezvous_ends(id, [&has_ended] {
    has_ended = true;
    has_ended.notify_all();
  });
  has_ended.wait(false);
}

std::string loopback_url() {
  const TestServer hosted = start_test_server();  // for a port that is free a moment later
  return "tcp://127.0.0.1:" + std::to_string(hosted.id.port);
}

void write_file(const std::string& path, std::string_view contents, mode_t mode) {
  std::ofstream(path) << contents;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

TEST(FileUrl, BringsRanksTogetherAndLeavesNothing) {
  const TemporaryFolder folder;
  wait_for_end(meet("file://" + folder / "id", 4));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FileUrl, CanBeUsedAgain) {
  const TemporaryFolder folder;
  for (int round = 0; round < 3; ++round) meet("file://" + folder / "id", 3);
}

TEST(FileUrl, KeepsTheFilePrivate) {
  const TemporaryFolder folder;
  const auto id = value_of(unique_id_from_url("file://" + folder / "id", 2, 0, soon(), make_id()));
  struct stat info {};
  ASSERT_EQ(::lstat((folder / "id").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(info.st_size, 128);
  run_ranks(2, [&](Rank rank) { EXPECT_TRUE(connect_rendezvous(id, 2, rank, soon())); });
}

// The stale id names a port where nobody, or somebody with another secret, listens.
TEST(FileUrl, IsNotFooledByTheFileOfADeadJob) {
  for (const bool is_port_taken : {false, true}) {
    const TemporaryFolder folder;
    TestServer other = start_test_server();
    UniqueId stale = other.id;
    stale.secret = Secret::random();
    if (!is_port_taken) other.server.reset();
    const auto packed = *pack(stale);
    write_file(folder / "id", {packed.data(), packed.size()}, 0600);
    std::atomic<bool> reader_runs = false;
    std::thread reader([&] {
      reader_runs = true;
      reader_runs.notify_all();
      const auto id = unique_id_from_url("file://" + folder / "id", 2, 1, soon(), no_id);
      ASSERT_TRUE(id) << message_of(id);
      EXPECT_NE(id->communicator, stale.communicator);
      EXPECT_TRUE(connect_rendezvous(*id, 2, 1, soon()));
    });
    reader_runs.wait(false);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that it usually reads the old file first
    const auto id = value_of(unique_id_from_url("file://" + folder / "id", 2, 0, soon(), make_id()));
    EXPECT_TRUE(connect_rendezvous(id, 2, 0, soon()));
    reader.join();
  }
}

// The old server runs and holds the secret, but this rank has been there.
TEST(FileUrl, IsNotFooledByTheFileOfAJobThatStillRuns) {
  const TemporaryFolder folder;
  const auto old = value_of(unique_id_from_url("file://" + folder / "id", 2, 0, soon(), make_id()));
  const auto stuck = value_of(connect_rendezvous(old, 2, 1, soon()));
  const Status failure = error_of(unique_id_from_url("file://" + folder / "id", 2, 1, Deadline::after_ms(2000), no_id));
  EXPECT_THAT(failure.message(), AllOf(HasSubstr("older job"), HasSubstr("rank 1 joined twice")));
  meet("file://" + folder / "id", 2);
  EXPECT_TRUE(connect_rendezvous(old, 2, 0, soon()));  // lets the old rendezvous end
}

// One of them has looked for the file before, one comes later and finds the error there.
TEST(FileUrl, TellsAllWhyRankZeroHasFailed) {
  const TemporaryFolder folder;
  const std::string url = "file://" + folder / "id";
  const auto ends_with_it = [&](Rank rank) {
    const auto start = Clock::now();
    const auto id = unique_id_from_url(url, 3, rank, Deadline::after(std::chrono::minutes(2)), no_id);
    EXPECT_LT(Clock::now() - start, std::chrono::minutes(1));
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code(), Code::ConfigError);
    EXPECT_THAT(id.error().message(), AllOf(HasSubstr("rank 0 has failed"), HasSubstr("there is no interface eth7")));
    EXPECT_THAT(id.error().peers(), ::testing::ElementsAre(0));
    EXPECT_EQ(id.error().cure(), "name another one");
  };
  std::thread early([&] { ends_with_it(1); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it waits by now
  const auto none = unique_id_from_url(url, 3, 0, soon(), [] {
    return Result<UniqueId>(error(Code::ConfigError, "there is no interface eth7").with_cure("name another one"));
  });
  EXPECT_FALSE(none);
  early.join();
  ends_with_it(2);
}

TEST(FileUrl, IsNotFooledByTheFailureOfAnEarlierJob) {
  const TemporaryFolder folder;
  const std::string url = "file://" + folder / "id";
  EXPECT_FALSE(unique_id_from_url(url, 2, 0, soon(), no_id));
  EXPECT_FALSE(fs::is_empty(folder.path()));
  std::thread reader([&] {
    const auto id = unique_id_from_url(url, 2, 1, soon(), no_id);
    ASSERT_TRUE(id) << message_of(id);
    EXPECT_TRUE(connect_rendezvous(*id, 2, 1, soon()));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it waits by now
  const auto id = value_of(unique_id_from_url(url, 2, 0, soon(), make_id()));
  EXPECT_TRUE(connect_rendezvous(id, 2, 0, soon()));
  reader.join();
  wait_for_end(id);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(FileUrl, SaysThatRankZeroIsLate) {
  const TemporaryFolder folder;
  const Status failure = error_of(unique_id_from_url("file://" + folder / "id", 2, 1, Deadline::after_ms(100), no_id));
  EXPECT_EQ(failure.code(), Code::Timeout);
  EXPECT_THAT(failure.message(), HasSubstr(folder / "id"));
  EXPECT_THAT(failure.peers(), ::testing::ElementsAre(0));
}

TEST(FileUrl, RefusesFilesThatOthersCouldHaveTouched) {
  const TemporaryFolder folder;
  const auto packed = *pack(start_test_server().id);
  write_file(folder / "open", {packed.data(), packed.size()}, 0644);
  write_file(folder / "good", {packed.data(), packed.size()}, 0600);
  fs::create_symlink(folder / "good", folder / "link");
  fs::create_directory(folder / "folder");
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  write_file(folder / "long", std::string(8193, 'x'), 0600);
  for (const auto& [name, reason] : std::map<std::string, std::string>{{"open", "mode 0644"},
                                                                       {"link", "symbolic link"},
                                                                       {"folder", "not a regular file"},
                                                                       {"pipe", "not a regular file"},
                                                                       {"long", "exceeds 8192 bytes"}}) {
    const Status failure = error_of(unique_id_from_url("file://" + folder / name, 2, 1, soon(), no_id));
    EXPECT_EQ(failure.code(), Code::ConfigError) << name;
    EXPECT_THAT(failure.message(), HasSubstr(reason));
  }
  for (const std::string name : {"link", "folder", "pipe"}) {
    const Status failure = error_of(unique_id_from_url("file://" + folder / name, 2, 0, soon(), no_id));
    EXPECT_EQ(failure.code(), Code::ConfigError) << name;
  }
  EXPECT_TRUE(fs::exists(folder / "good"));
}

// All ranks make the folder of a launched job, and rank 0 removes those without owners, this one too.
TEST(PrivateFolder, MayBeRemovedWhileItIsMade) {
  const TemporaryFolder place;
  const std::string folder = place / "job";
  std::atomic<bool> is_over = false;
  std::jthread removing([&] {
    while (!is_over) ::rmdir(folder.c_str());
  });
  for (int i = 0; i < 20000; ++i) {
    EXPECT_EQ(make_private_folder(folder).message(), "");
  }
  is_over = true;
}

// A rank 0 that is killed while it takes the file of an earlier job has renamed it.
TEST(PrivateFile, OfAProcessThatWasKilledWhileItTookItIsRemoved) {
  const TemporaryFolder folder;
  for (const char* name : {"id.old-17", "id.old-", "id.old-x1", "other.old-17"}) write_file(folder / name, "x", 0600);
  const auto taken = take_private_file(folder / "id", 10);
  ASSERT_TRUE(taken.has_value());
  EXPECT_FALSE(taken->has_value());
  EXPECT_FALSE(fs::exists(folder / "id.old-17"));
  for (const char* name : {"id.old-", "id.old-x1", "other.old-17"}) EXPECT_TRUE(fs::exists(folder / name)) << name;
}

TEST(PrivateFolder, IsRefusedIfOthersCanEnter) {
  const TemporaryFolder folder;
  EXPECT_TRUE(make_private_folder(folder / "new").is_ok());
  EXPECT_TRUE(make_private_folder(folder / "new").is_ok());
  fs::permissions(folder / "new", fs::perms::owner_all | fs::perms::group_read);
  EXPECT_THAT(make_private_folder(folder / "new").message(), HasSubstr("mode 0740"));
  fs::create_directory_symlink(folder / "new", folder / "link");
  EXPECT_THAT(make_private_folder(folder / "link").message(), HasSubstr("symbolic link"));
}

class TcpUrl : public ::testing::Test {
 protected:
  const ScopedVariable no_secret_{"CCOM_SECRET", nullptr};
  const ScopedVariable no_file_{"CCOM_SECRET_FILE", nullptr};
};

TEST_F(TcpUrl, BringsRanksTogetherOnLoopbackWithoutASecret) { meet(loopback_url(), 4); }

TEST_F(TcpUrl, BringsRanksTogetherByName) {
  const std::string url = loopback_url();
  meet("tcp://localhost" + url.substr(url.rfind(':')), 2);
}

// Rank 1 may come back before rank 2 has left the first rendezvous: it waits for the second one.
TEST_F(TcpUrl, CanBeUsedAgainAtOnce) {
  const std::string url = loopback_url();
  run_ranks(3, [&](Rank rank) {
    for (int round = 0; round < 4; ++round) {
      const auto id = value_of(unique_id_from_url(url, 3, rank, soon(), no_id));
      const auto rendezvous = value_of(connect_rendezvous(id, 3, rank, soon()));
      const auto parts = value_of(rendezvous->all_gather("round", std::to_string(round), soon()));
      for (const std::string& part : parts) EXPECT_EQ(part, std::to_string(round));
    }
  });
}

TEST_F(TcpUrl, NeedsASecretBeyondLoopback) {
  const Status without = error_of(unique_id_from_url("tcp://192.0.2.1:4100", 2, 1, soon(), no_id));
  EXPECT_EQ(without.code(), Code::ConfigError);
  EXPECT_THAT(without.cure(), AllOf(HasSubstr("CCOM_SECRET_FILE"), HasSubstr("CCOM_SECRET"), HasSubstr("loopback")));
  const ScopedVariable secret("CCOM_SECRET", "a-secret-of-this-test");
  const auto with = value_of(unique_id_from_url("tcp://192.0.2.1:4100", 2, 1, soon(), no_id));
  EXPECT_EQ(with.endpoint(), "192.0.2.1:4100");
  EXPECT_TRUE(with.rank0_serves);
}

TEST_F(TcpUrl, GivesDifferentSecretsForDifferentPasswordsAndFiles) {
  const TemporaryFolder folder;
  const auto secret_now = [&] {
    const auto id = unique_id_from_url("tcp://127.0.0.1:4100", 2, 1, soon(), no_id);
    EXPECT_TRUE(id) << message_of(id);
    const auto bytes = id->secret.bytes();
    return std::vector<uint8_t>(bytes.begin(), bytes.end());
  };
  const auto none = secret_now();
  EXPECT_EQ(secret_now(), none);
  {
    const ScopedVariable secret("CCOM_SECRET", "a-secret-of-this-test");
    EXPECT_NE(secret_now(), none);
  }
  write_file(folder / "secret", "another-secret-of-this-test", 0600);
  const ScopedVariable file("CCOM_SECRET_FILE", (folder / "secret").c_str());
  EXPECT_NE(secret_now(), none);
}

// A table of guesses for one port serves no other one. Ranks need not write the host in the same way.
TEST_F(TcpUrl, DerivesKeysThatBelongToItsPortAndGenerationAlone) {
  const ScopedVariable secret("CCOM_SECRET", "a-secret-of-this-test");
  const auto job_key = [](uint64_t salt) {
    const Secret key = **job_secret(salt);
    return std::vector<uint8_t>(key.bytes().begin(), key.bytes().end());
  };
  const auto id_of = [](const char* url, const char* restarts = nullptr) {
    const ScopedVariable generation("TORCHELASTIC_RESTART_COUNT", restarts);
    const ScopedVariable where("CCOM_URL", url);
    auto id = unique_id_from_url("env://", 2, 1, soon(), no_id);
    EXPECT_TRUE(id) << message_of(id);
    return *id;
  };
  const UniqueId one = id_of("tcp://127.0.0.1:4100");
  for (const UniqueId& other : {id_of("tcp://127.0.0.1:4101"), id_of("tcp://127.0.0.1:4100", "1")}) {
    EXPECT_NE(other.salt, one.salt);
    EXPECT_NE(job_key(other.salt), job_key(one.salt)) << "before anything else is derived";
    EXPECT_FALSE(std::ranges::equal(other.secret.bytes(), one.secret.bytes()));
  }
  for (const char* url : {"tcp://localhost:4100", "tcp://127.0.0.2:4100"}) {
    const UniqueId same = id_of(url);
    EXPECT_TRUE(std::ranges::equal(same.secret.bytes(), one.secret.bytes())) << url;
  }
}

TEST_F(TcpUrl, RefusesSecretFilesThatOthersCouldHaveTouched) {
  const TemporaryFolder folder;
  write_file(folder / "good", "a-secret-of-this-test", 0600);
  write_file(folder / "readable", "a-secret-of-this-test", 0640);
  write_file(folder / "empty", "", 0600);
  fs::create_symlink(folder / "good", folder / "link");
  for (const auto& [name, reason] : std::map<std::string, std::string>{{"readable", "mode 0640"},
                                                                       {"empty", "a secret of 0 bytes"},
                                                                       {"link", "symbolic link"},
                                                                       {"absent", "no such file"}}) {
    const ScopedVariable file("CCOM_SECRET_FILE", (folder / name).c_str());
    const Status failure = error_of(unique_id_from_url("tcp://127.0.0.1:4100", 2, 1, soon(), no_id));
    EXPECT_EQ(failure.code(), Code::ConfigError) << name;
    EXPECT_THAT(failure.message(), AllOf(HasSubstr("CCOM_SECRET_FILE"), HasSubstr(reason)));
  }
  const ScopedVariable file("CCOM_SECRET_FILE", (folder / "good").c_str());
  EXPECT_TRUE(unique_id_from_url("tcp://127.0.0.1:4100", 2, 1, soon(), no_id));
  const ScopedVariable both("CCOM_SECRET", "x");
  EXPECT_THAT(message_of(unique_id_from_url("tcp://127.0.0.1:4100", 2, 1, soon(), no_id)), HasSubstr("both"));
}

TEST_F(TcpUrl, RefusesSecretsThatCanBeGuessed) {
  for (const char* guessable : {"x", "open sesame", "0123456789abcde", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                "abababababababababababab"}) {
    const ScopedVariable secret("CCOM_SECRET", guessable);
    const Status failure = error_of(unique_id_from_url("tcp://127.0.0.1:4100", 2, 1, soon(), no_id));
    EXPECT_EQ(failure.code(), Code::ConfigError) << guessable;
    EXPECT_THAT(failure.message(), AllOf(HasSubstr("CCOM_SECRET"), HasSubstr("can be guessed")));
    EXPECT_THAT(failure.message(), ::testing::Not(HasSubstr(std::string(guessable) + ":")))
        << "the error shows the secret";
    EXPECT_THAT(failure.cure(), HasSubstr("/dev/urandom"));
  }
}

TEST_F(TcpUrl, SaysWhatIsWrongWithTheUrl) {
  for (const auto& [url, reason] : std::map<std::string, std::string>{{"tcp://node7", "missing port"},
                                                                      {"tcp://node7:0", "port"},
                                                                      {"tcp://node7:66000", "port"},
                                                                      {"tcp://node7:41x", "port"},
                                                                      {"tcp://:4100", "missing or overlong host"},
                                                                      {"tcp://fd00::7:4100", "brackets"},
                                                                      {"tcp://0.0.0.0:4100", "not a wildcard"},
                                                                      {"tcp://[::]:4100", "not a wildcard"},
                                                                      {"http://node7:80", "expected file"},
                                                                      {"file://relative", "expected file"},
                                                                      {"file:///folder/", "expected file"},
                                                                      {"", "expected file"}}) {
    EXPECT_THAT(message_of(unique_id_from_url(url, 2, 1, soon(), no_id)), HasSubstr(reason)) << url;
  }
  EXPECT_EQ(unique_id_from_url("tcp://127.0.0.1:1", 2, 2, soon(), no_id).error().code(), Code::InvalidArgument);
  EXPECT_TRUE(unique_id_from_url("tcp://[::1]:4100", 2, 1, soon(), no_id));
}

TEST_F(TcpUrl, SaysThatAHostIsUnknown) {
  const auto id = unique_id_from_url("tcp://no-such-host.invalid:4100", 2, 1, Deadline::after_ms(5000), no_id);
  EXPECT_THAT(message_of(id), HasSubstr("look up host 'no-such-host.invalid'"));
}

// ---- env://

TEST_F(TcpUrl, EnvironmentOfTorchrunGivesAnAddress) {
  const Variables variables{
      {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29517"}, {"TORCHELASTIC_RUN_ID", std::to_string(random_u64())}};
  const EnvironmentLookup environment = lookup(variables);
  const auto id = value_of(unique_id_from_url("env://", 2, 1, soon(), no_id, environment));
  EXPECT_EQ(id.endpoint(), "127.0.0.1:22517");
}

TEST_F(TcpUrl, RestartedWorkersCannotMeetAnOldGeneration) {
  Variables variables{{"NEURON_RT_ROOT_COMM_ID", loopback_url().substr(6)}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
  const EnvironmentLookup environment = lookup(variables);
  const auto old = value_of(unique_id_from_url("env://", 2, 0, soon(), no_id, environment));
  const auto old_rank0 = value_of(connect_rendezvous(old, 2, 0, soon()));
  variables["TORCHELASTIC_RESTART_COUNT"] = "1";
  const auto restarted = value_of(unique_id_from_url("env://", 2, 1, soon(), no_id, environment));
  const auto refused = connect_rendezvous(restarted, 2, 1, soon());
  EXPECT_THAT(message_of(refused), HasSubstr("does not hold this job's secret"));
  EXPECT_TRUE(connect_rendezvous(old, 2, 1, soon()));  // lets the rendezvous end
}

// All ranks on one host; folder: for temporary files.
Variables of_mpirun(const std::string& ranks, const std::string& folder) {
  return {{"OMPI_COMM_WORLD_SIZE", ranks},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", ranks},
          {"PMIX_NAMESPACE", "test"},
          {"TMPDIR", folder}};
}

TEST(EnvironmentUrl, OfMpirunOnOneHostUsesAPrivateFolder) {
  const TemporaryFolder folder;
  const Variables variables = of_mpirun("3", folder.path());
  const EnvironmentLookup environment = lookup(variables);
  wait_for_end(meet("env://", 3, environment));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// Rank 1 has made the folder, and has no lock on it: another job of the user that begins takes it for abandoned.
TEST(EnvironmentUrl, FolderMayBeRemovedByAJobThatBeginsAtTheSameTime) {
  const TemporaryFolder folder;
  const Variables variables = of_mpirun("2", folder.path());
  const EnvironmentLookup environment = lookup(variables);
  std::thread rank1([&] {
    const auto id = value_of(unique_id_from_url("env://", 2, 1, soon(), no_id, environment));
    EXPECT_TRUE(connect_rendezvous(id, 2, 1, soon()));
  });
  while (fs::is_empty(folder.path())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::string of_job = fs::directory_iterator(folder.path())->path();
  Descriptor lock = lock_folder(of_job);
  ASSERT_TRUE(lock.is_open());
  std::thread rank0([&] {
    const auto id = unique_id_from_url("env://", 2, 0, soon(), make_id(), environment);
    ASSERT_TRUE(id) << message_of(id);
    EXPECT_TRUE(connect_rendezvous(*id, 2, 0, soon()));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // it looks at the folder meanwhile
  ASSERT_EQ(::rmdir(of_job.c_str()), 0);
  lock = Descriptor();
  rank0.join();
  rank1.join();
}

TEST(EnvironmentUrl, NamesTheVariableThatIsWrong) {
  const Variables variables{{"NEURON_RT_ROOT_COMM_ID", "10.0.0.1"}};
  EXPECT_THAT(message_of(unique_id_from_url("env://", 2, 1, soon(), no_id, lookup(variables))),
              AllOf(HasSubstr("NEURON_RT_ROOT_COMM_ID"), HasSubstr("missing port")));
}

}  // namespace
}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/url.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/descriptor.h"
#include "base/log.h"
#include "base/options.h"
#include "base/owned_folder.h"
#include "base/private_file.h"
#include "base/tcp_socket.h"
#include "bootstrap/answers.h"
#include "bootstrap/grpc_client.h"
#include "bootstrap/job_secret.h"
#include "bootstrap/rendezvous.pb.h"
#include "bootstrap/rendezvous_servers.h"
#include "bootstrap/resolve.h"
#include "bootstrap/start_resources.h"
#include "bootstrap/start_wait.h"
#include "bootstrap/user_secret.h"

namespace ccom {
namespace {

using namespace std::chrono_literals;

// ---- file://

constexpr int kTries = 10;  // while other processes do the same

// A job that begins at the same time may hold the lock of a folder that has no owner yet, to remove it.
constexpr auto kMostWaitForLock = 2s;

// Nobody else removes the folder while rank 0 has its lock, and the next job of this user removes those without owners.
Result<std::shared_ptr<Descriptor>> own_private_folder(const std::string& folder) {
  auto lock = std::make_shared<Descriptor>();
  if (folder.empty()) return lock;
  const size_t slash = folder.rfind('/'), digits = folder.rfind('-') + 1;
  remove_abandoned_folders(folder.substr(0, slash), folder.substr(slash + 1, digits - slash - 1),
                           folder.size() - digits, "id");
  for (const Deadline patience = Deadline::after(kMostWaitForLock);; std::this_thread::sleep_for(1ms)) {
    CCOM_TRY(make_private_folder(folder));
    *lock = lock_folder(folder);
    if (lock->is_open() || patience.passed()) return lock;  // without it an earlier job with the same name still runs
  }
}

// A busy process may take so long to answer. The address of a dead one refuses the connection at once.
constexpr auto kMostWaitForAnswer = 2s;

// Removes the id file. A process that made it as rank 0 and still waits for its ranks, which will come to the new one,
// learns of it.
Status replace_rank0(const std::string& path, int nranks) {
  CCOM_TRY_ASSIGN(const std::optional<std::string> contents, take_private_file(path, UniqueId::kBytes));
  if (!contents || contents->size() != UniqueId::kBytes) return Status::ok();
  const auto id = unpack(std::span<const char, UniqueId::kBytes>(contents->data(), UniqueId::kBytes));
  if (id) (void)join_to_be_refused(*id, nranks, 0, Deadline::after(kMostWaitForAnswer));
  return Status::ok();
}

// Why rank 0 has made no id is told in the file, too: no two such texts are alike.
constexpr std::string_view kFailed = "ccom: rank 0 has failed ";
constexpr size_t kMostFileBytes = 8192;

void tell_failure(const std::string& path, const Status& failure) {
  const std::string contents = std::string(kFailed) + std::to_string(random_u64()) + "\n" + serialized(failure);
  if (contents.size() <= kMostFileBytes) (void)write_private_file(path, contents);  // where it can be written
}

Status failure_in(const std::string& contents, const std::string& path, Rank rank) {
  wire::Answer answer;
  Status failure;
  if (answer.ParseFromString(contents.substr(std::min(contents.find('\n'), contents.size() - 1) + 1)))
    failure = decode(answer);
  if (failure.is_ok()) failure = error(Code::RemoteError, "it does not say why");
  return std::move(failure).with_peers({0}).in("rank " + std::to_string(rank) +
                                               ": rank 0 has failed before it could write the unique id to " + path);
}

// If `folder` is not empty, it is removed with the file.
Result<UniqueId> write_id_file(const std::string& path, const std::string& folder, int nranks, const MakeId& make_id) {
  CCOM_TRY_ASSIGN(const std::shared_ptr<Descriptor> lock, own_private_folder(folder));
  // Before the id is created: the earlier a stale file is gone, the fewer ranks read it.
  CCOM_TRY(replace_rank0(path, nranks));
  CCOM_TRY_ASSIGN(UniqueId id, make_id());
  id.rank0_made = true;
  CCOM_TRY_ASSIGN(const UniqueId::Packed packed, pack(id));
  Status written = write_private_file(path, {packed.data(), packed.size()});
  for (int tries = 0; written.sys_errno() == EEXIST && tries < kTries; ++tries) {  // another rank 0's, made meanwhile
    CCOM_TRY(replace_rank0(path, nranks));
    written = write_private_file(path, {packed.data(), packed.size()});
  }
  CCOM_TRY(Status(written));
  const std::string contents(packed.data(), packed.size());
  when_rendezvous_ends(id, [path, folder, contents, lock] {
    const auto now = read_private_file(path, UniqueId::kBytes);
    if (now && *now == contents) (void)remove_private_file(path);  // otherwise it belongs to a newer job
    if (!folder.empty()) (void)::rmdir(folder.c_str());
  });
  return id;
}

Result<UniqueId> make_id_file(const std::string& path, const std::string& folder, int nranks, const MakeId& make_id) {
  Result<UniqueId> id = write_id_file(path, folder, nranks, make_id);
  if (!id) tell_failure(path, id.error());
  return id;
}

// Another number of ranks: rank 0 of an earlier job, whose file is about to be replaced, or a mistake of this one's.
constexpr auto kEarlierJob = 10s;

// Whose number of ranks is another one, and since when that is known.
struct OtherJob {
  std::string endpoint;
  Clock::time_point since;
};

// A failure that was there when this rank came may be an earlier job's, whose file is about to be replaced.
struct EarlierFailure {
  std::string contents{};
  Clock::time_point since{};
  bool has_looked = false;

  bool may_be(const std::string& now) {
    if (!std::exchange(has_looked, true)) *this = {now, Clock::now(), true};
    return now == contents && Clock::now() - since <= kEarlierJob;
  }
};

// The id in the file, if its rendezvous server expects this rank.
Result<UniqueId> try_id_file(const std::string& path, int nranks, Rank rank, Deadline deadline, RendezvousProbe& probe,
                             OtherJob& other, EarlierFailure& earlier) {
  CCOM_TRY_ASSIGN(const std::optional<std::string> contents, read_private_file(path, kMostFileBytes));
  const bool is_earlier = earlier.may_be(contents.value_or(""));
  if (!contents) return error(Code::InProgress, "rank 0 has not created it yet");
  if (contents->starts_with(kFailed)) {
    const Status failure = failure_in(*contents, path, rank);
    if (!is_earlier) return failure;
    return error(Code::InProgress, "it seems to be from an older job: %s", failure.message().c_str());
  }
  if (contents->size() != UniqueId::kBytes) return error(Code::InProgress, "it contains no unique id");
  const auto id = unpack(std::span<const char, UniqueId::kBytes>(contents->data(), UniqueId::kBytes));
  if (!id) return error(Code::InProgress, "%s", id.error().message().c_str());
  const Status answer = probe.ask(*id, deadline);
  if (!answer.is_ok() && answer.key() == ErrorKey::RanksDisagree) {
    if (other.endpoint != id->endpoint()) other = {id->endpoint(), Clock::now()};
    if (Clock::now() - other.since > kEarlierJob) {
      Status refusal = join_to_be_refused(*id, nranks, rank, deadline);
      if (!refusal.is_ok() && refusal.key() == ErrorKey::RanksDisagree) return refusal;  // else that server has ended
    }
  }
  if (!answer.is_ok()) return error(Code::InProgress, "it seems to be from an older job: %s", answer.message().c_str());
  return *id;
}

Result<UniqueId> wait_for_id_file(const std::string& path, int nranks, Rank rank, Deadline deadline) {
  std::chrono::milliseconds pause = 5ms;
  std::chrono::milliseconds timeout = 250ms;
  std::string reason;
  RendezvousProbe probe(nranks, rank);
  OtherJob other;
  EarlierFailure earlier;
  StartWait wait(start_warning_ms());
  while (true) {
    const Deadline soon = deadline.earlier(Deadline::after(timeout));
    Result<UniqueId> id = try_id_file(path, nranks, rank, soon, probe, other, earlier);
    if (id || id.error().code() != Code::InProgress) return id;
    if (reason.empty() || !deadline.passed())
      reason = id.error().message();  // an attempt cut short by the deadline gives a less useful reason
    if (deadline.passed()) {
      return error(ErrorKey::NoIdFile, "rank %d timed out waiting for rank 0 to write the unique id to %s: %s", rank,
                   path.c_str(), reason.c_str())
          .with_peers({0})
          .with_cure("check that rank 0 runs with the same url and that all hosts share this file");
    }
    if (wait.is_due())
      log(LogLevel::Warn, "rank %d has waited %.0f s for rank 0 to write the unique id to %s: %s", rank, wait.seconds(),
          path.c_str(), reason.c_str());
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, deadline.left()));
    pause = std::min<std::chrono::milliseconds>(pause * 2, 100ms);
    timeout = std::min<std::chrono::milliseconds>(timeout * 2, 4s);
  }
}

// ---- tcp://

uint64_t number_from(const Secret& secret) {
  uint64_t number = 0;
  for (const uint8_t byte : secret.bytes().first(sizeof number)) number = number << 8 | byte;
  return number;
}

Result<UniqueId> id_from_host_port(std::string_view text, const std::string& generation, Deadline deadline) {
  const Result<HostPort> parsed = parse_host_port(text);
  if (!parsed) return Status(parsed.error()).in("rendezvous");
  const HostPort& where = *parsed;
  // Not the host: ranks may write it in several ways, or see it at several addresses.
  const uint64_t salt =
      number_from(Secret::from_text("port " + std::to_string(where.port) + ", generation '" + generation + "'"));
  CCOM_TRY_ASSIGN(const std::optional<Secret> secret, job_secret(salt));
  CCOM_TRY_ASSIGN(const std::string address, resolve_host(where.host, deadline));
  if (is_wildcard_address(address)) {
    return error(Code::ConfigError, "rendezvous address %s: use one address of rank 0's host, not a wildcard",
                 where.host.c_str());
  }
  if (!secret && !is_loopback_address(address)) {
    return error(ErrorKey::NoSecret,
                 "rendezvous address %s (%s) is reachable from other hosts, but there is no job secret",
                 where.host.c_str(), address.c_str())
        .with_cure(
            "give every rank the same secret: CCOM_SECRET_FILE=PATH (mode 0600, e.g. head -c 32 /dev/urandom > PATH) "
            "or CCOM_SECRET; without one only a loopback address such as 127.0.0.1 is allowed");
  }
  Result<Secret> root = secret ? Result<Secret>(*secret) : user_secret();
  if (!root) return std::move(root).error().in("rendezvous at a loopback address without CCOM_SECRET_FILE");
  const Secret derived = root->derive("ccom tcp rendezvous, generation '" + generation + "'");
  return UniqueId{
      .address = address,
      .port = where.port,
      .communicator = number_from(derived.derive("ccom communicator number " + endpoint_text(address, where.port))),
      .secret = derived,
      .salt = salt,
      .rank0_serves = true};
}

// ---- all

struct Request {
  int nranks;
  Rank rank;
  Deadline deadline;
  const MakeId& make_id;
};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Result<UniqueId> id_from_plain_url(std::string_view url, const LaunchRendezvous& launch, const Request& request) {
  std::string_view rest = url;
  if (take_prefix(rest, "tcp://")) return id_from_host_port(rest, launch.generation, request.deadline);
  if (take_prefix(rest, "file://") && rest.size() > 1 && rest.front() == '/' && rest.back() != '/') {
    const std::string path(rest);
    if (!launch.private_folder.empty()) CCOM_TRY(make_private_folder(launch.private_folder));
    return request.rank == 0 ? make_id_file(path, launch.private_folder, request.nranks, request.make_id)
                             : wait_for_id_file(path, request.nranks, request.rank, request.deadline);
  }
  return error(Code::InvalidArgument, "url '%.*s': expected file:///path, tcp://host:port or env://",
               static_cast<int>(url.size()), url.data());
}

}  // namespace

const char* process_environment(const char* name) { return std::getenv(name); }

Result<UniqueId> unique_id_from_url(std::string_view url, int nranks, Rank rank, Deadline deadline,
                                    const MakeId& make_id, const EnvironmentLookup& environment) {
  if (nranks < 1 || rank < 0 || rank >= nranks)
    return error(Code::InvalidArgument, "invalid rank %d of %d", rank, nranks);
  CCOM_TRY(check_start_descriptors());
  const Request request{.nranks = nranks, .rank = rank, .deadline = deadline, .make_id = make_id};
  if (url != "env://") return id_from_plain_url(url, {}, request);
  CCOM_TRY_ASSIGN(const LaunchRendezvous launch, read_launch_rendezvous(environment, ::geteuid()));
  log(LogLevel::Info, "rank %d: rendezvous at %s (from %s)", rank, launch.url.c_str(), launch.origin.c_str());
  auto id = id_from_plain_url(launch.url, launch, request);
  if (!id) return std::move(id).error().in(launch.origin);
  return id;
}

}  // namespace ccom

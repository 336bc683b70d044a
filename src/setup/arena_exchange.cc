// SPDX-License-Identifier: Apache-2.0
#include "setup/arena_exchange.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/log.h"
#include "base/thread.h"
#include "setup/exchanges.pb.h"

namespace ccom {
namespace {

bool wants(const wire::ArenaOffer& offer, uint64_t number) {
  return std::ranges::find(offer.wanted(), number) != offer.wanted().end();
}

// Calls copy then.
void log_lack(const char* whose, const Status& reason) {
  log(LogLevel::Info, "buffers %s are out of reach: %s", whose, reason.message().c_str());
}

Descriptor open_file_of(int pid, int descriptor) {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(descriptor);
  return Descriptor::from([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); });
}

// 0: there is none.
uint64_t inode_of(int fd) {
  struct stat found {};
  return ::fstat(fd, &found) == 0 ? found.st_ino : 0;
}

// Whether other processes of this user may open it. /proc may number processes otherwise than this one's namespace.
bool shows_its_files(int descriptor) {
  if (::prctl(PR_GET_DUMPABLE) != 1) return false;
  const Descriptor opened = open_file_of(::getpid(), descriptor);
  return opened.is_open() && inode_of(opened.get()) == inode_of(descriptor);
}

}  // namespace

wire::ProcessMemory ArenaExchange::describe() {
  Arena* const arena = process_arena();
  wire::ProcessMemory memory;
  memory.set_arena_bytes(arena == nullptr ? 0 : arena->segment().bytes().size());
  memory.set_pid(::getpid());
  memory.set_probe(reinterpret_cast<uintptr_t>(&process_number()));
  if (arena != nullptr && shows_its_files(arena->segment().fd())) {
    memory.set_descriptor(arena->segment().fd());
    memory.set_inode(inode_of(arena->segment().fd()));
  }
  return memory;
}

wire::ArenaOffer ArenaExchange::prepare(const std::vector<Said>& ranks) {
  std::map<uint64_t, size_t> servers;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const wire::ProcessMemory& memory = *ranks[i].memory;
    const size_t server = servers.try_emplace(ranks[i].process, i).first->second;
    processes_.push_back({ranks[i].process, memory.arena_bytes(), server, memory.pid(), memory.probe(),
                          memory.has_descriptor() ? memory.descriptor() : -1, memory.inode()});
  }
  wire::ArenaOffer offer;
  for (const auto& [number, server] : servers) {
    if (number == process_number() || processes_[server].arena_bytes == 0) continue;
    if (auto known = mapped_arena(number)) {
      arenas_[number] = std::move(known);
    } else if (processes_[server].descriptor >= 0) {
      const Status opened = open(processes_[server]);
      if (!opened.is_ok()) log_lack("of another process", opened);
    } else if (Result<Descriptor> client = open_segment_client()) {
      clients_[number] = *std::move(client);
      offer.add_wanted(number);
    } else {
      log_lack("of another process", client.error());
    }
  }
  offer.set_path("");
  if (!serves() || servers.size() < 2) return offer;
  if (Result<std::unique_ptr<SegmentServer>> server = SegmentServer::create(key_)) {
    server_ = *std::move(server);
    offer.set_path(server_->path());
  } else {
    log_lack("of this process", server.error());
  }
  return offer;
}

// A hand-over to each process by each takes more time than all else of a start.
Status ArenaExchange::open(const Process& process) {
  Descriptor file = open_file_of(process.pid, process.descriptor);
  if (!file.is_open()) return system_error(errno, "open the arena of process %d", process.pid);
  if (inode_of(file.get()) != process.inode)
    return error(Code::NotSupported, "process %d has another file in the arena's place", process.pid);
  CCOM_TRY_ASSIGN(std::shared_ptr<SharedSegment> segment, SharedSegment::attach(file.release(), process.arena_bytes));
  remember_arena(process.number, segment);
  arenas_[process.number] = std::move(segment);
  return {};
}

void ArenaExchange::trade(const std::vector<const wire::ArenaOffer*>& offers, const WaitLimit& limit) {
  const auto clients =
      std::ranges::count_if(offers, [](const wire::ArenaOffer* offer) { return wants(*offer, process_number()); });
  std::jthread serving;
  if (server_ != nullptr && clients > 0) {
    const int refused = start_thread(serving, "ccom-handover", [&] { serve(static_cast<int>(clients), limit); });
    if (refused != 0) {
      log_lack("of this process", system_error(refused, "start a thread that hands them over"));
      server_.reset();  // so that nobody waits for it
    }
  }
  has_all_ = can_read_all_ = true;
  for (size_t i = 0; i < processes_.size(); ++i) {
    const Process& process = processes_[i];
    if (process.number == process_number()) continue;
    can_read_all_ &= can_read(process.pid, process.probe, process.number);
    if (process.server == i && clients_.contains(process.number)) {
      const Status fetched = fetch(process, offers[i]->path(), limit);
      if (!fetched.is_ok()) log_lack("of another process", fetched);
    }
    has_all_ &= arenas_.contains(process.number);
  }
  if (serving.joinable()) serving.join();
  server_.reset();
  has_all_ &= processes_[self_].arena_bytes > 0;
}

void ArenaExchange::serve(int clients, const WaitLimit& limit) {
  try {
    const Status served = server_->serve(process_arena()->segment(), clients, limit);
    if (!served.is_ok()) log_lack("of this process", served);
  } catch (const std::bad_alloc&) {
    log_lack("of this process", out_of_memory());
  }
  server_.reset();  // whoever has not been served is told so
}

Status ArenaExchange::fetch(const Process& process, const std::string& path, const WaitLimit& limit) {
  if (path.empty()) return error(Code::NotSupported, "that process does not hand it over");
  CCOM_TRY_ASSIGN(std::shared_ptr<SharedSegment> segment,
                  fetch_segment(std::move(clients_[process.number]), path, process.arena_bytes, key_, limit));
  remember_arena(process.number, segment);
  arenas_[process.number] = std::move(segment);
  return {};
}

std::shared_ptr<SharedSegment> ArenaExchange::arena_of(size_t local_rank) const {
  const Process& process = processes_[local_rank];
  const auto found = arenas_.find(process.number);
  if (found != arenas_.end()) return found->second;
  if (process.number != process_number() || process.arena_bytes == 0) return nullptr;
  return {std::shared_ptr<SharedSegment>(), &process_arena()->segment()};  // it lasts as long as the process
}

std::vector<LocalPeer> ArenaExchange::peers(const std::vector<size_t>& local_ranks) const {
  std::vector<LocalPeer> peers;
  for (size_t i = 0; i < (local_ranks.empty() ? processes_.size() : local_ranks.size()); ++i) {
    const size_t local_rank = local_ranks.empty() ? i : local_ranks[i];
    const Process& process = processes_[local_rank];
    const std::shared_ptr<SharedSegment> arena = arena_of(local_rank);
    peers.push_back({process.number == process_number(), arena ? arena->bytes() : Bytes(), process.pid});
  }
  return peers;
}

}  // namespace ccom

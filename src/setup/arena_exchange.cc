// SPDX-License-Identifier: Apache-2.0
#include "setup/arena_exchange.h"

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

}  // namespace

wire::ProcessMemory ArenaExchange::describe() {
  Arena* const arena = process_arena();
  wire::ProcessMemory memory;
  memory.set_arena_bytes(arena == nullptr ? 0 : arena->segment().bytes().size());
  memory.set_pid(::getpid());
  memory.set_probe(reinterpret_cast<uintptr_t>(&process_number()));
  if (const auto shown = arena != nullptr ? ShownFile::of(arena->segment().fd()) : std::nullopt) {
    memory.set_descriptor(shown->descriptor);
    memory.set_inode(shown->inode);
  }
  return memory;
}

wire::ArenaOffer ArenaExchange::prepare(const std::vector<Said>& ranks) {
  std::map<uint64_t, size_t> servers;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const wire::ProcessMemory& memory = *ranks[i].memory;
    const size_t server = servers.try_emplace(ranks[i].process, i).first->second;
    const ShownFile file{memory.pid(), memory.has_descriptor() ? memory.descriptor() : -1, memory.inode()};
    processes_.push_back({ranks[i].process, memory.arena_bytes(), server, memory.probe(), file});
  }
  wire::ArenaOffer offer;
  for (const auto& [number, server] : servers) {
    if (number == process_number() || processes_[server].arena_bytes == 0) continue;
    if (auto known = mapped_arena(number)) {
      arenas_[number] = std::move(known);
    } else if (processes_[server].file.descriptor >= 0) {
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

// A hand-over to each process by each takes more time than all else of a start, and kept descriptors are as many as the
// host has ranks.
Status ArenaExchange::open(const Process& process) {
  CCOM_TRY_ASSIGN(std::shared_ptr<SharedSegment> segment, SharedSegment::attach(process.file, process.arena_bytes));
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
    can_read_all_ &= can_read(process.file.pid, process.probe, process.number);
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
    peers.push_back({process.number == process_number(), arena ? arena->bytes() : Bytes(), process.file.pid});
  }
  return peers;
}

}  // namespace ccom

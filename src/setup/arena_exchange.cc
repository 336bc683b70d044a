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

}  // namespace

wire::ProcessMemory ArenaExchange::describe() {
  Arena* const arena = process_arena();
  wire::ProcessMemory memory;
  memory.set_arena_bytes(arena == nullptr ? 0 : arena->segment().bytes().size());
  memory.set_pid(::getpid());
  memory.set_probe(reinterpret_cast<uintptr_t>(&process_number()));
  return memory;
}

Result<wire::ArenaOffer> ArenaExchange::prepare(const std::vector<Said>& ranks) {
  std::map<uint64_t, size_t> servers;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const wire::ProcessMemory& memory = *ranks[i].memory;
    const size_t server = servers.try_emplace(ranks[i].process, i).first->second;
    processes_.push_back({ranks[i].process, memory.arena_bytes(), server, memory.pid(), memory.probe()});
  }
  wire::ArenaOffer offer;
  for (const auto& [number, server] : servers) {
    if (number == process_number() || processes_[server].arena_bytes == 0) continue;
    if (auto known = mapped_arena(number)) {
      arenas_[number] = std::move(known);
    } else {
      offer.add_wanted(number);
    }
  }
  offer.set_path("");
  if (serves() && servers.size() > 1) {
    CCOM_TRY_ASSIGN(server_, SegmentServer::create(key_));
    offer.set_path(server_->path());
  }
  return offer;
}

Status ArenaExchange::trade(const std::vector<const wire::ArenaOffer*>& offers, const WaitLimit& limit) {
  const auto clients =
      std::ranges::count_if(offers, [](const wire::ArenaOffer* offer) { return wants(*offer, process_number()); });
  Status served;
  std::jthread serving;
  if (server_ != nullptr && clients > 0) {
    const int refused = start_thread(serving, "ccom-handover", [&] {
      try {
        served = server_->serve(process_arena()->segment(), static_cast<int>(clients), limit);
      } catch (const std::bad_alloc&) {
        served = out_of_memory();
      }
    });
    if (refused != 0) served = system_error(refused, "start a thread that hands over shared memory");
  }
  has_all_ = can_read_all_ = true;
  for (size_t i = 0; i < processes_.size(); ++i) {
    const Process& process = processes_[i];
    if (process.number == process_number()) continue;
    has_all_ &= process.arena_bytes > 0;
    can_read_all_ &= can_read(process.pid, process.probe, process.number);
    if (process.server != i || !wants(*offers[self_], process.number)) continue;
    if (const Status fetched = fetch(process, offers[i]->path(), limit); !fetched.is_ok()) {
      log(LogLevel::Info, "buffers of another process are out of reach: %s", fetched.message().c_str());
      has_all_ = false;
    }
  }
  if (serving.joinable()) serving.join();
  server_.reset();
  has_all_ &= processes_[self_].arena_bytes > 0;
  return served;
}

Status ArenaExchange::fetch(const Process& process, const std::string& path, const WaitLimit& limit) {
  CCOM_TRY_ASSIGN(arenas_[process.number], fetch_segment(path, process.arena_bytes, key_, limit));
  remember_arena(process.number, arenas_[process.number]);
  return {};
}

std::vector<LocalPeer> ArenaExchange::peers() const {
  std::vector<LocalPeer> peers;
  for (const Process& process : processes_) {
    const bool same = process.number == process_number();
    const auto found = arenas_.find(process.number);
    Bytes arena;
    if (same && process.arena_bytes > 0) arena = process_arena()->segment().bytes();
    if (!same && found != arenas_.end()) arena = found->second->bytes();
    peers.push_back({same, arena, process.pid});
  }
  return peers;
}

}  // namespace ccom

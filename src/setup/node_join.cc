// SPDX-License-Identifier: Apache-2.0
#include "setup/node_join.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/log.h"
#include "node/fences.h"
#include "node/reach.h"

namespace ccom {

bool NodeJoin::has_fence() const { return AsymmetricFence::available(); }

nlohmann::json NodeJoin::introduce() const {
  Arena* const arena = process_arena();
  return {{"process", process_number()},
          {"arena", arena == nullptr ? size_t{0} : arena->segment().bytes().size()},
          {"pid", ::getpid()},
          {"probe", reinterpret_cast<uintptr_t>(&process_number())}};
}

Result<nlohmann::json> NodeJoin::prepare(const std::vector<nlohmann::json>& introductions) {
  std::map<uint64_t, size_t> speakers;
  for (size_t place = 0; place < introductions.size(); ++place) {
    const nlohmann::json& said = introductions[place];
    if (!said.is_object() || !said.value("process", nlohmann::json()).is_number_unsigned() ||
        !said.value("arena", nlohmann::json()).is_number_unsigned() ||
        !said.value("pid", nlohmann::json()).is_number_integer() ||
        !said.value("probe", nlohmann::json()).is_number_unsigned()) {
      return error(Code::InternalError, "a rank of this host introduced itself in a way that cannot be read");
    }
    const uint64_t number = said["process"];
    const size_t speaker = speakers.try_emplace(number, place).first->second;
    processes_.push_back({number, said["arena"], speaker, said["pid"], said["probe"]});
  }
  nlohmann::json wanted = nlohmann::json::array();
  for (const auto& [number, speaker] : speakers) {
    if (number == process_number() || processes_[speaker].arena_bytes == 0) continue;
    if (auto known = mapped_arena(number)) {
      arenas_[number] = std::move(known);
    } else {
      wanted.push_back(number);
    }
  }
  nlohmann::json prepared{{"wanted", wanted}, {"path", ""}};
  if (speaks() && processes_[place_].arena_bytes > 0 && speakers.size() > 1) {
    CCOM_TRY_ASSIGN(server_, SegmentServer::create(key_));
    prepared["path"] = server_->path();
  }
  return prepared;
}

Status NodeJoin::trade(const std::vector<nlohmann::json>& prepared, Deadline deadline) {
  const auto wants = [&](const nlohmann::json& said, uint64_t number) {
    return std::ranges::any_of(said.value("wanted", nlohmann::json::array()),
                               [number](const nlohmann::json& item) { return item == number; });
  };
  const auto clients =
      std::ranges::count_if(prepared, [&](const nlohmann::json& said) { return wants(said, process_number()); });
  Status served;
  std::jthread serving;
  if (server_ != nullptr && clients > 0) {
    serving =
        std::jthread([&] { served = server_->serve(process_arena()->segment(), static_cast<int>(clients), deadline); });
  }
  has_all_ = can_read_all_ = true;
  for (size_t place = 0; place < processes_.size(); ++place) {
    const Process& process = processes_[place];
    if (process.number == process_number()) continue;
    has_all_ &= process.arena_bytes > 0;
    can_read_all_ &= can_read(process.pid, process.probe, process.number);
    if (process.speaker != place || !wants(prepared[place_], process.number)) continue;
    Result<std::unique_ptr<SharedSegment>> fetched =
        fetch_segment(prepared[place].value("path", ""), process.arena_bytes, key_, deadline);
    if (fetched) {
      arenas_[process.number] = *std::move(fetched);
      remember_arena(process.number, arenas_[process.number]);
    } else {
      log(LogLevel::Info, "buffers of another process are out of reach: %s", fetched.error().message().c_str());
      has_all_ = false;
    }
  }
  if (serving.joinable()) serving.join();
  server_.reset();
  has_all_ &= processes_[place_].arena_bytes > 0;
  return served;
}

std::vector<NodeMate> NodeJoin::mates() const {
  std::vector<NodeMate> mates;
  for (const Process& process : processes_) {
    const bool same = process.number == process_number();
    const auto found = arenas_.find(process.number);
    Bytes arena;
    if (same && process.arena_bytes > 0) arena = process_arena()->segment().bytes();
    if (!same && found != arenas_.end()) arena = found->second->bytes();
    mates.push_back({same, arena, process.pid});
  }
  return mates;
}

}  // namespace ccom

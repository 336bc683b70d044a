// SPDX-License-Identifier: Apache-2.0
#include "setup/exchange.h"

#include <map>
#include <optional>

#include "control/error_codec.h"
#include "setup/exchanges.pb.h"

namespace ccom {
namespace {

std::string wrap(const Result<std::string>& mine) {
  wire::Part part;
  mine ? part.set_message(*mine) : put_error(mine.error(), *part.mutable_error());
  return part.SerializeAsString();
}

Status unreadable(std::string_view phase, Rank rank) {
  return error(Code::InternalError, "rank %d, %s: sent what cannot be read", rank, std::string(phase).c_str())
      .with_peers({rank});
}

// The error of all ranks where some have one: that of the first, with all ranks that any of them blames. Who blames
// nobody blames itself.
class CommonError {
 public:
  void add(Rank rank, Status error) {
    const std::vector<int> blamed = error.peers().empty() ? std::vector<int>{rank} : error.peers();
    for (const int each : blamed) {
      std::string& host = hosts_[each];
      if (each == blamed.front() && host.empty()) host = error.host();
    }
    if (first_.is_ok()) first_ = std::move(error);
  }
  bool has_any() const { return !first_.is_ok(); }
  Status take() {
    std::vector<int> blamed;
    for (const auto& [rank, host] : hosts_) blamed.push_back(rank);
    return std::move(first_).with_peers(std::move(blamed)).with_host(hosts_.begin()->second);
  }

 private:
  Status first_;
  std::map<Rank, std::string> hosts_;  // of ranks that are blamed, where they are known
};

}  // namespace

Result<std::vector<std::string>> exchange_serialized(Rendezvous& rendezvous, std::string_view phase,
                                                     Result<std::string> mine, Deadline deadline) {
  Result<std::vector<std::string>> all = rendezvous.all_gather(phase, wrap(mine), deadline);
  // Who is lost says more than what this rank has seen of it; that an answer did not come in time says less.
  if (!all) return !mine && all.error().code() == Code::Timeout ? std::move(mine).error() : std::move(all).error();
  std::vector<std::string> texts = *std::move(all);
  CommonError common;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto rank = static_cast<Rank>(i);
    wire::Part part;
    CCOM_TRY(parse_part(texts[i], phase, rank, part));
    if (part.has_error()) {
      std::optional<Status> failure = error_in(part.error());
      if (!failure) return unreadable(phase, rank);
      common.add(rank, (*std::move(failure)).in("rank " + std::to_string(rank) + ", " + std::string(phase)));
    } else if (!part.has_message()) {
      return incomplete_part(phase, rank, "message");
    }
    texts[i] = part.message();
  }
  if (common.has_any()) return common.take();
  return texts;
}

Status parse_part(const std::string& text, std::string_view phase, Rank rank, google::protobuf::MessageLite& message) {
  if (!message.ParsePartialFromString(text)) return unreadable(phase, rank);
  return message.IsInitialized() ? Status() : incomplete_part(phase, rank, "required field");
}

Status incomplete_part(std::string_view phase, Rank rank, const char* missing) {
  return error(Code::InternalError, "rank %d, %s: sent no %s", rank, std::string(phase).c_str(), missing)
      .with_peers({rank});
}

Status at_its_host(Status error, const Topology& topology) {
  if (error.peers().empty()) return error;
  const auto rank = static_cast<size_t>(error.peers().front());
  if (rank >= topology.ranks.size()) return error;
  return std::move(error).with_host(topology.hosts[static_cast<size_t>(topology.ranks[rank].host)].name);
}

Status exchange_status(Rendezvous& rendezvous, std::string_view phase, const Status& mine, Deadline deadline) {
  return exchange<wire::Ready>(rendezvous, phase, mine.is_ok() ? Result(wire::Ready()) : Result<wire::Ready>(mine),
                               deadline)
      .error();
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "setup/exchange.h"

#include <set>

#include "setup/exchanges.pb.h"

namespace ccom {
namespace {

std::string wrap(const Result<std::string>& mine) {
  wire::Part part;
  if (mine) {
    part.set_message(*mine);
  } else {
    wire::RankError& failure = *part.mutable_error();
    failure.set_code(static_cast<int>(mine.error().code()));
    failure.set_key(static_cast<uint32_t>(mine.error().key()));
    failure.set_text(mine.error().message());
    failure.set_cure(mine.error().cure());
    failure.mutable_peers()->Assign(mine.error().peers().begin(), mine.error().peers().end());
    failure.set_sys_errno(mine.error().sys_errno());
  }
  return part.SerializeAsString();
}

Status unreadable(std::string_view phase, Rank rank) {
  return error(Code::InternalError, "rank %d, %s: sent what cannot be read", rank, std::string(phase).c_str())
      .with_peers({rank});
}

// Code::Ok is not an error, so a rank that claims it has sent nonsense.
Status error_of(const wire::RankError& failure, std::string_view phase, Rank rank) {
  if (failure.code() == 0) return unreadable(phase, rank);
  return error(key_of(failure.key(), static_cast<Code>(failure.code())), "rank %d, %s: %s", rank,
               std::string(phase).c_str(), failure.text().c_str())
      .with_errno(failure.sys_errno())
      .with_cure(failure.cure());
}

}  // namespace

Result<std::vector<std::string>> exchange_serialized(Rendezvous& rendezvous, std::string_view phase,
                                                     Result<std::string> mine, Deadline deadline) {
  Result<std::vector<std::string>> all = rendezvous.all_gather(phase, wrap(mine), deadline);
  // Who is lost says more than what this rank has seen of it; that an answer did not come in time says less.
  if (!all) return !mine && all.error().code() == Code::Timeout ? std::move(mine).error() : std::move(all).error();
  std::vector<std::string> texts = *std::move(all);
  Status first;
  std::set<Rank> blamed;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto rank = static_cast<Rank>(i);
    wire::Part part;
    CCOM_TRY(parse_part(texts[i], phase, rank, part));
    if (part.has_error()) {
      const wire::RankError& failure = part.error();
      if (first.is_ok()) first = error_of(failure, phase, rank);
      blamed.insert(failure.peers().begin(), failure.peers().end());
      if (failure.peers().empty()) blamed.insert(rank);
    } else if (!part.has_message()) {
      return incomplete_part(phase, rank, "message");
    }
    texts[i] = part.message();
  }
  if (!first.is_ok()) return std::move(first).with_peers({blamed.begin(), blamed.end()});
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

Status exchange_status(Rendezvous& rendezvous, std::string_view phase, const Status& mine, Deadline deadline) {
  return exchange<wire::Ready>(rendezvous, phase, mine.is_ok() ? Result(wire::Ready()) : Result<wire::Ready>(mine),
                               deadline)
      .error();
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
//
// All-gathers of typed messages (exchanges.proto) that carry errors: if one rank has an error, or sends what cannot be
// read, every rank returns an error that names it.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "bootstrap/rendezvous.h"
#include "topology/topology.h"

namespace google::protobuf {
class MessageLite;
}

namespace ccom {

// The parts of exchange() that do not depend on the message's type.
Result<std::vector<std::string>> exchange_serialized(Rendezvous& rendezvous, std::string_view phase,
                                                     Result<std::string> mine, Deadline deadline);
Status parse_part(const std::string& text, std::string_view phase, Rank rank, google::protobuf::MessageLite& message);

// Collective and blocking. By rank.
template <typename Message>
Result<std::vector<Message>> exchange(Rendezvous& rendezvous, std::string_view phase, const Result<Message>& mine,
                                      Deadline deadline) {
  CCOM_TRY_ASSIGN(
      const std::vector<std::string> texts,
      exchange_serialized(
          rendezvous, phase,
          mine ? Result<std::string>(mine.value().SerializeAsString()) : Result<std::string>(mine.error()), deadline));
  std::vector<Message> messages(texts.size());
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    CCOM_TRY(parse_part(texts[rank], phase, static_cast<Rank>(rank), messages[rank]));
  }
  return messages;
}

// With the host of the first rank that it blames, once that is known: the same on all ranks, whoever has found it.
Status at_its_host(Status error, const Topology& topology);

// Where ranks have nothing to tell but that they got here, or why not.
Status exchange_status(Rendezvous& rendezvous, std::string_view phase, const Status& mine, Deadline deadline);

// For what a part must contain although its type does not require it.
Status incomplete_part(std::string_view phase, Rank rank, const char* missing);

}  // namespace ccom

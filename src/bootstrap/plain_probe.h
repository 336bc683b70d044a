// SPDX-License-Identifier: Apache-2.0
//
// Whether the server of a rendezvous would admit a rank, asked without TLS and gRPC: one message there and one back
// (base/handshake.h), on a connection of its own. A rank that its host's relay speaks for then needs nothing of gRPC.
//
// The key depends on the job's secret and on the build: another build is unknown here, as a stranger is. Who reads the
// network sees the rank, the number of ranks, and yes or no.
#pragma once

#include <functional>
#include <optional>

#include "base/descriptor.h"
#include "base/handshake.h"
#include "base/secret.h"
#include "base/time.h"
#include "base/types.h"
#include "bootstrap/unique_id.h"

namespace ccom {

// Whether rank `rank` of `nranks` would be admitted now. Any thread; throws std::bad_alloc.
using WouldAdmit = std::function<bool(Rank rank, int nranks)>;

// The server's side: what it says to a Hello; nothing to a stranger.
class PlainAnswers {
 public:
  PlainAnswers(const Secret& secret, WouldAdmit admits);
  std::optional<HandshakeMessage> answer(const HandshakeMessage& hello) const;

 private:
  const Secret key_;
  const WouldAdmit admits_;
};

// A rank's side. Used by one thread.
class PlainProbe {
 public:
  enum class Answer { Pending, Admits, Refused, Unknown };

  PlainProbe(const UniqueId& id, int nranks, Rank rank);
  // Refused: nobody listens. Unknown: who does has not said yes. Both stay so. Pending: nothing has come by the
  // deadline, and a later call continues.
  Answer ask(Deadline deadline);

 private:
  Answer step();

  const int nranks_;
  Handshake handshake_;
  const HandshakeMessage hello_;
  HandshakeMessage heard_{};
  size_t received_ = 0;
  Descriptor socket_;
  bool has_asked_ = false;
  Answer answer_ = Answer::Pending;
};

}  // namespace ccom

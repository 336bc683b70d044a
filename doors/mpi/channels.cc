// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/channels.h"

#include <algorithm>
#include <array>

namespace ccom::mpi {
namespace {

constexpr size_t kMost = 16;  // of a communicator: each has a thread and some memory

// A call that is freed on this rank may be in use on others; and what has failed serves no other call.
bool is_free(const std::shared_ptr<Channel>& channel) {
  ccomResult_t result = ccomSuccess;
  return channel.use_count() == 1 && ccom_library().CommGetAsyncError(channel->comm, &result) == ccomSuccess &&
         result == ccomSuccess;
}

std::shared_ptr<Channel> make(Communicator& of) {
  auto channel = std::make_shared<Channel>();
  channel->of = &of;
  std::array<int, 1> is_made = {ccom_library().StreamCreate(&channel->stream) == ccomSuccess ? 1 : 0};
  if (ccom_library().CommSplit(of.comm, 0, of.rank, &channel->comm, nullptr) != ccomSuccess) is_made[0] = 0;
  return agree(is_made, of.handle) && is_made[0] != 0 ? channel : nullptr;
}

}  // namespace

Channel::~Channel() {
  if (stream != nullptr) ccom_library().StreamDestroy(stream);
  if (comm != nullptr) ccom_library().CommDestroy(comm);
}

std::shared_ptr<Channel> open_channel(Communicator& of, bool is_ready, Fate& why_not) {
  std::array<int, kMost + 1> can{};
  can[kMost] = is_ready ? 1 : 0;
  for (size_t i = 0; i < of.channels.size(); ++i) can[i] = is_free(of.channels[i]) ? 1 : 0;
  why_not = Fate::NotStarted;
  if (!agree(can, of.handle) || can[kMost] == 0) return nullptr;
  const auto free = static_cast<size_t>(std::find(can.begin(), can.begin() + kMost, 1) - can.begin());
  if (free < of.channels.size()) return of.channels[free];
  why_not = Fate::TooMany;
  if (of.channels.size() == kMost) return nullptr;
  why_not = Fate::NotStarted;
  std::shared_ptr<Channel> made = make(of);
  if (made != nullptr) of.channels.push_back(made);
  return made;
}

}  // namespace ccom::mpi

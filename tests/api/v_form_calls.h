// SPDX-License-Identifier: Apache-2.0
//
// One call of each v-form with parts of unlike lengths, none among them, in place and not, packed and with gaps in any
// order, and what is wrong with the results.
#pragma once

#include <ccom/ccom.h>

#include <string>
#include <vector>

namespace ccom {

// Lengths of ranks' parts: multiples of `scale` and a little, some of them 0.
inline size_t part_length(size_t scale, int a, int b) {
  const int kind = (a * 5 + b * 3) % 4;
  return kind == 0 ? 0 : scale * static_cast<size_t>(kind) + static_cast<size_t>(a) + 1;
}

class VFormCalls {
 public:
  // gaps: of this rank's displacements; different on different ranks if it is told so.
  VFormCalls(ccomComm_t comm, size_t scale, size_t gaps) : comm_(comm), scale_(scale), gaps_(gaps) {
    ccomCommUserRank(comm, &rank_);
    ccomCommCount(comm, &nranks_);
    self_ = static_cast<size_t>(rank_);
  }

  // What is wrong with the first that went wrong; "" if nothing is.
  std::string run() {
    for (const auto form : {&VFormCalls::allgather, &VFormCalls::reduce_scatter, &VFormCalls::alltoall}) {
      for (const bool in_place : {false, true}) {
        if (std::string fault = (this->*form)(in_place); !fault.empty()) return fault;
      }
    }
    for (const int root : {0, nranks_ - 1}) {
      for (const bool in_place : {false, true}) {
        if (std::string fault = gather(root, in_place); !fault.empty()) return fault;
        if (std::string fault = scatter(root, in_place); !fault.empty()) return fault;
      }
    }
    return "";
  }

 private:
  static constexpr int32_t kUntouched = -77;

  struct Places {
    std::vector<size_t> counts, at;
    size_t size = 0;
  };
  // Parts in descending order of ranks, with gaps between them; without gaps in a row.
  Places places(std::vector<size_t> counts) const {
    Places all{std::move(counts), {}, 0};
    all.at.resize(all.counts.size());
    for (size_t k = 0; k < all.counts.size(); ++k) {
      const size_t part = gaps_ == 0 ? k : all.counts.size() - 1 - k;
      all.at[part] = all.size + gaps_;
      all.size += all.counts[part] + gaps_;
    }
    all.size += gaps_;
    return all;
  }
  const size_t* displacements(const Places& places) const { return gaps_ == 0 ? nullptr : places.at.data(); }

  // Element i of what one rank sends to another.
  static int32_t value(int from, int to, size_t i) {
    return static_cast<int32_t>(i * 7 + static_cast<size_t>(from) * 100003 + static_cast<size_t>(to) * 1009);
  }
  static void fill(int32_t* to, int from_rank, int to_rank, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = value(from_rank, to_rank, i);
  }
  static std::vector<int32_t> values(int from, int to, size_t count) {
    std::vector<int32_t> all(count);
    fill(all.data(), from, to, count);
    return all;
  }
  // Every part from its rank, and nothing else written. to: as in value(); -1: sums.
  std::string compare(const char* form, const std::vector<int32_t>& got, const Places& parts, int to) const {
    std::vector<int32_t> wanted(got.size(), kUntouched);
    for (int from = 0; from < static_cast<int>(parts.counts.size()); ++from) {
      const auto part = static_cast<size_t>(from);
      fill(wanted.data() + parts.at[part], from, to, parts.counts[part]);
    }
    return compare(form, got, wanted);
  }
  std::string compare(const char* form, const std::vector<int32_t>& got, const std::vector<int32_t>& wanted) const {
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] == wanted[i]) continue;
      return std::string(form) + " on rank " + std::to_string(rank_) + ": element " + std::to_string(i) + " of " +
             std::to_string(got.size()) + " is " + std::to_string(got[i]) + " instead of " + std::to_string(wanted[i]);
    }
    return "";
  }
  std::string failed(const char* form, ccomResult_t result) const {
    return std::string(form) + " on rank " + std::to_string(rank_) + ": " + std::to_string(result) + " " +
           ccomGetLastError(nullptr);
  }

  std::vector<size_t> lengths(int root = 0) const {
    std::vector<size_t> all;
    for (int rank = 0; rank < nranks_; ++rank) all.push_back(part_length(scale_, rank, root));
    return all;
  }

  std::string allgather(bool in_place) {
    const Places to = places(lengths());
    std::vector<int32_t> send = values(rank_, 0, to.counts[self_]), recv(to.size, kUntouched);
    int32_t* const own = recv.data() + to.at[self_];
    if (in_place) fill(own, rank_, 0, to.counts[self_]);
    const ccomResult_t result = ccomAllGatherV(in_place ? own : send.data(), to.counts[self_], recv.data(),
                                               to.counts.data(), displacements(to), ccomInt32, comm_, nullptr);
    if (result != ccomSuccess) return failed("allgatherv", result);
    return compare("allgatherv", recv, to, 0);
  }

  std::string reduce_scatter(bool in_place) {
    const std::vector<size_t> counts = lengths(1);
    std::vector<int32_t> send;
    size_t before = 0;
    for (int to = 0; to < nranks_; ++to) {
      const std::vector<int32_t> part = values(rank_, to, counts[static_cast<size_t>(to)]);
      if (to < rank_) before += part.size();
      send.insert(send.end(), part.begin(), part.end());
    }
    std::vector<int32_t> recv(counts[self_]), wanted(counts[self_]);
    for (size_t i = 0; i < wanted.size(); ++i) {
      for (int from = 0; from < nranks_; ++from) wanted[i] += value(from, rank_, i);
    }
    int32_t* const own = send.data() + before;
    const ccomResult_t result = ccomReduceScatterV(send.data(), in_place ? own : recv.data(), counts.data(), ccomInt32,
                                                   ccomSum, comm_, nullptr);
    if (result != ccomSuccess) return failed("reduce_scatterv", result);
    if (in_place) recv.assign(own, own + recv.size());
    return compare("reduce_scatterv", recv, wanted);
  }

  std::string alltoall(bool in_place) {
    std::vector<size_t> sent, received;
    for (int other = 0; other < nranks_; ++other) {
      sent.push_back(part_length(scale_, rank_, other));
      received.push_back(part_length(scale_, other, rank_));
    }
    const Places from = places(sent), to = places(received);
    std::vector<int32_t> send(std::max(from.size, in_place ? to.size : 0), kUntouched), recv(to.size, kUntouched);
    for (int other = 0; other < nranks_; ++other) {
      const auto part = static_cast<size_t>(other);
      fill(send.data() + from.at[part], rank_, other, from.counts[part]);
    }
    int32_t* const target = in_place ? send.data() : recv.data();
    const ccomResult_t result = ccomAlltoAllV(send.data(), sent.data(), displacements(from), target, received.data(),
                                              displacements(to), ccomInt32, comm_, nullptr);
    if (result != ccomSuccess) return failed("alltoallv", result);
    if (!in_place) return compare("alltoallv", recv, to, rank_);
    for (int other = 0; other < nranks_; ++other) {  // what lies between may be what was sent
      const auto part = static_cast<size_t>(other);
      const auto* const begin = send.data() + to.at[part];
      std::string fault = compare("alltoallv in place", std::vector<int32_t>(begin, begin + to.counts[part]),
                                  values(other, rank_, to.counts[part]));
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::string gather(int root, bool in_place) {
    const Places to = places(lengths(root));
    const bool is_root = rank_ == root;
    const size_t count = to.counts[self_];
    std::vector<int32_t> send = values(rank_, root, count), recv(is_root ? to.size : 0, kUntouched);
    const void* source = send.data();
    if (in_place && is_root) {
      fill(recv.data() + to.at[self_], rank_, root, count);
      source = recv.data() + to.at[self_];
    }
    const ccomResult_t result =
        ccomGatherV(source, count, is_root ? recv.data() : nullptr, is_root ? to.counts.data() : nullptr,
                    is_root ? displacements(to) : nullptr, ccomInt32, root, comm_, nullptr);
    if (result != ccomSuccess) return failed("gatherv", result);
    return is_root ? compare("gatherv", recv, to, root) : "";
  }

  std::string scatter(int root, bool in_place) {
    const Places from = places(lengths(root));
    const bool is_root = rank_ == root;
    std::vector<int32_t> send(is_root ? from.size : 0), recv(from.counts[self_], kUntouched);
    for (int to = 0; is_root && to < nranks_; ++to) {
      const auto part = static_cast<size_t>(to);
      fill(send.data() + from.at[part], root, to, from.counts[part]);
    }
    void* const target = in_place && is_root ? send.data() + from.at[self_] : recv.data();
    const ccomResult_t result =
        ccomScatterV(is_root ? send.data() : nullptr, is_root ? from.counts.data() : nullptr,
                     is_root ? displacements(from) : nullptr, target, recv.size(), ccomInt32, root, comm_, nullptr);
    if (result != ccomSuccess) return failed("scatterv", result);
    const auto* const got = static_cast<const int32_t*>(target);
    return compare("scatterv", std::vector<int32_t>(got, got + recv.size()), values(root, rank_, recv.size()));
  }

  ccomComm_t comm_;
  size_t scale_, gaps_;
  int rank_ = 0, nranks_ = 1;
  size_t self_ = 0;
};

}  // namespace ccom

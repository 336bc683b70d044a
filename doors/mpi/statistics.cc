// SPDX-License-Identifier: Apache-2.0
#include "doors/mpi/statistics.h"

#include <cstdarg>
#include <cstdio>
#include <vector>

namespace ccom::mpi {
namespace {

constexpr const char* kNames[kKinds] = {"MPI_Allreduce",
                                        "MPI_Reduce",
                                        "MPI_Bcast",
                                        "MPI_Allgather",
                                        "MPI_Allgatherv",
                                        "MPI_Reduce_scatter",
                                        "MPI_Reduce_scatter_block",
                                        "MPI_Alltoall",
                                        "MPI_Alltoallv",
                                        "MPI_Gather",
                                        "MPI_Gatherv",
                                        "MPI_Scatter",
                                        "MPI_Scatterv",
                                        "MPI_Barrier"};

constexpr const char* kHeads[kFates] = {"taken",     "MPI faster",  "type",    "operator", "empty",   "1 rank",
                                        "intercomm", "not started", "invalid", "no world", "too many"};

std::string format(const char* form, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char* form, ...) {
  char text[160];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  return text;
}

}  // namespace

std::string name_of(Kind kind, Form form) {
  return std::string(kNames[static_cast<size_t>(kind)]) + (form == Form::Persistent ? "_init" : "");
}

std::array<long long, Statistics::kNumbers> Statistics::numbers() const {
  std::array<long long, kNumbers> all{};
  size_t at = 0;
  for (const auto& of_row : calls_)
    for (const auto& number : of_row) all[at++] = static_cast<long long>(number.load(std::memory_order_relaxed));
  for (const auto& number : bytes_) all[at++] = static_cast<long long>(number.load(std::memory_order_relaxed));
  return all;
}

// Without the reasons that did not occur.
std::string Statistics::table(const std::array<long long, kNumbers>& sums, int ranks) {
  std::array<long long, kFates> total{};
  for (size_t row = 0; row < kRows; ++row)
    for (size_t fate = 0; fate < kFates; ++fate) total[fate] += sums[row * kFates + fate];
  std::string text =
      format("ccom-mpi: calls of %d rank%s, taken by ccom, and handed down because\n", ranks, ranks == 1 ? "" : "s");
  text += format("ccom-mpi: %-29s %12s %16s", "", "taken", "bytes given");
  for (size_t fate = 1; fate < kFates; ++fate)
    if (total[fate] != 0) text += format(" %12s", kHeads[fate]);
  text += "\n";
  for (size_t row = 0; row < kRows; ++row) {
    const long long* const of_row = &sums[row * kFates];
    long long all = 0;
    for (size_t fate = 0; fate < kFates; ++fate) all += of_row[fate];
    if (all == 0) continue;
    const std::string name = name_of(static_cast<Kind>(row % kKinds), static_cast<Form>(row / kKinds));
    text += format("ccom-mpi: %-29s %12lld %16lld", name.c_str(), of_row[0], sums[kRows * kFates + row]);
    for (size_t fate = 1; fate < kFates; ++fate)
      if (total[fate] != 0) text += format(" %12lld", of_row[fate]);
    text += "\n";
  }
  return text;
}

}  // namespace ccom::mpi

// SPDX-License-Identifier: Apache-2.0
//
// One rank of a process test of users' operators: maps that do not commute (tests/api/affine.h), and sums.
//   operators_program once COUNT               every reduction, of a few elements and of COUNT; "right", or "wrong ..."
//   operators_program WAY ODD COUNT            reductions to rank ODD, until its function is called for the third time
//                                              in a call and fails: returns, throws, or (dies) kills its process;
//                                              "failed ..." on the first error, which is final, or "unused"
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/api/affine.h"
#include "tests/processes/rank.h"

namespace {

using namespace ccom;

extern "C" ccomResult_t add_numbers(const void* in, void* inout, size_t count, ccomDataType_t type, void*) {
  if (type != ccomUint64) return ccomInvalidArgument;
  for (size_t i = 0; i < count; ++i) static_cast<uint64_t*>(inout)[i] += static_cast<const uint64_t*>(in)[i];
  return ccomSuccess;
}

// ---- Right results --------------------------------------------------------------------------------------------------

// Of one operator and length; what went wrong first, or "".
template <class Element>
class Reductions {
 public:
  using Value = Element (*)(int rank, size_t i);
  Reductions(ccomComm_t comm, ccomRedOp_t op, size_t count, Value input, Value result)
      : comm_(comm), op_(op), count_(count), input_(input), result_(result) {}

  std::string run() {
    std::string fault = allreduce();
    for (int root = 0; root < nranks && fault.empty(); ++root) fault = reduce(root);
    return fault.empty() ? reduce_scatter() : fault;
  }

 private:
  std::vector<Element> values(Value of, int who, size_t begin, size_t count) const {
    std::vector<Element> all(count);
    for (size_t i = 0; i < count; ++i) all[i] = of(who, begin + i);
    return all;
  }
  static std::string failure(const char* what, ccomResult_t result) {
    return std::string(what) + " returned " + std::to_string(result) + ": " + ccomGetLastError(nullptr);
  }
  std::string judge(const char* what, const std::vector<Element>& got, const std::vector<Element>& expected) const {
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected[i]) continue;
      return std::string(what) + " of " + std::to_string(count_) + ", element " + std::to_string(i);
    }
    return "";
  }

  std::string allreduce() const {
    const std::vector<Element> send = values(input_, rank, 0, count_), expected = values(result_, nranks, 0, count_);
    std::vector<Element> recv(count_), both = send;
    ccomResult_t result = ccomAllReduce(send.data(), recv.data(), count_, ccomUint64, op_, comm_, nullptr);
    if (result == ccomSuccess)
      result = ccomAllReduce(both.data(), both.data(), count_, ccomUint64, op_, comm_, nullptr);
    if (result != ccomSuccess) return failure("allreduce", result);
    const std::string fault = judge("allreduce", recv, expected);
    return fault.empty() ? judge("allreduce in place", both, expected) : fault;
  }

  std::string reduce(int root) const {
    const std::vector<Element> send = values(input_, rank, 0, count_);
    std::vector<Element> recv(count_);
    const ccomResult_t result = ccomReduce(send.data(), recv.data(), count_, ccomUint64, op_, root, comm_, nullptr);
    if (result != ccomSuccess) return failure("reduce", result);
    return rank == root ? judge("reduce", recv, values(result_, nranks, 0, count_)) : "";
  }

  std::string reduce_scatter() const {
    const size_t unit = count_ / static_cast<size_t>(nranks) + 1;
    const std::vector<Element> send = values(input_, rank, 0, unit * static_cast<size_t>(nranks));
    std::vector<Element> recv(unit);
    const ccomResult_t result = ccomReduceScatter(send.data(), recv.data(), unit, ccomUint64, op_, comm_, nullptr);
    if (result != ccomSuccess) return failure("reduce_scatter", result);
    return judge("reduce_scatter", recv, values(result_, nranks, unit * static_cast<size_t>(rank), unit));
  }

  const ccomComm_t comm_;
  const ccomRedOp_t op_;
  const size_t count_;
  const Value input_, result_;
};

uint64_t number_of(int who, size_t i) { return i * 2654435761U + static_cast<uint64_t>(who) * 977; }
uint64_t sum_of(int ranks, size_t i) {
  uint64_t sum = 0;
  for (int who = 0; who < ranks; ++who) sum += number_of(who, i);
  return sum;
}

int call_once(ccomComm_t comm, size_t most) {
  ccomRedOp_t ordered = 0, commutative = 0;
  if (ccomRedOpCreate(&ordered, compose_maps, nullptr, ccomRedOpOrdered, comm) != ccomSuccess ||
      ccomRedOpCreate(&commutative, add_numbers, nullptr, ccomRedOpCommutative, comm) != ccomSuccess)
    return report_failure(comm, ccomInternalError);
  for (const size_t count : {size_t{1}, size_t{2}, size_t{13}, size_t{1031}, most}) {
    std::string fault = Reductions<Affine>(comm, ordered, count, map_of, composed).run();
    if (fault.empty()) fault = Reductions<uint64_t>(comm, commutative, count, number_of, sum_of).run();
    if (fault.empty()) continue;
    say("wrong " + fault);
    return 1;
  }
  ccomCommDestroy(comm);
  say("right");
  return 0;
}

// ---- Failures -------------------------------------------------------------------------------------------------------

struct Failing {
  std::string way;
  int calls = -1;  // of the function; below 0: never fails
};

// Does half of its work first.
ccomResult_t fail(const void* in, void* inout, size_t count, ccomDataType_t type, void* context) {
  auto& failing = *static_cast<Failing*>(context);
  if (failing.calls < 0 || ++failing.calls < 3) return compose_maps(in, inout, count, type, nullptr);
  compose_maps(in, inout, count / 2, type, nullptr);
  if (failing.way == "throws") throw std::runtime_error("no such map");
  if (failing.way == "dies") ::kill(::getpid(), SIGKILL);
  return ccomInvalidUsage;
}

int call_until_it_fails(ccomComm_t comm, const std::string& way, int odd, size_t count) {
  Failing failing{way, rank == odd ? 0 : -1};
  ccomRedOp_t op = 0;
  if (ccomRedOpCreate(&op, fail, &failing, ccomRedOpOrdered, comm) != ccomSuccess)
    return report_failure(comm, ccomInternalError);
  for (int i = 0; i < 20; ++i) {
    const std::vector<Affine> send = maps_of(rank, count);
    std::vector<Affine> recv(count);
    const ccomResult_t result = ccomReduce(send.data(), recv.data(), count, ccomUint64, op, odd, comm, nullptr);
    if (result == ccomSuccess) continue;
    say_failure(comm, result);
    uint64_t one = 1;
    if (ccomAllReduce(&one, &one, 1, ccomUint64, ccomSum, comm, nullptr) == result) say("final");
    ccomCommDestroy(comm);
    return 0;
  }
  say("unused");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || !begin_rank()) return 3;
  const std::string way = argv[1];
  ccomComm_t comm = join(nullptr);
  if (way == "once") return call_once(comm, std::strtoul(argv[2], nullptr, 10));
  if (argc < 4) return 3;
  return call_until_it_fails(comm, way, std::atoi(argv[2]), std::strtoul(argv[3], nullptr, 10));
}

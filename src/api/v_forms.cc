// SPDX-License-Identifier: Apache-2.0
//
// V-forms: collectives with counts and displacements. Converts the lists of the caller into Shares, which a queued call
// keeps, and checks that no part overwrites another.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "api/handles.h"

namespace ccom {
namespace {

// Counts, and places or NULL, with their C names.
struct Lists {
  const size_t* counts = nullptr;
  const size_t* places = nullptr;
  const char* counts_name = "";
  const char* places_name = "";
};

// The possible arguments of a v-form.
struct VArguments {
  const void* send = nullptr;
  void* recv = nullptr;
  size_t count = 0;  // of a buffer that has one part
  ccomDataType_t type = ccomInt8;
  ccomRedOp_t op = ccomSum;
  int root = -1;
  const void* caller = nullptr;
};

// Whether all parts have that length and follow one another.
bool are_equal(const Lists& lists, size_t count, int nranks) {
  for (size_t rank = 0; rank < static_cast<size_t>(nranks); ++rank) {
    if (lists.counts[rank] != count || (lists.places != nullptr && lists.places[rank] != rank * count)) return false;
  }
  return true;
}

// What a call borrows.
struct Kept {
  Shares shares;
  std::shared_ptr<const void> op{};
};

// The parts of a buffer.
struct Parts {
  std::vector<size_t> counts{}, places{};
};

Result<Parts> read_parts(const Lists& lists, size_t nranks, size_t element_bytes) {
  if (lists.counts == nullptr) return error(Code::InvalidArgument, "%s is NULL", lists.counts_name);
  Parts parts{{lists.counts, lists.counts + nranks}, {}};
  size_t total = 0;
  for (size_t rank = 0; rank < nranks; ++rank) {
    const size_t count = parts.counts[rank], place = lists.places == nullptr ? total : lists.places[rank];
    parts.places.push_back(place);
    size_t end = 0, bytes = 0;
    const bool fits = !__builtin_add_overflow(place, count, &end) &&
                      !__builtin_mul_overflow(end, element_bytes, &bytes) && bytes <= PTRDIFF_MAX &&
                      !__builtin_add_overflow(total, count, &total);
    if (fits) continue;
    const std::string at = lists.places == nullptr ? ""
                                                   : ", " + std::string(lists.places_name) + "[" +
                                                         std::to_string(rank) + "] " + std::to_string(place);
    return error(Code::InvalidArgument, "%s[%zu] is %zu%s: the buffer would exceed the address space",
                 lists.counts_name, rank, count, at.c_str());
  }
  return parts;
}

// A rank's own part stands twice in the arguments.
Status check_own(const char* name, size_t count, const Lists& lists, size_t rank) {
  if (count == lists.counts[rank]) return {};
  return error(Code::InvalidArgument, "%s is %zu, but %s[%zu], which is this rank's own, is %zu", name, count,
               lists.counts_name, rank, lists.counts[rank]);
}

Status check_buffer(const char* name, const void* buffer, const Parts& parts, const char* what) {
  if (buffer != nullptr) return {};
  for (const size_t count : parts.counts) {
    if (count > 0) return error(Code::InvalidArgument, "%s is NULL, but %zu elements are to be %s", name, count, what);
  }
  return {};
}

// A part in memory.
struct Segment {
  uintptr_t begin, end;
  size_t part;
  bool is_sent;
  std::string name() const { return std::string("part ") + std::to_string(part) + (is_sent ? " of send" : " of recv"); }
};

std::vector<Segment> segments_of(const void* buffer, const Parts& parts, size_t element_bytes, bool is_sent) {
  std::vector<Segment> segments;
  for (size_t part = 0; part < parts.counts.size(); ++part) {
    if (parts.counts[part] == 0) continue;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(buffer) + parts.places[part] * element_bytes;
    segments.push_back({begin, begin + parts.counts[part] * element_bytes, part, is_sent});
  }
  return segments;
}

// Nothing is written twice, nor what is read.
Status check_apart(std::vector<Segment> sent, const std::vector<Segment>& received) {
  sent.insert(sent.end(), received.begin(), received.end());
  std::ranges::sort(sent, {}, &Segment::begin);
  const Segment *read = nullptr, *written = nullptr;  // of those before, the ones that reach furthest
  for (const Segment& segment : sent) {
    const Segment* other = written != nullptr && segment.begin < written->end ? written : nullptr;
    if (other == nullptr && !segment.is_sent && read != nullptr && segment.begin < read->end) other = read;
    if (other != nullptr) {
      return error(Code::InvalidArgument, "%s and %s overlap, but not as defined for in-place calls",
                   other->name().c_str(), segment.name().c_str())
          .with_cure("use separate memory, or the in-place form documented in ccom.h");
    }
    const Segment*& furthest = segment.is_sent ? read : written;
    if (furthest == nullptr || segment.end > furthest->end) furthest = &segment;
  }
  return {};
}

// The buffers of a call and what is in place: a rank's own part, which may lie at one place in both, or everything.
struct Buffers {
  const VArguments& arguments;
  Parts sent{}, received{};
  size_t own_sent = 0, own_received = 0;
  bool swaps = false;  // alltoall

  Status check() const {
    const size_t element = size_of(static_cast<DataType>(arguments.type));
    CCOM_TRY(check_buffer("send", arguments.send, sent, "read"));
    CCOM_TRY(check_buffer("recv", arguments.recv, received, "written"));
    std::vector<Segment> reads = segments_of(arguments.send, sent, element, true);
    const std::vector<Segment> writes = segments_of(arguments.recv, received, element, false);
    if (swaps && arguments.send == arguments.recv) reads.clear();
    const auto target = std::ranges::find(writes, own_received, &Segment::part);
    if (!swaps && target != writes.end()) {
      std::erase_if(reads, [&](const Segment& s) { return s.part == own_sent && s.begin == target->begin; });
    }
    return check_apart(std::move(reads), writes);
  }
};

// A rank's view of a call: what it sends and gets, by rank.
class SharesAuthor {
 public:
  SharesAuthor(const VArguments& arguments, int nranks, int self)
      : a_(arguments),
        n_(static_cast<size_t>(nranks)),
        self_(static_cast<size_t>(self)),
        root_(static_cast<size_t>(arguments.root)),
        element_(size_of(static_cast<DataType>(arguments.type))) {
    for (auto* list : {&shares_.sent, &shares_.sent_at, &shares_.received, &shares_.received_at}) list->resize(n_);
  }

  Result<Shares> write(Collective collective, const Lists& sent, const Lists& received) {
    switch (collective) {
      case Collective::AllGather: CCOM_TRY(collect(received, true)); break;
      case Collective::Gather: CCOM_TRY(collect(received, self_ == root_)); break;
      case Collective::Scatter: CCOM_TRY(hand_out(sent)); break;
      case Collective::ReduceScatter: CCOM_TRY(reduce_scatter(sent)); break;
      default: CCOM_TRY(alltoall(sent, received)); break;
    }
    return std::move(shares_);
  }

 private:
  Parts single(size_t count) const { return {{count}, {0}}; }

  // Allgather, gather.
  Status collect(const Lists& lists, bool gets) {
    Buffers buffers{a_, single(a_.count)};
    if (gets) {
      CCOM_TRY_ASSIGN(buffers.received, read_parts(lists, n_, element_));
      CCOM_TRY(check_own("sendcount", a_.count, lists, self_));
      shares_.received = buffers.received.counts;
      shares_.received_at = buffers.received.places;
    }
    if (a_.root < 0) std::ranges::fill(shares_.sent, a_.count);
    if (a_.root >= 0) shares_.sent[root_] = a_.count;
    buffers.own_received = self_;
    return buffers.check();
  }
  Status hand_out(const Lists& lists) {
    Buffers buffers{a_, {}, single(a_.count)};
    if (self_ == root_) {
      CCOM_TRY_ASSIGN(buffers.sent, read_parts(lists, n_, element_));
      CCOM_TRY(check_own("recvcount", a_.count, lists, self_));
      shares_.sent = buffers.sent.counts;
      shares_.sent_at = buffers.sent.places;
    }
    shares_.received[root_] = a_.count;
    buffers.own_sent = self_;
    return buffers.check();
  }
  Status reduce_scatter(const Lists& lists) {
    Buffers buffers{a_};
    CCOM_TRY_ASSIGN(buffers.sent, read_parts(lists, n_, element_));
    shares_.sent = buffers.sent.counts;
    shares_.sent_at = buffers.sent.places;
    std::ranges::fill(shares_.received, shares_.sent[self_]);
    buffers.received = single(shares_.sent[self_]);
    buffers.own_sent = self_;
    return buffers.check();
  }
  Status alltoall(const Lists& sent, const Lists& received) {
    Buffers buffers{a_};
    buffers.swaps = true;
    CCOM_TRY_ASSIGN(buffers.sent, read_parts(sent, n_, element_));
    CCOM_TRY_ASSIGN(buffers.received, read_parts(received, n_, element_));
    CCOM_TRY(buffers.check());
    shares_ = {std::move(buffers.sent.counts), std::move(buffers.sent.places), std::move(buffers.received.counts),
               std::move(buffers.received.places)};
    return {};
  }

  const VArguments& a_;
  const size_t n_, self_, root_, element_;
  Shares shares_;
};

// How long all parts of a call are, where they are equal and in a row; 0 otherwise.
size_t equal_parts(Collective collective, const VArguments& a, const Lists& sent, const Lists& received,
                   const Communicator& communicator) {
  const Lists& units = collective == Collective::AllGather ? received : sent;
  if (is_rooted(collective) || units.counts == nullptr) return 0;
  const size_t count = units.counts[communicator.rank()];
  const int nranks = communicator.nranks();
  if (!are_equal(units, count, nranks) || (collective == Collective::AllGather && count != a.count)) return 0;
  if (collective != Collective::AllToAll) return count;
  return received.counts != nullptr && are_equal(received, count, nranks) ? count : 0;
}

// A call of equal parts that the communicator knows.
std::optional<Status> run_known(Collective collective, const VArguments& a, const Lists& sent, const Lists& received,
                                ccomComm_t comm) {
  if (!is_ready(comm) || !has_kind(a.type, a.op, -1)) return {};
  const size_t count = equal_parts(collective, a, sent, received, *comm->communicator);
  if (count == 0) return {};
  const uint64_t kind =
      kind_of(collective, static_cast<DataType>(a.type), static_cast<ReduceOp>(a.op), false, -1, 0, true);
  return comm->communicator->run_known(kind, count, a.send, a.recv, a.caller);
}

ccomResult_t call_v(const char* function, Collective collective, const VArguments& a, const Lists& sent,
                    const Lists& received, ccomComm_t comm, ccomStream_t stream) {
  return guarded(function, [&]() -> Status {
    if (stream == nullptr && !is_rooted(collective) && !group_is_open()) {
      if (std::optional<Status> done = run_known(collective, a, sent, received, comm)) return *std::move(done);
    }
    CCOM_TRY(check_handle(comm));
    const int nranks = comm->communicator->nranks();
    CCOM_TRY(check_size(a.count, a.type, nranks));
    if (is_rooted(collective)) CCOM_TRY(check_rank_argument("root", a.root, nranks));
    auto kept = std::make_shared<Kept>();
    CCOM_TRY_ASSIGN(kept->shares,
                    SharesAuthor(a, nranks, comm->communicator->rank()).write(collective, sent, received));
    Request request;
    request.collective = collective;
    request.input = static_cast<const std::byte*>(a.send);
    request.output = static_cast<std::byte*>(a.recv);
    request.shares = &kept->shares;
    request.type = static_cast<DataType>(a.type);
    request.root = a.root;
    request.timeout_ms = comm->communicator->timeout_ms();
    request.site = call_site(a.caller);
    kept->shares.equal = equal_parts(collective, a, sent, received, *comm->communicator);
    if (reduces(collective)) CCOM_TRY(resolve_operator(comm, a.op, request, kept->op));
    return submit(comm, stream, request, std::move(kept));
  });
}

}  // namespace
}  // namespace ccom

using namespace ccom;  // NOLINT(google-build-using-namespace): the C functions below are its border

ccomResult_t ccomAllGatherV(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                            const size_t* rdispls, ccomDataType_t type, ccomComm_t comm, ccomStream_t stream) {
  return call_v("ccomAllGatherV", Collective::AllGather,
                {.send = send, .recv = recv, .count = sendcount, .type = type, .caller = CCOM_CALLER}, {},
                {recvcounts, rdispls, "recvcounts", "rdispls"}, comm, stream);
}

ccomResult_t ccomReduceScatterV(const void* send, void* recv, const size_t* recvcounts, ccomDataType_t type,
                                ccomRedOp_t op, ccomComm_t comm, ccomStream_t stream) {
  return call_v("ccomReduceScatterV", Collective::ReduceScatter,
                {.send = send, .recv = recv, .type = type, .op = op, .caller = CCOM_CALLER},
                {recvcounts, nullptr, "recvcounts", ""}, {}, comm, stream);
}

ccomResult_t ccomGatherV(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                         const size_t* rdispls, ccomDataType_t type, int root, ccomComm_t comm, ccomStream_t stream) {
  return call_v("ccomGatherV", Collective::Gather,
                {.send = send, .recv = recv, .count = sendcount, .type = type, .root = root, .caller = CCOM_CALLER}, {},
                {recvcounts, rdispls, "recvcounts", "rdispls"}, comm, stream);
}

ccomResult_t ccomScatterV(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                          size_t recvcount, ccomDataType_t type, int root, ccomComm_t comm, ccomStream_t stream) {
  return call_v("ccomScatterV", Collective::Scatter,
                {.send = send, .recv = recv, .count = recvcount, .type = type, .root = root, .caller = CCOM_CALLER},
                {sendcounts, sdispls, "sendcounts", "sdispls"}, {}, comm, stream);
}

ccomResult_t ccomAlltoAllV(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                           const size_t* recvcounts, const size_t* rdispls, ccomDataType_t type, ccomComm_t comm,
                           ccomStream_t stream) {
  return call_v(
      "ccomAlltoAllV", Collective::AllToAll, {.send = send, .recv = recv, .type = type, .caller = CCOM_CALLER},
      {sendcounts, sdispls, "sendcounts", "sdispls"}, {recvcounts, rdispls, "recvcounts", "rdispls"}, comm, stream);
}

// SPDX-License-Identifier: Apache-2.0
//
// Docstrings. What holds of all calls stands in the package's own (ccom/__init__.py) and in docs/doors/python.md.
#pragma once

namespace ccom_core::documentation {

inline constexpr const char* kAllReduce = R"(op over ranks of array, on every rank.

array: any shape S, the same number of elements and type on all ranks. Returns the result, of shape S: a new array of
numpy's; out, if given (of the same type and as many elements; may be array itself); or array, with inplace=True.
op: "sum", "prod", "max", "min", "avg", "band", "bor", "bxor", "land", "lor", or an Operator. residual: float32, as
many elements: what this rank's encodings have lost (setting wire). Results are bitwise equal on all ranks.)";

inline constexpr const char* kReduce = R"(op over ranks of array, on rank root; None elsewhere.

array: any shape S. Returns on root an array of shape S: new, out, or array with inplace=True.)";

inline constexpr const char* kBroadcast = R"(What root gives, on every rank.

Without out, array is read on root and written on the others, and returned. With out, that is written instead, also on
root, and array is needed on root only (else None). Type and number of elements are the same on all ranks.)";

inline constexpr const char* kAllGather = R"(The arrays of all ranks, in the order of ranks, on every rank.

array: shape (n, ...), or () which counts as (1,). Returns shape (size * n, ...): new, or out, which may have any shape
of as many elements, as (size, n, ...). In place: array is the part of out at this rank's place.)";

inline constexpr const char* kGather = R"(The arrays of all ranks, in the order of ranks, on rank root; None elsewhere.

array: shape (n, ...). Returns on root shape (size * n, ...): new, or out.)";

inline constexpr const char* kReduceScatter = R"(Part `rank` of op over ranks of array.

array: shape (size * n, ...). Returns shape (n, ...): new, or out. In place: out is the part of array at this rank's
place; the rest of array is then unspecified afterwards.)";

inline constexpr const char* kScatter = R"(Part `rank` of root's array.

array: shape (size * n, ...) on root, None elsewhere. Returns shape (n, ...): new on root; out, which the other ranks
have to give.)";

inline constexpr const char* kAllToAll = R"(Part j of array goes to rank j; part i of the result is from rank i.

array: shape (size * n, ...). Returns the same shape: new, out, or array with inplace=True.)";

inline constexpr const char* kBarrier = "Returns when every rank has called it.";

inline constexpr const char* kAllGatherV = R"(all_gather of arrays that differ in their first dimension.

array: shape (counts[rank], ...). counts: rows of each rank, the same on all ranks; None on all ranks: they tell one
another first, which takes another small all_gather. Returns shape (sum(counts), ...): new, or out.)";

inline constexpr const char* kGatherV = R"(gather of arrays that differ in their first dimension; None but on root.

array: shape (counts[rank], ...). counts: as of all_gather_v. Returns on root shape (sum(counts), ...): new, or out.)";

inline constexpr const char* kReduceScatterV = R"(Part `rank` of op over ranks of array, whose parts have counts[0],
counts[1], ... rows.

array: shape (sum(counts), ...). Returns shape (counts[rank], ...): new, or out.)";

inline constexpr const char* kScatterV =
    R"(Part `rank` of root's array, whose parts have counts[0], counts[1], ... rows.

array, counts: on root, None elsewhere. Returns shape (counts[rank], ...): new on root; out, which the other ranks have
to give.)";

inline constexpr const char* kAllToAllV = R"(send_counts[j] rows of array go to rank j; recv_counts[i] come from rank i.

array: shape (sum(send_counts), ...). recv_counts None on all ranks: they tell one another first. Returns shape
(sum(recv_counts), ...): new, or out.)";

inline constexpr const char* kSend = R"(Sends array to rank peer.

Without a tag: to the recv that peer makes next from this rank, in order; type and number of elements are equal on both
sides; it may block until the peer receives, so ranks that send to one another do it in a group (ccom.group) or by
send_recv. With a tag, of 64 bits: to its recv with this tag, independent of other calls; the communicator has the
setting messages=True; only the number of bytes has to be equal.)";

inline constexpr const char* kRecv =
    R"(Receives from rank peer what it sends with the same tag, into out, and returns out.

With a tag, peer may be ccom.ANY_RANK; blocking=False tells then in Handle.peer who it was. The rest as of send.)";

inline constexpr const char* kCreateOp = R"(An Operator for all_reduce, reduce and reduce_scatter from function(a, b).

function gets two one-dimensional arrays of numpy's of equal length and returns a op b, element by element, or is a
ufunc, which is asked to write to b. Both are ccom's memory: a must not be written, neither may be kept. It has to be
associative, is called in the thread that runs the call, with the GIL, several times for parts of the vector, and must
not use this communicator. commutative: a op b and b op a have the same bits. All ranks create a communicator's
operators in the same order. An exception in it fails the call on all ranks (ccom.OperatorError).)";

inline constexpr const char* kPremultipliedSum = R"(An Operator "sum over ranks of scalar * x", for elements of dtype.

Scalars may differ between ranks; products are rounded to the type before the sum.)";

inline constexpr const char* kOperator = "A reduction of one communicator: create_op, premultiplied_sum.";

inline constexpr const char* kHandle = R"(An operation begun with blocking=False.

Its arrays are ccom's until it is done, and are kept alive, whether the handle is or not. `await handle` waits in
asyncio without a thread and without asking again and again; cancelling the wait does not cancel the operation. To drop
a handle is allowed.)";
inline constexpr const char* kDone = "Whether it is over, with or without an error. Never blocks.";
inline constexpr const char* kWait = R"(Waits, and returns what the blocking call would have, or raises its error.

timeout: seconds, after which the builtin TimeoutError is raised and the operation goes on; None: the operation's own.
Ctrl-C ends the wait, not the operation.)";
inline constexpr const char* kAddDoneCallback = R"(Calls function() once when the operation is over: in a thread of
ccom's, or here and now if it is. It must not block: the communicator's next queued operation waits for it.)";
inline constexpr const char* kHandlePeer = "The other rank of a message with a tag, once it is done; else -1.";

inline constexpr const char* kLaunch =
    "(rank, size, local_rank, local_size) from the launcher's environment, -1 where unknown; None without a launcher.";
inline constexpr const char* kUniqueId = R"(128 bytes that identify one communicator, which this process serves until
all ranks have joined. They hold its secret: treat them like a password.)";
inline constexpr const char* kUniqueIdFromUrl =
    "The same, found by url on all ranks: file:///path, tcp://host:port, env://.";

inline constexpr const char* kAgree =
    R"(Returns (flags, lost): the bitwise and of what all ranks that are left give, and
the ranks that are not. All of them call it, after an error or before; they all get the same.)";
inline constexpr const char* kUniqueIdToGrow = "The bytes by which new ranks join (ccom.join), for one grow().";
inline constexpr const char* kAbort = R"(Fails all operations, here and on the other ranks, with ccom.AbortedError. From
any thread; returns immediately.)";
inline constexpr const char* kRevoke = R"(Fails all operations, here and on the other ranks, with ccom.RevokedError, so
that all get out of them and can go on with agree() or shrink(). From any thread; returns immediately.)";
inline constexpr const char* kFinalize = R"(Waits until this rank's operations are complete and tells the others that it
makes no more: who communicates further gets ccom.RankLostError. close() does this too.)";
inline constexpr const char* kClose = R"(Waits for this rank's operations and frees the communicator. Again: nothing.
`with` and the end of the program do it. Within a callback of a handle or an operator it returns at once, and a thread
closes it as soon as what is under way has ended.)";
inline constexpr const char* kSetTimeout = "Seconds for this rank's later operations. Ranks may differ.";
inline constexpr const char* kInfo = R"(A dict: rank, size, num_hosts, local_rank, local_size, transports, topology,
bytes_sent, memory_bytes, sequence (collective calls so far). Waits for earlier calls.)";
inline constexpr const char* kAsyncError = R"(The communicator's error as an exception that is not raised, or None. An
error is final: every later operation raises it again.)";
inline constexpr const char* kParentRanks =
    "Of each rank its rank in the communicator that this one was made from; -1 if it had none.";
inline constexpr const char* kWitness =
    R"(Says that array has equal bytes on all ranks, as parameters of replicas do: if
not, the next collective raises ccom.MismatchError on all ranks. All ranks call it between the same calls.)";
inline constexpr const char* kRegister = R"(Declares that collectives will use array often: a context manager, or an
object with close(). Whole pages of ordinary memory become ones that ranks of the host can map; address and contents
stay. Local. Arrays of ccom.empty need none of it.)";
inline constexpr const char* kRegistration = "A registered array, see Communicator.register.";
inline constexpr const char* kMakeWindow = R"(Arrays of all ranks that every rank of the host can access: peer(rank).
Collective; sizes may differ. A context manager, or an object with close().)";
inline constexpr const char* kWindow = "See Communicator.window.";
inline constexpr const char* kPeer =
    R"(The array of rank, one-dimensional, as memory that both share. ccom does not order
such accesses: use barrier(). Raises ccom.NotSupportedError if this process cannot reach it.)";
inline constexpr const char* kCommHandle = "The ccomComm_t as an integer, for other extensions; valid until close().";

}  // namespace ccom_core::documentation

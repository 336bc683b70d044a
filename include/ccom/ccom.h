/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ccom: collective communication for data-parallel training on host memory.
 *
 * The whole public API, C99. Conventions, stated once:
 *
 * - Every call is thread-safe. Calls on one communicator take effect in the order in which they are made; all ranks
 *   must make the same collective calls on a communicator in the same order.
 * - Every call that can wait has a bound: ccomConfig_t.timeoutMs or ccomCommSetTimeout for operations, .initTimeoutMs
 *   for start-up.
 * - Buffers are host memory, any alignment. `count` is in elements. A count of 0 is legal everywhere and still
 *   synchronises like any other count. In-place use is allowed where a function says so; any other overlap of send
 *   and receive buffer is ccomInvalidArgument.
 * - stream == NULL: the call runs in the caller's thread and returns when this rank's part is done: its receive
 *   buffer is complete and its send buffer may be reused. With a stream the call returns once the operation is
 *   queued; both buffers belong to ccom until the stream is synchronised.
 * - Results are bitwise equal on all ranks, and from run to run for the same call on the same communicator shape.
 *   16- and 8-bit floating types accumulate in float and round to nearest even, or at random: ccomConfig_t.rounding.
 * - After a call on the NULL stream has returned, with or without an error, ccom does not write to its buffers.
 * - A communicator's first asynchronous error is final: every later operation returns the same error. The receive
 *   buffer of a failed operation is unspecified. ccomCommAbort and ccomCommDestroy always work and never wait for
 * peers.
 * - ccomInvalidArgument and ccomInvalidUsage have no effect: the communicator stays good.
 */
#ifndef CCOM_CCOM_H_
#define CCOM_CCOM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CCOM_MAJOR 0
#define CCOM_MINOR 1
#define CCOM_PATCH 0
/* X * 10000 + Y * 100 + Z */
#define CCOM_VERSION_CODE (CCOM_MAJOR * 10000 + CCOM_MINOR * 100 + CCOM_PATCH)

#if defined(_WIN32) || !defined(__GNUC__)
#define CCOM_API
#else
#define CCOM_API __attribute__((visibility("default")))
#endif

typedef struct ccomComm* ccomComm_t;
typedef struct ccomStream* ccomStream_t;
typedef struct ccomEvent* ccomEvent_t;

#define CCOM_UNIQUE_ID_BYTES 128
/* Names one communicator and carries the secret that admits ranks to it: pass it on as you would a password. */
typedef struct {
  char internal[CCOM_UNIQUE_ID_BYTES];
} ccomUniqueId;

/* 0..8 are NCCL's numbers (1, a CUDA error, does not occur). */
typedef enum {
  ccomSuccess = 0,
  ccomSystemError = 2,     /* a system call failed; the text holds errno */
  ccomInternalError = 3,   /* a bug in ccom */
  ccomInvalidArgument = 4, /* a bad value; no effect */
  ccomInvalidUsage = 5,    /* a legal value at the wrong moment; no effect */
  ccomRemoteError = 6,     /* a peer process is gone or cannot be reached; ccomGetErrorInfo names it */
  ccomInProgress = 7,      /* not finished yet (queries only) */
  ccomTimeout = 8,         /* a deadline passed; the text names who is late */
  ccomMismatch = 32,       /* ranks made different calls; the text holds both */
  ccomAborted = 33,        /* ccomCommAbort was called here or on a peer */
  ccomRevoked = 34,        /* reserved */
  ccomOutOfMemory = 35,    /* memory, descriptors or space ran out */
  ccomConfigError = 36,    /* a setting is wrong or differs between ranks */
  ccomTransportError = 37, /* a transport failed in a way that names no dead peer */
  ccomNotSupported = 38,   /* legal, but this build, machine or fabric cannot do it */
  ccomResultForceInt = 0x7fffffff
} ccomResult_t;

/* 0..11 are NCCL's numbers. */
typedef enum {
  ccomInt8 = 0,
  ccomUint8 = 1,
  ccomInt32 = 2,
  ccomUint32 = 3,
  ccomInt64 = 4,
  ccomUint64 = 5,
  ccomFloat16 = 6,
  ccomFloat32 = 7,
  ccomFloat64 = 8,
  ccomBfloat16 = 9,
  ccomFloat8e4m3 = 10, /* OCP E4M3FN: no infinity, largest finite value 448; overflow becomes NaN */
  ccomFloat8e5m2 = 11, /* OCP E5M2 */
  ccomInt16 = 32,
  ccomUint16 = 33,
  ccomBool = 34,                    /* one byte, 0 or 1 */
  ccomComplex64 = 35,               /* two floats */
  ccomComplex128 = 36,              /* two doubles */
  ccomDataTypeForceInt = 0x7fffffff /* no type: lets any int be passed, and be refused */
} ccomDataType_t;

/*
 * 0..4 are NCCL's numbers. Values from ccomNumOps on are operators made by ccomRedOpCreatePreMulSum.
 * Legal pairs: sum, prod, avg: every type but bool for avg; max, min: every type but complex (a NaN wins; +0 is above
 * -0); band, bor, bxor: integers and bool; land, lor: integers and bool, result 0 or 1. For bool sum is "or" and
 * prod is "and". Integer sums wrap; integer avg divides the wrapped sum, truncating towards zero.
 */
typedef enum {
  ccomSum = 0,
  ccomProd = 1,
  ccomMax = 2,
  ccomMin = 3,
  ccomAvg = 4,
  ccomBand = 8,
  ccomBor = 9,
  ccomBxor = 10,
  ccomLand = 11,
  ccomLor = 12,
  ccomNumOps = 64
} ccomBuiltinOp_t;
typedef int ccomRedOp_t;

typedef enum {
  ccomScalarDevice = 0,        /* read when the operation runs */
  ccomScalarHostImmediate = 1, /* read now */
  ccomScalarResidenceForceInt = 0x7fffffff
} ccomScalarResidence_t;

/* ---- Library ---------------------------------------------------------------------------------------------------- */

CCOM_API ccomResult_t ccomGetVersion(int* version);
/* A static sentence for a result code. Never NULL. */
CCOM_API const char* ccomGetErrorString(ccomResult_t result);
/* The text of the last error of `comm`, or, with comm NULL, of the calling thread's last failed call. Never NULL; ""
 * if there was none. Valid until the thread's next ccom call. */
CCOM_API const char* ccomGetLastError(ccomComm_t comm);

#define CCOM_MAX_ERROR_PEERS 16
typedef struct {
  size_t size; /* set by CCOM_ERROR_INFO_INIT */
  ccomResult_t result;
  char operation[32];              /* "allreduce", "" when no operation was under way */
  uint64_t sequence;               /* which collective call on this communicator, from 1 */
  int nPeers;                      /* how many ranks the error blames */
  int peers[CCOM_MAX_ERROR_PEERS]; /* the first of them */
  char host[64];                   /* where the first of them runs */
  int sysErrno;                    /* 0 if no system call is involved */
  char text[1024];                 /* what happened, in a sentence */
  char cure[256];                  /* what to do about it, "" if nothing is known */
} ccomErrorInfo_t;
#define CCOM_ERROR_INFO_INIT \
  { sizeof(ccomErrorInfo_t), ccomSuccess, "", 0, 0, {0}, "", 0, "", "" }
/* The communicator's sticky error as fields; comm NULL: the calling thread's last error. */
CCOM_API ccomResult_t ccomGetErrorInfo(ccomComm_t comm, ccomErrorInfo_t* info);

typedef enum { ccomLogError = 0, ccomLogWarn = 1, ccomLogInfo = 2, ccomLogDebug = 3 } ccomLogLevel_t;
typedef void (*ccomLogFn)(ccomLogLevel_t level, const char* message, void* user);
/* Receives every log line from any thread; must not call ccom. fn NULL restores the default (stderr, CCOM_LOG). */
CCOM_API ccomResult_t ccomSetLogCallback(ccomLogFn fn, void* user);

typedef struct {
  const char* key;          /* "CCOM_ALGO" */
  const char* value;        /* in force in this process */
  const char* defaultValue; /* "" means unset */
  const char* origin;       /* "default" or "environment" */
  const char* help;
} ccomParamDesc_t;
/* Every CCOM_* variable that this version knows, in alphabetical order. The list is static. */
CCOM_API ccomResult_t ccomParamList(const ccomParamDesc_t** list, size_t* n);
/* Copies the value of one parameter, with a terminating 0, into `value` of *length bytes; sets *length to the bytes
 * needed. origin may be NULL. */
CCOM_API ccomResult_t ccomParamGet(const char* key, char* value, size_t* length, const char** origin);

/* ---- Start ------------------------------------------------------------------------------------------------------ */

/* Makes an id for one communicator and starts its meeting point in this process, on the interface chosen by
 * CCOM_SOCKET_IFNAME. Any process may call it, usually that of rank 0; it must live until all ranks are in. */
CCOM_API ccomResult_t ccomGetUniqueId(ccomUniqueId* id);
/* The same without carrying bytes by hand. All ranks pass the same url:
 *   file:///path    rank 0 makes the id and leaves it there (mode 0600); the others wait for it. Several hosts need a
 *                   shared file system.
 *   tcp://host:port rank 0 listens there. The secret comes from CCOM_SECRET or CCOM_SECRET_FILE; without one only
 *                   loopback addresses are allowed.
 *   env://          one of the two above, from the launcher's environment: docs/launchers.md.
 * Blocking, at most CCOM_INIT_TIMEOUT_MS. */
CCOM_API ccomResult_t ccomUniqueIdFromUrl(const char* url, int nranks, int rank, ccomUniqueId* id);
/* Reads rank and number of ranks from the launcher's environment: CCOM_RANK/CCOM_NRANKS, torchrun, Open MPI, PMI,
 * Slurm, Kubeflow Trainer, Kubernetes, SageMaker, Neuron: docs/launchers.md. ccomInvalidUsage if there is none. localRank and localNRanks may be NULL; -1 if unknown. */
CCOM_API ccomResult_t ccomGetLaunch(int* rank, int* nranks, int* localRank, int* localNRanks);

/* All fields are optional; CCOM_CONFIG_INIT sets them to "default". A field wins over its environment variable. Strings
 * are copied. */
typedef struct {
  size_t size;
  const char* commName;  /* for texts */
  int64_t timeoutMs;     /* operations; default 300000 (CCOM_TIMEOUT_MS) */
  int64_t initTimeoutMs; /* start-up; default 60000 (CCOM_INIT_TIMEOUT_MS) */
  const char* transport; /* "shm", "tcp", "ofi" or a list; a named one is required, not preferred (CCOM_TRANSPORT) */
  const char* algorithm; /* as CCOM_ALGO */
  const char* topology;  /* as CCOM_TOPOLOGY */
  const char* ifname;    /* as CCOM_SOCKET_IFNAME */
  const char* hostId;    /* as CCOM_HOSTID */
  int64_t maxMemory;     /* bytes of buffers per communicator; default 268435456 (CCOM_MAX_MEMORY) */
  /* "nearest" or "stochastic" (CCOM_ROUNDING): how sums, products and averages of the 16- and 8-bit floating types are
   * rounded to their type. Nearest, the default: to the nearest value, ties to even. Stochastic: up or down at random,
   * up with the probability of the fraction that is dropped, so that the expectation is the exact value and small
   * gradients are not lost. Contributions are still added in float, in the order of ranks, and rounded once. Numbers
   * that need no rounding are not changed; other types, other operators, and the products of a premultiplied sum, which
   * are rounded before they are added, take no notice.
   *
   * The random bits are a function of roundingSeed (CCOM_ROUNDING_SEED, 0 or more), of the number of the collective
   * call on this communicator, and of the element's index: results are bitwise equal on all ranks, and from run to run
   * for the same seed and the same sequence of calls, but the same call made twice rounds differently. Where ranks do
   * not reduce through shared memory - several hosts, an imposed topology, a named transport without shm, a named
   * algorithm - starting a communicator with "stochastic" fails with ccomNotSupported. */
  const char* rounding;
  int64_t roundingSeed; /* default 0 */
  int messages;         /* 1: carries messages, see ccomMessageSend; the same on all ranks; default 0 (CCOM_MESSAGES) */
} ccomConfig_t;
#define CCOM_CONFIG_INIT \
  { sizeof(ccomConfig_t), NULL, -1, -1, NULL, NULL, NULL, NULL, NULL, -1, NULL, -1, -1 }

/* Collective over the nranks processes or threads that hold `id`; blocking, at most initTimeoutMs. On error *comm is
 * NULL and the text names the phase and the ranks that are missing. */
CCOM_API ccomResult_t ccomCommInitRank(ccomComm_t* comm, int nranks, ccomUniqueId id, int rank);
CCOM_API ccomResult_t ccomCommInitRankConfig(ccomComm_t* comm, int nranks, ccomUniqueId id, int rank,
                                             const ccomConfig_t* config);
/* nlocal communicator handles for ranks that are threads of this process (or one thread that uses groups). */
CCOM_API ccomResult_t ccomCommInitAll(ccomComm_t* comms, int nlocal, const ccomConfig_t* config);

/* The bound of the operations of this rank that are asked for from now on, instead of timeoutMs; of one that is queued
 * on a stream or in a group, it counts what was set when it was asked for. Sends and receives that run together share
 * the shortest. Local, any thread; ranks may differ. timeoutMs > 0. */
CCOM_API ccomResult_t ccomCommSetTimeout(ccomComm_t comm, int64_t timeoutMs);

/* ---- End, errors ------------------------------------------------------------------------------------------------ */

/* Waits until all queued operations of this rank are done. Bounded by timeoutMs. Not for messages. */
CCOM_API ccomResult_t ccomCommFinalize(ccomComm_t comm);
/* Frees the communicator. Local; waits for operations of this rank that are still queued, never for peers beyond them.
 * Messages that are not complete are not waited for, but for their functions. */
CCOM_API ccomResult_t ccomCommDestroy(ccomComm_t comm);
/* Ends all operations of this communicator, here and on the peers, with ccomAborted. Local, any thread, returns at
 * once. The handle stays valid until ccomCommDestroy. */
CCOM_API ccomResult_t ccomCommAbort(ccomComm_t comm);
/* *result: ccomSuccess, or the sticky error, also when no call is under way. */
CCOM_API ccomResult_t ccomCommGetAsyncError(ccomComm_t comm, ccomResult_t* result);

/* ---- Ask -------------------------------------------------------------------------------------------------------- */

CCOM_API ccomResult_t ccomCommCount(ccomComm_t comm, int* count);
CCOM_API ccomResult_t ccomCommUserRank(ccomComm_t comm, int* rank);

typedef struct {
  size_t size;
  int rank;
  int nranks;
  int nhosts;
  int localRank;
  int localNRanks;
  char transports[64];  /* in use, "shm" or "shm,tcp" */
  char topology[64];    /* "host", or the imposed preset */
  uint64_t bytesSent;   /* payload in messages of this rank so far; calls through shared memory send none */
  uint64_t memoryBytes; /* staging and transport memory held by this rank for this communicator */
  uint64_t sequence;    /* collective calls so far */
} ccomCommInfo_t;
#define CCOM_COMM_INFO_INIT \
  { sizeof(ccomCommInfo_t), 0, 0, 0, 0, 0, "", "", 0, 0, 0 }
/* Waits for the calls before it: not for callbacks of a stream that holds such calls. The same for ccomCommGetBytesSent
 * and ccomExplain. */
CCOM_API ccomResult_t ccomCommGetInfo(ccomComm_t comm, ccomCommInfo_t* info);
/* Payload bytes that this rank has sent to `peer` in messages so far; see ccomCommInfo_t.bytesSent. */
CCOM_API ccomResult_t ccomCommGetBytesSent(ccomComm_t comm, int peer, uint64_t* bytes);
/* One JSON object as text: candidates with steps, bytes and expected time, the choice and the reason, for a collective
 * named as in ccom-bench ("allreduce") of `count` elements. Where a topology is imposed, also what ccomTopoExplain
 * adds. Local, no communication. length as in ccomParamGet. */
CCOM_API ccomResult_t ccomExplain(ccomComm_t comm, const char* collective, size_t count, ccomDataType_t type, int root,
                                  char* json, size_t* length);
/* The same for a machine that need not be here, without a communicator: "640*trn2.48xlarge/1" (hosts * preset / ranks
 * per device), "torus:4x4", or the path of a JSON file with a fabric or a topology; docs/planner.md has the names. Adds
 * to the object: ranks; the lower bound and the narrowest cut; by how much each candidate misses it ("times_bound") and
 * why it was chosen or lost ("why"); what the chosen plan has each kind of link carry, the busiest link and the rounds,
 * or in "links_note" why that was not counted (more than 1024 ranks), or without what (windows). ccomConfigError: no
 * such topology; ccomNotSupported: no algorithm can run there. Local. */
CCOM_API ccomResult_t ccomTopoExplain(const char* topology, const char* collective, size_t count, ccomDataType_t type,
                                      int root, char* json, size_t* length);

/* ---- Streams and events ----------------------------------------------------------------------------------------- */

/* An ordered queue of operations, run by one library thread. */
CCOM_API ccomResult_t ccomStreamCreate(ccomStream_t* stream);
/* Waits for the operations that are queued, then frees the stream. Returns the stream's first error. */
CCOM_API ccomResult_t ccomStreamDestroy(ccomStream_t stream);
/* ccomSuccess: empty; ccomInProgress: not yet; else the first error since the last synchronise. */
CCOM_API ccomResult_t ccomStreamQuery(ccomStream_t stream);
/* Waits until the queue is empty; timeoutMs < 0: as long as its operations' own deadlines. Returns the first error of
 * the operations since the last call, and clears it. */
CCOM_API ccomResult_t ccomStreamSynchronize(ccomStream_t stream, int64_t timeoutMs);
/* Operations queued on `stream` after this call wait for `event`. */
CCOM_API ccomResult_t ccomStreamWaitEvent(ccomStream_t stream, ccomEvent_t event);
/* Calls fn in the stream's thread, in order, with the stream's state so far; fn must not wait for the same stream. */
CCOM_API ccomResult_t ccomStreamAddCallback(ccomStream_t stream, void (*fn)(void* user, ccomResult_t state),
                                            void* user);
CCOM_API ccomResult_t ccomEventCreate(ccomEvent_t* event);
CCOM_API ccomResult_t ccomEventDestroy(ccomEvent_t event);
/* The event becomes complete when everything queued on `stream` so far is done. NULL stream: at once. */
CCOM_API ccomResult_t ccomEventRecord(ccomEvent_t event, ccomStream_t stream);
/* ccomSuccess, ccomInProgress, or the first error of what was recorded. An event never recorded is complete. */
CCOM_API ccomResult_t ccomEventQuery(ccomEvent_t event);
/* timeoutMs < 0: no limit of its own. */
CCOM_API ccomResult_t ccomEventSynchronize(ccomEvent_t event, int64_t timeoutMs);

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

/* Page-aligned, zeroed memory that peers on the host can reach: collectives on it copy least. From a reserve of address
 * space (CCOM_ARENA_BYTES), without communication, before or after start-up.
 * A forked child has a copy of it, for its own use only, that is made page by page when the child writes. A page that
 * the child has not written to yet follows what the parent writes there, and is zero once the parent has freed it. */
CCOM_API ccomResult_t ccomMemAlloc(void** pointer, size_t bytes);
/* The memory goes back to the system at once; no call may be under way on it. In a forked child, of memory that the
 * parent allocated: no effect. */
CCOM_API ccomResult_t ccomMemFree(void* pointer);

/* Tells that collectives will use [buffer, buffer + bytes) often. Local. Memory of ccomMemAlloc is ready already. Of
 * ordinary memory (private, anonymous: malloc, mmap), if it begins and ends on a page, the pages are replaced in place
 * by pages that peers on the host can map; address and contents stay. Any other buffer is accepted and works, but
 * copies (CCOM_LOG=info says why). No rank need do as the others do. Until ccomCommDeregister: no other thread may
 * write to the buffer while this call or that one runs; the buffer must not be freed, unmapped or remapped. Children
 * forked meanwhile have a copy as of memory of ccomMemAlloc. */
CCOM_API ccomResult_t ccomCommRegister(ccomComm_t comm, void* buffer, size_t bytes, void** handle);
/* Local. The pages are ordinary ones again. */
CCOM_API ccomResult_t ccomCommDeregister(ccomComm_t comm, void* handle);

typedef struct ccomWindow* ccomWindow_t;
/* As ccomCommRegister, and every rank learns where the others' buffers are. Collective and blocking; sizes may differ.
 * flags: 0. */
CCOM_API ccomResult_t ccomCommWindowRegister(ccomComm_t comm, void* buffer, size_t bytes, ccomWindow_t* window,
                                             int flags);
/* Local. */
CCOM_API ccomResult_t ccomCommWindowDeregister(ccomComm_t comm, ccomWindow_t window);
/* Where this process can load and store `peer`'s buffer. ccomNotSupported where it cannot be reached. Valid until the
 * peer deregisters. ccom orders nothing but its own calls: use ccomBarrier. */
CCOM_API ccomResult_t ccomWinGetPeerPtr(ccomWindow_t window, int peer, void** pointer);

/* ---- Reductions ------------------------------------------------------------------------------------------------- */

/* An operator "sum of scalar * x" for `comm` and `type`; *scalar has that type. Each rank may have another scalar. The
 * product is rounded to the type before the sum. */
CCOM_API ccomResult_t ccomRedOpCreatePreMulSum(ccomRedOp_t* op, void* scalar, ccomDataType_t type,
                                               ccomScalarResidence_t residence, ccomComm_t comm);
CCOM_API ccomResult_t ccomRedOpDestroy(ccomRedOp_t op, ccomComm_t comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------ */

/* recv[i] = op over ranks of send[i]. In place: send == recv. */
CCOM_API ccomResult_t ccomAllReduce(const void* send, void* recv, size_t count, ccomDataType_t type, ccomRedOp_t op,
                                    ccomComm_t comm, ccomStream_t stream);
/* recv (nranks * sendcount) = the send buffers in rank order. In place: send == recv + rank * sendcount. */
CCOM_API ccomResult_t ccomAllGather(const void* send, void* recv, size_t sendcount, ccomDataType_t type,
                                    ccomComm_t comm, ccomStream_t stream);
/* recv (recvcount) = block `rank` of the sum of the send buffers (nranks * recvcount). In place: recv == send + rank *
 * recvcount; the rest of send is then unspecified afterwards. */
CCOM_API ccomResult_t ccomReduceScatter(const void* send, void* recv, size_t recvcount, ccomDataType_t type,
                                        ccomRedOp_t op, ccomComm_t comm, ccomStream_t stream);
/* recv = root's send, on every rank. send matters on root only. In place: send == recv. */
CCOM_API ccomResult_t ccomBroadcast(const void* send, void* recv, size_t count, ccomDataType_t type, int root,
                                    ccomComm_t comm, ccomStream_t stream);
/* As ccomAllReduce, result on root only; recv matters on root only. In place: send == recv. */
CCOM_API ccomResult_t ccomReduce(const void* send, void* recv, size_t count, ccomDataType_t type, ccomRedOp_t op,
                                 int root, ccomComm_t comm, ccomStream_t stream);
/* Block j of send (count elements) goes to rank j; block i of recv comes from rank i. In place: send == recv. */
CCOM_API ccomResult_t ccomAlltoAll(const void* send, void* recv, size_t count, ccomDataType_t type, ccomComm_t comm,
                                   ccomStream_t stream);
/* recv on root (nranks * count) = the send buffers in rank order. In place on root: send == recv + root * count. */
CCOM_API ccomResult_t ccomGather(const void* send, void* recv, size_t count, ccomDataType_t type, int root,
                                 ccomComm_t comm, ccomStream_t stream);
/* recv (count) = block `rank` of root's send (nranks * count). In place on root: recv == send + root * count. */
CCOM_API ccomResult_t ccomScatter(const void* send, void* recv, size_t count, ccomDataType_t type, int root,
                                  ccomComm_t comm, ccomStream_t stream);
/* Returns when every rank has called it. */
CCOM_API ccomResult_t ccomBarrier(ccomComm_t comm, ccomStream_t stream);
/* Matched with the peer's ccomRecv in order, without tags; type and count must be equal. Outside a group it may block
 * until the peer receives; inside one all sends and receives of the group progress together. peer == own rank only in a
 * group. */
CCOM_API ccomResult_t ccomSend(const void* send, size_t count, ccomDataType_t type, int peer, ccomComm_t comm,
                               ccomStream_t stream);
CCOM_API ccomResult_t ccomRecv(void* recv, size_t count, ccomDataType_t type, int peer, ccomComm_t comm,
                               ccomStream_t stream);

/* Calls between Start and End (of one thread, nestable) are collected and posted at the outermost End, all
 * communicators at the same time; those on the NULL stream are complete when End returns. On one communicator and
 * stream they run in order, neighbouring sends and receives together; keep a communicator on one stream within a group.
 * End returns the first error. A wrong argument is returned at once by the call itself and leaves the group as it was.
 */
CCOM_API ccomResult_t ccomGroupStart(void);
CCOM_API ccomResult_t ccomGroupEnd(void);

/* ---- Messages --------------------------------------------------------------------------------------------------- */

/* Tagged messages between two ranks of a communicator that was started with ccomConfig_t.messages. They are independent
 * of the order of collectives, of ccomSend and ccomRecv, of groups and streams, and of messages with another rank or
 * tag; those of one sender with one tag are received in the order in which they were sent. */
#define CCOM_ANY_RANK (-1)
typedef struct ccomMessage* ccomMessage_t;
/* Called once, when the message is complete, by a thread that waits for or asks about any message of the communicator,
 * or by one of ccom's; never within the call that posts a message, but perhaps before it has returned, and after a wait
 * for the message has. It may post messages, wait for them and free them; it must not destroy the communicator. While
 * it runs, other threads move messages on. peer: who sent or received; -1 if that is not known. */
typedef void (*ccomMessageFn)(void* user, ccomResult_t result, int peer);

/* Posts a message of `bytes` bytes and returns at once. Of the sender's buffer ccom only reads until the message is
 * complete, the receiver's is ccom's until then. The number of bytes must be equal on both sides: ccomMismatch, on
 * both, names both numbers. A send is complete when its buffer may be reused: a small one, up to 992 bytes, as a rule
 * at once, a larger one when it has been received. A receive from CCOM_ANY_RANK gets the message that came first. A
 * message to this rank itself is complete when it is received. Any tag will do.
 *
 * The message's deadline is the bound of operations at this moment (ccomConfig_t.timeoutMs, ccomCommSetTimeout). A late
 * message is ccomTimeout, which like any error of a message is the communicator's, and ends all messages and
 * operations. done may be NULL. message may be NULL if it is not waited for; else it must be freed. It is written
 * before done is called. An error that is returned here means that nothing was posted, and done is not called. */
CCOM_API ccomResult_t ccomMessageSend(const void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm,
                                      ccomMessageFn done, void* user, ccomMessage_t* message);
CCOM_API ccomResult_t ccomMessageRecv(void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm,
                                      ccomMessageFn done, void* user, ccomMessage_t* message);
/* Waits until the message is complete, at most timeoutMs; < 0: the message has a deadline of its own. Moves messages on
 * meanwhile. Several threads may wait for one message. ccomSuccess, the error, or ccomInProgress if the time is up.
 * peer may be NULL; *peer: as above, once the message is complete. */
CCOM_API ccomResult_t ccomMessageWait(ccomMessage_t message, int64_t timeoutMs, int* peer);
/* ccomSuccess, ccomInProgress, or the error. */
CCOM_API ccomResult_t ccomMessageTest(ccomMessage_t message, int* peer);
/* Frees the handle; a message that is not complete goes on. From any thread, but not while another one waits. Handles
 * outlive the communicator, whose destruction completes their messages with ccomAborted. */
CCOM_API ccomResult_t ccomMessageFree(ccomMessage_t message);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CCOM_CCOM_H_ */

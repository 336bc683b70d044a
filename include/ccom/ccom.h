/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ccom: collective communication for data-parallel training on host memory.
 *
 * The complete public API, C99. Conventions:
 *
 * - Every call is thread-safe. Calls on one communicator take effect in the order in which they are made; all ranks
 *   must make the same collective calls on a communicator in the same order.
 * - Every blocking call has a timeout: ccomConfig_t.timeoutMs or ccomCommSetTimeout for operations, .initTimeoutMs
 *   for start-up. Behind earlier calls of the same communicator it begins anew with each of them that ends.
 * - Buffers are host memory of any alignment. `count` is in elements. A count of 0 is allowed everywhere and
 *   synchronises like any other count. In-place use is allowed where documented; any other overlap of send and
 *   receive buffer is ccomInvalidArgument.
 * - stream == NULL: the call runs in the caller's thread and returns when this rank's part is complete: its receive
 *   buffer is valid and its send buffer may be reused. With a stream the call returns once the operation is queued;
 *   both buffers belong to ccom until the stream is synchronised.
 * - Results are bitwise equal on all ranks, and in every run of the same call on the same communicator shape; on any
 *   shape too if ccomConfig_t.determinism says so. The floating-point environment of a thread that calls has no effect
 *   on them: arithmetic rounds to nearest, keeps subnormals and raises no trap. Afterwards the environment is as it
 *   was; exception flags may be set.
 *   16- and 8-bit floating types accumulate in float and round to nearest even, once or several times, or at random:
 *   ccomConfig_t.rounding.
 * - After a call on the NULL stream has returned, with or without an error, ccom does not write to its buffers.
 * - A communicator's first asynchronous error is final: every later operation returns the same error. The receive
 *   buffer of a failed operation is unspecified. ccomCommAbort always works and never waits for peers; ccomCommDestroy
 *   always works, and waits for this rank's own calls that are not over, and up to a second until peers have what it
 *   has sent.
 * - ccomInvalidArgument and ccomInvalidUsage have no effect: the communicator remains usable.
 * - Structures that begin with size, magic and version are initialised by the macro beside them. They grow at their end
 *   only, and the default of every field that comes after 0.9.0 is 0. So a program runs with later libraries, which
 *   take what it does not have for 0, and with earlier ones if it leaves what they do not know at 0; otherwise the
 *   call is ccomInvalidArgument, and the text names both versions. What such a structure returns is filled as far as
 *   the program's header has it; fields that the library does not know become 0.
 * - Numbers that this header does not know may come from later libraries: take an unknown result for an error, an
 *   unknown level of a log line for ccomLogDebug. Fields named reserved are 0.
 */
#ifndef CCOM_CCOM_H_
#define CCOM_CCOM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CCOM_MAJOR 0
#define CCOM_MINOR 9
#define CCOM_PATCH 0
/* X * 10000 + Y * 100 + Z */
#define CCOM_VERSION_CODE (CCOM_MAJOR * 10000 + CCOM_MINOR * 100 + CCOM_PATCH)

#if defined(_WIN32) || !defined(__GNUC__)
#define CCOM_API
#else
#define CCOM_API __attribute__((visibility("default")))
#endif

/* A communicator: the ranks that make collective calls together. */
typedef struct ccomComm* ccomComm_t;
/* A queue of operations, see ccomStreamCreate. */
typedef struct ccomStream* ccomStream_t;
/* A point in a stream's queue, see ccomEventRecord. */
typedef struct ccomEvent* ccomEvent_t;

#define CCOM_UNIQUE_ID_BYTES 128
/* Identifies one communicator and contains the secret that authenticates its ranks: treat it like a password. */
typedef struct {
  char internal[CCOM_UNIQUE_ID_BYTES];
} ccomUniqueId;

/* 0..8 are NCCL's numbers (1, a CUDA error, does not occur). */
typedef enum {
  ccomSuccess = 0,
  ccomSystemError = 2,     /* a system call failed; the text contains errno */
  ccomInternalError = 3,   /* a bug in ccom */
  ccomInvalidArgument = 4, /* invalid value; no effect */
  ccomInvalidUsage = 5,    /* valid, but not in this state; no effect */
  ccomRemoteError = 6,     /* a peer process has exited or cannot be reached; ccomGetErrorInfo names it */
  ccomInProgress = 7,      /* not finished yet (queries only) */
  ccomTimeout = 8,         /* timed out; the text names the stragglers */
  ccomMismatch = 32,       /* ranks made different calls; the text contains both */
  ccomAborted = 33,        /* ccomCommAbort was called here or on a peer */
  ccomRevoked = 34,        /* ccomCommRevoke was called here or on a peer */
  ccomOutOfMemory = 35,    /* out of memory, file descriptors or disk space */
  ccomConfigError = 36,    /* a setting is wrong or differs between ranks */
  ccomTransportError = 37, /* a transport failed, but not because of a dead peer */
  ccomNotSupported = 38,   /* valid, but not supported by this build, machine or fabric */
  ccomOperatorError = 39,  /* a function given to ccomRedOpCreate has failed; the text names the rank and the reason */
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
  ccomDataTypeForceInt = 0x7fffffff /* not a type: allows any int to be passed, and rejected */
} ccomDataType_t;

/*
 * 0..4 are NCCL's numbers. Values from ccomNumOps are operators created by ccomRedOpCreatePreMulSum or ccomRedOpCreate.
 * Valid pairs: sum, prod, avg: every type but bool for avg; max, min: every type but complex (a NaN wins; +0 is above
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
  ccomNumOps = 64,
  ccomBuiltinOpForceInt = 0x7fffffff
} ccomBuiltinOp_t;
/* A ccomBuiltinOp_t, or an operator of ccomRedOpCreatePreMulSum or ccomRedOpCreate. */
typedef int ccomRedOp_t;

/* When ccomRedOpCreatePreMulSum's scalar is read. */
typedef enum {
  ccomScalarDevice = 0,        /* read when the operation runs */
  ccomScalarHostImmediate = 1, /* read now */
  ccomScalarResidenceForceInt = 0x7fffffff
} ccomScalarResidence_t;

/* ---- Library ---------------------------------------------------------------------------------------------------- */

/* *version: CCOM_VERSION_CODE of the library that is loaded. */
CCOM_API ccomResult_t ccomGetVersion(int* version);
/* A static description of a result code. Never NULL. */
CCOM_API const char* ccomGetErrorString(ccomResult_t result);
/* The text of the last error of `comm`, or, with comm NULL or one that has had none, of the calling thread's last
 * failed call. Never NULL; "" if there was none. Valid until the thread's next ccom call. */
CCOM_API const char* ccomGetLastError(ccomComm_t comm);

/* What the macros that initialise structures write into them, by which a structure without is recognised. */
#define CCOM_STRUCT_MAGIC 0xcc0515edu

#define CCOM_MAX_ERROR_PEERS 16
/* An error by its parts; initialise with CCOM_ERROR_INFO_INIT. */
typedef struct {
  size_t size; /* this and the next two: set by CCOM_ERROR_INFO_INIT */
  uint32_t magic;
  uint32_t version;
  ccomResult_t result;
  int sysErrno;                    /* 0 if no system call is involved */
  uint64_t sequence;               /* number of the collective call on this communicator, from 1 */
  char operation[32];              /* "allreduce", "" if no operation was in progress */
  int nPeers;                      /* number of ranks blamed for the error */
  int reserved;                    /* 0 */
  int peers[CCOM_MAX_ERROR_PEERS]; /* the first of them */
  char host[256];                  /* host of the first of them */
  char text[1024];                 /* description of the error */
  char cure[256];                  /* suggested remedy, "" if unknown */
  char key[16];                    /* "CCOM-E025", which docs/errors.md explains */
} ccomErrorInfo_t;
#define CCOM_ERROR_INFO_INIT \
  { sizeof(ccomErrorInfo_t), CCOM_STRUCT_MAGIC, CCOM_VERSION_CODE, ccomSuccess, 0, 0, "", 0, 0, {0}, "", "", "", "" }
/* The communicator's sticky error as a struct; comm NULL: the calling thread's last error. */
CCOM_API ccomResult_t ccomGetErrorInfo(ccomComm_t comm, ccomErrorInfo_t* info);

/* Levels of log lines, see CCOM_LOG. */
typedef enum {
  ccomLogError = 0,
  ccomLogWarn = 1,
  ccomLogInfo = 2,
  ccomLogDebug = 3,
  ccomLogLevelForceInt = 0x7fffffff
} ccomLogLevel_t;
/* A function for ccomSetLogCallback; user: what was passed there. */
typedef void (*ccomLogFn)(ccomLogLevel_t level, const char* message, void* user);
/* Receives every log line, in order, one at a time, from a thread of ccom's; it may block and call ccom: no call and no
 * heartbeat waits for it, but for up to 10 ms a call that fails and ccomCommDestroy. Lines beyond 128 that wait are
 * dropped and counted. Returns when the function before, if there was one, has got all its lines and will not be called
 * again. fn NULL restores the default (stderr, CCOM_LOG and CCOM_LOG_FORMAT). */
CCOM_API ccomResult_t ccomSetLogCallback(ccomLogFn fn, void* user);

/* ---- Where ranks are: for errors, which say what every rank of the host was doing, and for tools. ---------------- */

/* The place in the program of this thread's next calls, as errors and tools show it ("train.py:220 (step)"), until it
 * is set again; NULL or "": the address from which a call comes, with file and line where the program has debug
 * information. For bindings of other languages, whose calls all come from one address. text: copied; what is beyond 120
 * bytes is not shown; of more than 8191 different ones the later ones are not known. Local, never blocks for long: some
 * 10 ns for the text of before, 100 ns for one that was used before. Without effect with CCOM_CALL_SITES=0. Returns
 * ccomSuccess. */
CCOM_API ccomResult_t ccomSetCallSite(const char* text);
/* A function for ccomSetLocator: writes a text that ends in 0, of at most size bytes with it, or leaves it as it is,
 * which is an empty one. user: what was passed there. */
typedef void (*ccomLocatorFn)(char* text, size_t size, void* user);
/* fn says where this process is when it is in no call ("train.py:214 (evaluate)"). It is called in a thread of ccom's,
 * one at a time, and only when somebody asks: another rank whose wait lasts or has timed out, or a tool. It should
 * answer within 100 ms: who asks waits for 300 ms at most. It may block, but must not call ccom. One per process, for
 * all communicators; fn NULL: none. Returns when the function before is not running any more, a second later at most.
 */
CCOM_API ccomResult_t ccomSetLocator(ccomLocatorFn fn, void* user);

/* One variable of ccomParamList. */
typedef struct {
  size_t size;              /* bytes that the library has filled: fields beyond came later */
  const char* key;          /* "CCOM_ALGO" */
  const char* value;        /* effective in this process */
  const char* defaultValue; /* "" means unset */
  const char* origin;       /* "default" or "environment" */
  const char* help;
} ccomParamDesc_t;
/* Every CCOM_* variable that this version knows, in alphabetical order, (*list)[0]->key first. The list is static. */
CCOM_API ccomResult_t ccomParamList(const ccomParamDesc_t* const** list, size_t* n);
/* Copies the value of one parameter, with a terminating 0, into `value` of *length bytes; sets *length to the bytes
 * needed. origin may be NULL. */
CCOM_API ccomResult_t ccomParamGet(const char* key, char* value, size_t* length, const char** origin);

/* ---- Start ------------------------------------------------------------------------------------------------------ */

/* Creates an id for one communicator and starts its rendezvous server in this process, on the interface chosen by
 * CCOM_SOCKET_IFNAME. Any process may call it, usually rank 0's; it must run until all ranks have joined.
 * Whoever holds the bytes can join; where CCOM_SECRET or CCOM_SECRET_FILE is set, only who has that secret too. */
CCOM_API ccomResult_t ccomGetUniqueId(ccomUniqueId* id);
/* The same without distributing bytes explicitly. All ranks pass the same url:
 *   file:///path    rank 0 creates the id and writes it there (mode 0600); the others wait for it. Several hosts need
 *                   a shared file system.
 *   tcp://host:port rank 0 listens there. The secret is derived from CCOM_SECRET or CCOM_SECRET_FILE; without one only
 *                   loopback addresses are allowed.
 *   env://          one of the two above, from the launcher's environment: docs/launchers.md.
 * Blocks for at most CCOM_INIT_TIMEOUT_MS. */
CCOM_API ccomResult_t ccomUniqueIdFromUrl(const char* url, int nranks, int rank, ccomUniqueId* id);
/* Reads rank and number of ranks from the launcher's environment: CCOM_RANK/CCOM_NRANKS, torchrun, Open MPI, PMI,
 * Slurm, Kubeflow Trainer, Kubernetes, SageMaker, Neuron: docs/launchers.md. ccomInvalidUsage without a launcher.
 * localRank and localNRanks may be NULL; -1 if unknown. */
CCOM_API ccomResult_t ccomGetLaunch(int* rank, int* nranks, int* localRank, int* localNRanks);

/* All fields are optional; CCOM_CONFIG_INIT sets them to their defaults. A field takes precedence over its environment
 * variable. Strings are copied. */
typedef struct {
  size_t size; /* this and the next two: set by CCOM_CONFIG_INIT */
  uint32_t magic;
  uint32_t version;
  const char* commName;  /* for error texts */
  int64_t timeoutMs;     /* operations; default 300000 (CCOM_TIMEOUT_MS) */
  int64_t initTimeoutMs; /* start-up; default 60000 (CCOM_INIT_TIMEOUT_MS) */
  const char* transport; /* "shm", "tcp", "ofi" or a list; listed transports are required (CCOM_TRANSPORT) */
  const char* algorithm; /* as CCOM_ALGO */
  const char* topology;  /* as CCOM_TOPOLOGY */
  const char* ifname;    /* as CCOM_SOCKET_IFNAME */
  const char* hostId;    /* as CCOM_HOSTID */
  int64_t maxMemory;     /* bytes, see CCOM_MAX_MEMORY; default 268435456 */
  /* "nearest", "once" or "stochastic" (CCOM_ROUNDING): how sums, products and averages of the 16- and 8-bit floating
   * types are rounded to their type. Contributions are added in float. Nearest, the default: to the nearest value, ties
   * to even, once inside a host and at most ceil(log2(hosts)) times more between hosts. Once: the same, exactly once,
   * wherever the ranks are, so that the result is the value nearest to the float sum. In which order float adds depends
   * on the communicator's shape, the size of the call and the algorithm, as with nearest, and so may the last bits of
   * the float sum; on nothing with determinism "full". Stochastic: once too, but up or down at random, up with the
   * probability of the dropped fraction, so that the expectation is the float sum and small gradients are not lost.
   * Values that need no rounding are unchanged; other types, other operators, and the products of a premultiplied sum,
   * which are rounded before they are added, are not affected.
   *
   * The random bits are a function of roundingSeed (CCOM_ROUNDING_SEED, 0 or more), of the number of the collective
   * call on this communicator, and of the element's index in the whole vector, wherever the ranks are: results are
   * bitwise equal on all ranks, and in every run on the same communicator shape with the same seed and sequence of
   * calls, but repeating a call rounds differently.
   *
   * Once and stochastic cost nothing where ranks share memory on one host. Between hosts of g ranks contributions cross
   * unsummed, (g+1)/2 times the bytes of an allreduce with nearest, or sums of hosts cross as float32, 2 times the
   * bytes for 16-bit types and 4 times for 8-bit ones: whichever is expected to take less time. With determinism "full"
   * only the first is possible. Algorithms that round more often, named in `algorithm`, are ccomNotSupported at the
   * call, and such programs of CCOM_PLAN ccomConfigError. */
  const char* rounding;
  int64_t roundingSeed; /* default 0 */
  int messages;         /* 1: supports messages, see ccomMessageSend; equal on all ranks; default 0 (CCOM_MESSAGES) */
  int reserved;         /* 0 */
  /* NULL, or a function that can end a wait, for interpreters that have to look at signals themselves. A thread that
   * waits in a call of this communicator, or while ranks meet at its start, calls interrupted(interruptedUser) every
   * few milliseconds. As soon as that returns anything but 0, the communicator is aborted, and the call returns
   * ccomAborted; at the start the ranks get an error and there is no communicator. Called by several threads, ccom's
   * own included, as long as the communicator exists. It must not call ccom, and it delays the call. */
  int (*interrupted)(void* interruptedUser);
  void* interruptedUser;
  /* 0: ccomCommInitRankConfig, ccomCommSplit, ccomCommCreateGroup and ccomCommFinalize return ccomInProgress at once
   * and go on in a thread of their own; ccomCommGetAsyncError says ccomInProgress until they are over, then ccomSuccess
   * or the error, which for a start that failed is all there is to the handle. Until then other calls on it are
   * ccomInvalidUsage, but ccomCommAbort and ccomCommDestroy end a start within milliseconds (not that of a part, which
   * they wait for), and ccomCommDestroy waits for an end. 1, the default: they block. Parts inherit it. */
  int blocking;
  int reserved2; /* 0 */
  /* "shape" or "full" (CCOM_DETERMINISM), equal on all ranks: what the bits of a sum, product or average of a floating
   * type, and of an operator of ccomRedOpCreate, depend on besides the inputs. Shape, the default: on the
   * communicator's shape (which ranks share a host, topology and transports), and on the size of the call and the
   * algorithm. Full: on nothing else. The result is ((x0 + x1) + x2) ..., in the order of the ranks, with 16- and 8-bit
   * types in float and rounded once, whatever the size, the algorithm, the hosts and where the ranks are. Other types
   * and operators have such results anyway.
   *
   * Full costs nothing where ranks share memory on one host; between hosts contributions cross unsummed, so that an
   * allreduce sends up to (g+1)/2 times the bytes with g ranks on a host (docs/planner.md). Algorithms that form sums
   * on the way, named in `algorithm`, are ccomNotSupported at the call, and such programs of CCOM_PLAN
   * ccomConfigError; CCOM_CROSSING has no effect on these reductions. */
  const char* determinism;
  /* As what the sums of hosts cross between hosts (CCOM_WIRE): "off" (default), in the call's type; "fp8" or "int8", as
   * blocks of 64 elements, 8 bits each, with a float32 scale: 68 bytes instead of 256 of float32 or 128 of bfloat16.
   * Equal on all ranks.
   *
   * It has an effect on ccomAllReduce of ccomFloat32 and ccomBfloat16 with ccomSum, ccomAvg or a premultiplied sum, of
   * more than 16 KiB, between hosts; on no other call, on one host, nor on an imposed fabric. Hosts sum in float32 what
   * their ranks give, encode the sum, and add what they decode in float32; the total is encoded once more, and all
   * ranks decode the same blocks. Results are bitwise equal on all ranks and in every run on the same communicator
   * shape.
   *
   * Error bound: a number x of a block whose largest magnitude is m is encoded with an error of at most
   *   "fp8":  e(x) = max(|x| / 16, m / 2^17, 2^-136)         (E4M3, scale a power of two)
   *   "int8": e(x) = max(m / 253, 2^-127)                    (-127 ... 127)
   * and a result is off by at most the sum of e(s) over the hosts' sums s, and e(t) of the total t of what was decoded
   * (of an average e(t) of the quotient, the others divided by the ranks), besides the roundings of float32, and that
   * to bfloat16. A block with an infinity or NaN, also one that float32 sums overflow to, is NaN as a whole (in "fp8"
   * from 3.29e38 on): up to 64 elements beside each other become NaN, and none of them becomes finite.
   *
   * ccomInvalidArgument together with determinism "full" or rounding "once" or "stochastic", whose promises it cannot
   * keep. Algorithms that send sums otherwise, named in `algorithm`, are ccomNotSupported at such a call. */
  const char* wire;
  /* 1: a thread that waits in a call calls `interrupted` every microsecond or so as soon as the wait has lasted for two
   * (with more ranks than processors: a few switches between them), and never sleeps for more than 100 us, so that it
   * can keep something else going meanwhile, another library's messages for example, which others may need before they
   * come. 0: every few milliseconds. Ranks may differ. Has no effect on calls that do not wait. */
  int interruptedOften;
  int reserved3; /* 0 */
} ccomConfig_t;
#define CCOM_CONFIG_INIT                                                                                              \
  {                                                                                                                   \
    sizeof(ccomConfig_t), CCOM_STRUCT_MAGIC, CCOM_VERSION_CODE, NULL, -1, -1, NULL, NULL, NULL, NULL, NULL, -1, NULL, \
        -1, -1, 0, NULL, NULL, -1, 0, NULL, NULL, 0, 0                                                                \
  }

/* Collective over the nranks processes or threads that hold `id`; blocks for at most initTimeoutMs and a few seconds.
 * On error *comm is NULL and the text names the phase and the missing ranks. */
CCOM_API ccomResult_t ccomCommInitRank(ccomComm_t* comm, int nranks, ccomUniqueId id, int rank);
/* The same with settings; config NULL: the defaults. */
CCOM_API ccomResult_t ccomCommInitRankConfig(ccomComm_t* comm, int nranks, ccomUniqueId id, int rank,
                                             const ccomConfig_t* config);
/* nlocal communicator handles for ranks that are threads of this process (or one thread that uses groups). */
CCOM_API ccomResult_t ccomCommInitAll(ccomComm_t* comms, int nlocal, const ccomConfig_t* config);

#define CCOM_SPLIT_NOCOLOR (-1)
/* Splits a communicator: *newcomm is a communicator of all ranks of `comm` that give the same color (0 or more), in the
 * order of their keys, equal keys in the order of their ranks in `comm`; NULL for ranks that give CCOM_SPLIT_NOCOLOR.
 *
 * Collective over all ranks of `comm`, in the order of its calls; queued operations need not be over. Blocks for at
 * most timeoutMs until all ranks call it, and for initTimeoutMs while the ranks of a color meet. In a group it runs at
 * ccomGroupEnd, so that one thread can split the communicators of several ranks.
 *
 * The ranks of a color meet over the links of `comm`: no rendezvous, no id, no new secret. The new communicator
 * inherits what was found out about the machine, and the buffers of a host that are within reach; it has its own order
 * of calls, error state and timeouts, may be used at the same time as `comm` by other threads, and outlives it.
 *
 * config: NULL, or settings that differ from those of `comm`, the same on all ranks of a color; topology, transport,
 * ifname and hostId cannot differ. interrupted is inherited too: interruptedUser has to outlive the parts. An error of
 * a part alone (a setting, a limit of the system) is returned by its ranks and leaves `comm` as it was; *newcomm is
 * NULL then. A rank that dies, has no memory or does not come in time is an error of `comm`. With an imposed topology,
 * ranks without a link between them cannot form a part (ccomNotSupported). */
CCOM_API ccomResult_t ccomCommSplit(ccomComm_t comm, int color, int key, ccomComm_t* newcomm,
                                    const ccomConfig_t* config);
/* The same for ranks that know one another: *newcomm is a communicator of the `nranks` ranks of `comm` in `ranks`, in
 * this order. Collective over these ranks alone, each of which gives the same list; the others need not know. It stands
 * in the order of calls of `comm` on each of them. As that of any call of `comm`, its timeout (initTimeoutMs) while a
 * rank of the list does not come is the error of `comm`. */
CCOM_API ccomResult_t ccomCommCreateGroup(ccomComm_t comm, const int* ranks, int nranks, ccomComm_t* newcomm,
                                          const ccomConfig_t* config);

/* The timeout of this rank's operations issued from now on, instead of timeoutMs; an operation queued on a stream or in
 * a group uses the value at the time of its issue. Sends and receives that run together use the shortest. Local, any
 * thread; ranks may differ. timeoutMs > 0. */
CCOM_API ccomResult_t ccomCommSetTimeout(ccomComm_t comm, int64_t timeoutMs);

/* ---- End, errors ------------------------------------------------------------------------------------------------ */

/* Waits until all queued operations of this rank are complete, for at most timeoutMs (then ccomTimeout, which ends the
 * communicator like that of any operation), and tells all ranks that this one makes no more: later operations here are
 * ccomInvalidUsage, and ranks that make further collective calls get ccomRemoteError, which names this rank. Does not
 * include messages. */
CCOM_API ccomResult_t ccomCommFinalize(ccomComm_t comm);
/* Frees the communicator, after what ccomCommFinalize does. In a message's callback, and with calls of it in an open
 * group of this thread, it stays, and this is ccomInvalidUsage. Local; waits for queued operations of this rank, but
 * not otherwise for peers. Does not wait for incomplete messages, only for their callbacks. Where ranks share no link
 * of an imposed topology, this rank may have to forward messages: the last rank of a process then waits, for timeoutMs
 * at most, until all others of its host have finalized or destroyed theirs, or one has failed, and those before it are
 * freed then. */
CCOM_API ccomResult_t ccomCommDestroy(ccomComm_t comm);
/* Fails all operations of this communicator, on this rank and on its peers, with ccomAborted. Local, any thread,
 * returns immediately. The handle stays valid until ccomCommDestroy. */
CCOM_API ccomResult_t ccomCommAbort(ccomComm_t comm);
/* Fails all operations of this communicator, on this rank and on its peers, with ccomRevoked, so that all ranks get out
 * of them and can go on with ccomCommAgree or ccomCommShrink. Without effect after an error. Local, any thread, returns
 * immediately. revokeFlags: 0. */
CCOM_API ccomResult_t ccomCommRevoke(ccomComm_t comm, int revokeFlags);
/* Says that `bytes` bytes at `data` must be equal on all ranks, parameters of replicas for example: if they are not,
 * the next collective call fails with ccomMismatch (CCOM-E069) on all ranks, which names the rank whose bytes are not
 * those of most others, or two ranks where there are no most. All ranks call it between the same calls, with equal
 * `bytes`. Waits for this rank's calls before it, for no other rank. Reads everything up to 2048 bytes, else 2048 bytes
 * of it in 32 pieces, other ones after each call; `data` may be changed when it returns. A difference goes unnoticed
 * where the pieces are equal, or with a probability of 2^-16 until the call after the next. With CCOM_WITNESS=1 on all
 * ranks the results of all allreduces, allgathers and broadcasts are treated so. */
CCOM_API ccomResult_t ccomCommWitness(const void* data, size_t bytes, ccomComm_t comm);
/* Agrees on flags and on who is left, after an error or before: *flags becomes the bitwise and of what all ranks give
 * that are left. The others, which have died, have finalized or destroyed `comm` or are silent (CCOM_DEAD_MS), are
 * written to lostRanks, ascending, their number to *lostCount; lostRanks has room for all ranks but this one, or both
 * are NULL. Who returns ccomSuccess has the same of both as every other rank that does, whoever dies meanwhile.
 *
 * Collective over the ranks that are left, in the order of calls of `comm` unless that has failed, and blocking: for
 * timeoutMs at most until all have come; then all get ccomTimeout, which names those that have not and, other than that
 * of an operation, is no error of the communicator. Where ccomConfig_t.interrupted ends the wait, that rank gets
 * ccomAborted, the others ccomTimeout. Other calls of this kind at the same time are ccomMismatch.
 *
 * Between hosts, ranks that are silent, which may still run, must be a minority: fewer than half, or half without
 * rank 0. Else it is ccomTimeout for those that get no answer, some seconds after timeoutMs: a divided network never
 * goes on in two parts. Ranks that are known to be gone can be excluded by name (ccomCommShrink). */
CCOM_API ccomResult_t ccomCommAgree(ccomComm_t comm, int* flags, int* lostRanks, int* lostCount);

#define CCOM_SHRINK_DEFAULT 0
#define CCOM_SHRINK_ABORT 1 /* does first what ccomCommRevoke does */
/* *newcomm is a communicator of the ranks of `comm` that are left, without those in excludeRanksList (NULL and 0:
 * none), in the order of their ranks in `comm`. Works after an error of `comm`, and before. Who is left: see
 * ccomCommAgree. All ranks that return ccomSuccess have a communicator of the same ranks; nobody waits for a rank that
 * is known to be dead, and a rank that dies while the others start is left out by another attempt. One that dies later
 * is an error of *newcomm, which can be shrunk in turn.
 *
 * Collective over the ranks that are left: each gives the same list and settings, and those in the list do not call. In
 * the order of calls of `comm` unless that has failed; blocks as ccomCommAgree, and for initTimeoutMs in each attempt.
 * `comm` stays as it was: ccomCommDestroy frees it. config: as of ccomCommSplit. A rank that was silent and comes back
 * gets ccomRemoteError. */
CCOM_API ccomResult_t ccomCommShrink(ccomComm_t comm, const int* excludeRanksList, int excludeRanksCount,
                                     ccomComm_t* newcomm, const ccomConfig_t* config, int shrinkFlags);
/* An id by which new ranks join those of `comm`: made by one of its ranks, which serves it for initTimeoutMs, and given
 * to the new ranks by the program, like that of ccomGetUniqueId. For one ccomCommGrow. */
CCOM_API ccomResult_t ccomCommGetUniqueId(ccomComm_t comm, ccomUniqueId* id);
/* *newcomm is a communicator of nRanks ranks: those of `comm`, which keep their ranks, and new ones behind them. The
 * ranks of `comm` give it, rank -1, and one of them the id, the others NULL; a new rank gives NULL for comm, the id,
 * and its rank, from the number of ranks of `comm` to nRanks - 1.
 *
 * Collective over all of these, in the order of calls of `comm`; blocks for at most initTimeoutMs until all have come.
 * An error of the start leaves `comm` as it was; *newcomm is NULL then. `comm` stays: ccomCommDestroy frees it. config:
 * for ranks of `comm` as of ccomCommSplit, for new ones as of ccomCommInitRankConfig; what has to be equal is compared.
 * An id serves once: a used one is ccomInvalidArgument. Its secret crosses the links of `comm` encrypted. */
CCOM_API ccomResult_t ccomCommGrow(ccomComm_t comm, int nRanks, const ccomUniqueId* id, int rank, ccomComm_t* newcomm,
                                   const ccomConfig_t* config);
/* *result: ccomSuccess, or the sticky error, even if no call is in progress. */
CCOM_API ccomResult_t ccomCommGetAsyncError(ccomComm_t comm, ccomResult_t* result);

/* ---- Queries ---------------------------------------------------------------------------------------------------- */

/* *count: the number of ranks. */
CCOM_API ccomResult_t ccomCommCount(ccomComm_t comm, int* count);
/* *rank: this process's rank, from 0. */
CCOM_API ccomResult_t ccomCommUserRank(ccomComm_t comm, int* rank);

/* ranks[i]: rank i's rank in the communicator that `comm` was made from by ccomCommSplit, ccomCommCreateGroup,
 * ccomCommShrink or ccomCommGrow; -1 if it had none there: it has joined by ccomCommGrow, or `comm`, as seen by this
 * rank, was made from an id. So after ccomCommShrink the ranks that are missing are those that are gone. ranks has room
 * for all ranks of `comm`. Local, any thread; also after an error of `comm`, and when its parent is destroyed. */
CCOM_API ccomResult_t ccomCommGetParentRanks(ccomComm_t comm, int* ranks);

/* A communicator's state; initialise with CCOM_COMM_INFO_INIT. */
typedef struct {
  size_t size; /* this and the next two: set by CCOM_COMM_INFO_INIT */
  uint32_t magic;
  uint32_t version;
  int rank;
  int nranks;
  int nhosts;
  int localRank;
  int localNRanks;
  int reserved;         /* 0 */
  char transports[64];  /* in use, "shm" or "shm,tcp" */
  char topology[256];   /* "host", or the imposed preset */
  uint64_t bytesSent;   /* payload in messages of this rank so far; calls through shared memory send none */
  uint64_t memoryBytes; /* staging and transport memory held by this rank for this communicator */
  uint64_t sequence;    /* collective calls so far */
} ccomCommInfo_t;
#define CCOM_COMM_INFO_INIT \
  { sizeof(ccomCommInfo_t), CCOM_STRUCT_MAGIC, CCOM_VERSION_CODE, 0, 0, 0, 0, 0, 0, "", "", 0, 0, 0 }
/* Waits for earlier calls; do not call it from a callback of a stream with such calls. The same holds for
 * ccomCommGetBytesSent and ccomExplain. */
CCOM_API ccomResult_t ccomCommGetInfo(ccomComm_t comm, ccomCommInfo_t* info);
/* Payload bytes that this rank has sent to `peer` in messages so far; see ccomCommInfo_t.bytesSent. */
CCOM_API ccomResult_t ccomCommGetBytesSent(ccomComm_t comm, int peer, uint64_t* bytes);
/* Flags of ccomCommReport. */
typedef enum {
  ccomReportJson = 1, /* one JSON object instead of sentences; docs/observing.md lists its fields */
  ccomReportHost = 2, /* of what is known of the ranks of this host, without asking the others */
  ccomReportForceInt = 0x7fffffff
} ccomReportFlag_t;
/* Which ranks have made the others wait since `comm` started: how much of their time, as how many of them say, and
 * before which call of which line of the program. flags: of ccomReportFlag_t, joined by |; 0: sentences, one a line.
 * Collective over `comm`, in its order of calls, and blocking, with the communicator's timeout: an allgather of 1.5 KiB
 * of each rank, whose own waits are in the next report only; flags may differ between ranks. With ccomReportHost:
 * local, any thread, waits for nothing, also after an error. Errors: those of ccomAllGather; ccomInvalidUsage in a
 * group. text: of the caller, who owns it; 16384 bytes and 256 for each rank are always enough. length: as in
 * ccomParamGet, but every call is collective, that for the length alone too, and what it says may have changed until
 * the next. Times are measured: the text differs between runs. Not seen: waits of less than about a microsecond, and in
 * ccomMessageSend. After ccomCommFinalize: ccomInvalidUsage, but with ccomReportHost. */
CCOM_API ccomResult_t ccomCommReport(ccomComm_t comm, int flags, char* text, size_t* length);
/* One JSON object as text: candidates with steps, bytes and expected time, the choice and the reason, for a collective
 * named as in ccom-bench ("allreduce") of `count` elements. Of v-forms ("allgatherv", "reduce_scatterv", "alltoallv",
 * "gatherv", "scatterv") count is the mean of the parts that would be equal in the plain form; what is said is what
 * parts of different lengths take, equal ones run as the plain allgather and reduce_scatter; "agreement" is the
 * allgather that compares the counts. With an imposed topology, also the additions of ccomTopoExplain. For stages
 * inside a host ("host_stages") the ways that calls may take, and what the calls of this communicator have found out
 * about them; docs/planner.md lists the fields. Local, no communication. length as in ccomParamGet. */
CCOM_API ccomResult_t ccomExplain(ccomComm_t comm, const char* collective, size_t count, ccomDataType_t type, int root,
                                  char* json, size_t* length);
/* The same for a hypothetical machine, without a communicator: "640*trn2.48xlarge/1" (hosts * preset / ranks per
 * device), "torus:4x4", or the path of a JSON file with a fabric or a topology; docs/planner.md lists the names. Adds
 * to the object: ranks; the lower bound and the narrowest cut; each candidate's multiple of the bound ("times_bound")
 * and why it was chosen or rejected ("why"); the load of each kind of link in the chosen plan, the busiest link and
 * the rounds, or in "links_note" why that was not computed (more than 1024 ranks), or without which part (windows).
 * ccomConfigError: no such topology; ccomNotSupported: no algorithm can run there. Local. */
CCOM_API ccomResult_t ccomTopoExplain(const char* topology, const char* collective, size_t count, ccomDataType_t type,
                                      int root, char* json, size_t* length);

/* ---- Streams and events ----------------------------------------------------------------------------------------- */

/* An ordered queue of operations, run one after the other by a library thread, or by threads that wait in
 * ccomStreamSynchronize or ccomStreamDestroy, or call ccomStreamRunNext. */
CCOM_API ccomResult_t ccomStreamCreate(ccomStream_t* stream);
/* Waits for the queued operations, then frees the stream. Returns the stream's first error. ccomInvalidUsage, and the
 * stream stays: in a callback of the stream; with calls on it in an open group of this thread. */
CCOM_API ccomResult_t ccomStreamDestroy(ccomStream_t stream);
/* ccomSuccess: empty; ccomInProgress: not yet; else the first error since the last synchronise. */
CCOM_API ccomResult_t ccomStreamQuery(ccomStream_t stream);
/* Waits until the queue is empty; timeoutMs < 0: until its operations' own deadlines, and the calling thread runs those
 * that no other thread has begun. Returns the first error of the operations since the last call, and clears it. */
CCOM_API ccomResult_t ccomStreamSynchronize(ccomStream_t stream, int64_t timeoutMs);
/* Runs the next queued operation in the calling thread; *ran: 1, or 0 where nothing is queued or another thread is
 * running an operation. Blocks for as long as the operation takes; its error is the stream's. For threads that have to
 * wait anyway: the library's thread need not be woken for what they run. */
CCOM_API ccomResult_t ccomStreamRunNext(ccomStream_t stream, int* ran);
/* Operations queued on `stream` after this call wait for `event` as it was last recorded: for what its stream has
 * queued before that, with the deadlines of those operations, and CCOM_TIMEOUT_MS at most, then the stream has the
 * error ccomTimeout. */
CCOM_API ccomResult_t ccomStreamWaitEvent(ccomStream_t stream, ccomEvent_t event);
/* Calls fn in the thread that runs the stream, in order, with the stream's current state; fn must not wait for that
 * stream. */
CCOM_API ccomResult_t ccomStreamAddCallback(ccomStream_t stream, void (*fn)(void* user, ccomResult_t state),
                                            void* user);
/* An event that has not been recorded. */
CCOM_API ccomResult_t ccomEventCreate(ccomEvent_t* event);
/* Frees the event; streams that wait for it are not affected. */
CCOM_API ccomResult_t ccomEventDestroy(ccomEvent_t event);
/* The event becomes complete when everything queued on `stream` so far is done. NULL stream: at once. */
CCOM_API ccomResult_t ccomEventRecord(ccomEvent_t event, ccomStream_t stream);
/* ccomSuccess, ccomInProgress, or the first error of what was recorded. An event never recorded is complete. */
CCOM_API ccomResult_t ccomEventQuery(ccomEvent_t event);
/* timeoutMs < 0: no timeout of its own. */
CCOM_API ccomResult_t ccomEventSynchronize(ccomEvent_t event, int64_t timeoutMs);

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

/* Page-aligned, zeroed memory that peers on the host can access: collectives on it copy least. Allocated from a reserve
 * of address space (CCOM_ARENA_BYTES), without communication, before or after start-up.
 * A forked child has a private copy-on-write copy of it. A page that the child has not written yet shows the parent's
 * later writes, and is zero once the parent has freed it. */
CCOM_API ccomResult_t ccomMemAlloc(void** pointer, size_t bytes);
/* Returns the memory to the system at once; no call may be using it. No effect in a forked child on memory that the
 * parent allocated. */
CCOM_API ccomResult_t ccomMemFree(void* pointer);

/* Declares that collectives will use [buffer, buffer + bytes) often. Local. Memory of ccomMemAlloc needs no
 * registration. The pages of ordinary memory (private, anonymous: malloc, mmap) that begins and ends on a page boundary
 * are replaced in place by pages that peers on the host can map; address and contents do not change. Any other buffer
 * is accepted and works, but is copied (CCOM_LOG=info logs why). Ranks may differ. No other thread may write to the
 * buffer during this call and ccomCommDeregister; in between the buffer must not be freed, unmapped or remapped.
 * Children forked meanwhile have a copy, as of memory of ccomMemAlloc. */
CCOM_API ccomResult_t ccomCommRegister(ccomComm_t comm, void* buffer, size_t bytes, void** handle);
/* Local. Restores ordinary pages. */
CCOM_API ccomResult_t ccomCommDeregister(ccomComm_t comm, void* handle);

/* Buffers of all ranks, one each, whose addresses are known to all. */
typedef struct ccomWindow* ccomWindow_t;
/* As ccomCommRegister, and exchanges the addresses of the buffers. Collective and blocking; sizes may differ.
 * flags: 0. */
CCOM_API ccomResult_t ccomCommWindowRegister(ccomComm_t comm, void* buffer, size_t bytes, ccomWindow_t* window,
                                             int flags);
/* Local. */
CCOM_API ccomResult_t ccomCommWindowDeregister(ccomComm_t comm, ccomWindow_t window);
/* The address at which this process can access `peer`'s buffer. ccomNotSupported if it cannot. Valid until the peer
 * deregisters. ccom does not order such accesses: use ccomBarrier. */
CCOM_API ccomResult_t ccomWinGetPeerPtr(ccomWindow_t window, int peer, void** pointer);

/* ---- Reductions ------------------------------------------------------------------------------------------------- */

/* An operator "sum of scalar * x" for `comm` and `type`; *scalar has that type. Scalars may differ between ranks. The
 * product is rounded to the type before the sum. */
CCOM_API ccomResult_t ccomRedOpCreatePreMulSum(ccomRedOp_t* op, void* scalar, ccomDataType_t type,
                                               ccomScalarResidence_t residence, ccomComm_t comm);
/* The function of an operator: inout[i] = in[i] op inout[i] for i = 0 ... count - 1, elements of `type`, so the left
 * operand is `in`, as in MPI. ccomSuccess, or anything else for a failure. context: what was passed to ccomRedOpCreate.
 *
 * Vectors are cut into pieces anyhow: element i of the result may depend on element i of the operands only. Both
 * pointers are multiples of the element's size, whatever the buffers of the call are, and never overlap; inout is
 * ccom's own memory, `in` must not be written. 16- and 8-bit floating types come as they are. It is called in the
 * thread that runs the call: the caller's, a stream's, or one of a group; by several at a time if there are several
 * communicators. It must not call ccom with the same communicator, and it delays the call: other ranks wait for it.
 * While it runs, the thread rounds to nearest, keeps subnormals, and has no floating-point traps. */
typedef ccomResult_t (*ccomRedOpFn)(const void* in, void* inout, size_t count, ccomDataType_t type, void* context);
/* How operands of an operator may be moved. All operators must be associative. */
typedef enum {
  ccomRedOpOrdered = 0,     /* they stay in rank order: x0 op x1 op x2 ..., with any grouping */
  ccomRedOpCommutative = 1, /* they may change places: op(a, b) and op(b, a) have the same bits */
  ccomRedOpOrderForceInt = 0x7fffffff
} ccomRedOpOrder_t;
/* An operator for ccomAllReduce, ccomReduceScatter and ccomReduce on `comm`, of every type. Local. All ranks must
 * create a communicator's operators of this kind in the same order and with the same `order`: they are told apart by
 * their number, and calls with different ones are ccomMismatch. The function and its context may differ; they belong to
 * the caller, and must exist until the operator is destroyed and the calls that use it are over.
 *
 * The function sees every contribution once for each result, and nothing else; of one rank it is not called. Which
 * operands are grouped depends on the size, the ranks and the machine, like that of sums, and is the same on all ranks,
 * in every run: results are bitwise equal if the function's are. With ccomConfig_t.determinism "full" it depends on
 * nothing: x0 op (x1 op (x2 ...)). ccomConfig_t.rounding has no effect. A call returns when all ranks have combined
 * what they have to.
 *
 * If the function fails on a rank, or throws a C++ exception, the call is ccomOperatorError on all ranks, with the rank
 * and the code or the exception's text, and the function is not called any more; like every error of a call it is
 * final. An algorithm that is asked for (CCOM_ALGO) and changes the order of operands is ccomNotSupported for calls
 * with an ordered operator, such a program of CCOM_PLAN ccomConfigError; neither has an effect. */
CCOM_API ccomResult_t ccomRedOpCreate(ccomRedOp_t* op, ccomRedOpFn function, void* context, ccomRedOpOrder_t order,
                                      ccomComm_t comm);
/* Frees an operator of ccomRedOpCreatePreMulSum or ccomRedOpCreate. Local. Calls that have been made with it, on
 * streams too, are not affected. */
CCOM_API ccomResult_t ccomRedOpDestroy(ccomRedOp_t op, ccomComm_t comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------ */

/* recv[i] = op over ranks of send[i]. In place: send == recv. */
CCOM_API ccomResult_t ccomAllReduce(const void* send, void* recv, size_t count, ccomDataType_t type, ccomRedOp_t op,
                                    ccomComm_t comm, ccomStream_t stream);
/* ccomAllReduce that also writes what this rank's encodings have lost (ccomConfig_t.wire), for error feedback: who adds
 * the residual to what this rank gives to the next call, all ranks alike, makes up for the loss then.
 *
 * residual: `count` float32, whatever the type, in units of what ranks give, before an average divides (with a
 * premultiplied sum in those of the products). A rank that encodes its host's sum of a slice, or a part of the total,
 * writes there the number minus what its block says, both added up if it does both. Elsewhere there are zeros: where
 * others encode, where that difference is not finite, and in calls in which nothing crosses narrow. So, of finite
 * numbers, the residuals of all ranks add up to the exact sum minus recv (of an average: minus nranks * recv), but for
 * the roundings of float32, and that of recv to bfloat16.
 *
 * send, recv: as of ccomAllReduce, whose results have the same bits. residual overlaps neither and may have any
 * alignment; it is borrowed and written as recv is, and unspecified after an error. NULL, if count is not 0, and
 * overlap are ccomInvalidArgument. Bits of residuals are the same in every run on the same communicator shape. To other
 * ranks the call is a ccomAllReduce: each may use either. */
CCOM_API ccomResult_t ccomAllReduceResidual(const void* send, void* recv, void* residual, size_t count,
                                            ccomDataType_t type, ccomRedOp_t op, ccomComm_t comm, ccomStream_t stream);
/* recv (nranks * sendcount) = the send buffers in rank order. In place: send == recv + rank * sendcount. */
CCOM_API ccomResult_t ccomAllGather(const void* send, void* recv, size_t sendcount, ccomDataType_t type,
                                    ccomComm_t comm, ccomStream_t stream);
/* recv (recvcount) = block `rank` of the sum of the send buffers (nranks * recvcount). In place: recv == send + rank *
 * recvcount; the rest of send is then unspecified afterwards. */
CCOM_API ccomResult_t ccomReduceScatter(const void* send, void* recv, size_t recvcount, ccomDataType_t type,
                                        ccomRedOp_t op, ccomComm_t comm, ccomStream_t stream);
/* recv = root's send, on every rank. send is used on root only. In place: send == recv. */
CCOM_API ccomResult_t ccomBroadcast(const void* send, void* recv, size_t count, ccomDataType_t type, int root,
                                    ccomComm_t comm, ccomStream_t stream);
/* As ccomAllReduce, result on root only; recv is used on root only. In place: send == recv. */
CCOM_API ccomResult_t ccomReduce(const void* send, void* recv, size_t count, ccomDataType_t type, ccomRedOp_t op,
                                 int root, ccomComm_t comm, ccomStream_t stream);
/* Sends block j of send (count elements) to rank j; block i of recv is from rank i. In place: send == recv. */
CCOM_API ccomResult_t ccomAlltoAll(const void* send, void* recv, size_t count, ccomDataType_t type, ccomComm_t comm,
                                   ccomStream_t stream);
/* recv on root (nranks * count) = the send buffers in rank order. In place on root: send == recv + root * count. */
CCOM_API ccomResult_t ccomGather(const void* send, void* recv, size_t count, ccomDataType_t type, int root,
                                 ccomComm_t comm, ccomStream_t stream);
/* recv (count) = block `rank` of root's send (nranks * count). In place on root: recv == send + root * count. */
CCOM_API ccomResult_t ccomScatter(const void* send, void* recv, size_t count, ccomDataType_t type, int root,
                                  ccomComm_t comm, ccomStream_t stream);
/* V-forms: ranks have parts of different lengths, also of none. Counts and displacements are in elements, a list has
 * nranks entries and is read during the call. Displacements say where parts begin in the buffer; NULL: one behind the
 * other in the order of ranks. They are this rank's own affair. No part may overlap one that is written.
 *
 * Both ranks of every pair must say the same count. All ranks compare them before anything else happens: if any two
 * differ, the call is ccomMismatch on all ranks, with the first ranks, entries and values that differ. So every call
 * waits for all ranks. Where they share one host's memory, ccomAllGatherV, ccomReduceScatterV and ccomAlltoAllV compare
 * in the call itself, unless CCOM_ALGO is set; elsewhere, and in the other two, an allgather of 16 bytes per rank comes
 * first. CCOM_ALGO applies to ccomAllGatherV and ccomReduceScatterV where its algorithm exists for unequal parts,
 * CCOM_PLAN not. */

/* recv + rdispls[i] (recvcounts[i] elements) = the send buffer of rank i, on every rank. sendcount is recvcounts of the
 * own rank. In place: send == recv + rdispls[rank]. */
CCOM_API ccomResult_t ccomAllGatherV(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                     const size_t* rdispls, ccomDataType_t type, ccomComm_t comm, ccomStream_t stream);
/* The send buffers have parts of recvcounts[0], recvcounts[1], ... elements in a row; recv = part `rank` of their sum.
 * In place: recv == send + the parts before; the rest of send is then unspecified afterwards. Sums as in
 * ccomReduceScatter: equal bits in every run, rounded as often. */
CCOM_API ccomResult_t ccomReduceScatterV(const void* send, void* recv, const size_t* recvcounts, ccomDataType_t type,
                                         ccomRedOp_t op, ccomComm_t comm, ccomStream_t stream);
/* As ccomAllGatherV, on root only: elsewhere recv, recvcounts and rdispls are not used. In place on root: as there. */
CCOM_API ccomResult_t ccomGatherV(const void* send, size_t sendcount, void* recv, const size_t* recvcounts,
                                  const size_t* rdispls, ccomDataType_t type, int root, ccomComm_t comm,
                                  ccomStream_t stream);
/* recv (recvcount) = what begins at send + sdispls[rank] on root (sendcounts[rank] elements). Elsewhere send,
 * sendcounts and sdispls are not used. In place on root: recv == send + sdispls[root]. */
CCOM_API ccomResult_t ccomScatterV(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                                   size_t recvcount, ccomDataType_t type, int root, ccomComm_t comm,
                                   ccomStream_t stream);
/* Sends sendcounts[j] elements from send + sdispls[j] on to rank j; recvcounts[i] elements from rank i come to
 * recv + rdispls[i]. In place: send == recv, counts and displacements may differ; takes memory for all that is sent. */
CCOM_API ccomResult_t ccomAlltoAllV(const void* send, const size_t* sendcounts, const size_t* sdispls, void* recv,
                                    const size_t* recvcounts, const size_t* rdispls, ccomDataType_t type,
                                    ccomComm_t comm, ccomStream_t stream);
/* Returns when every rank has called it. */
CCOM_API ccomResult_t ccomBarrier(ccomComm_t comm, ccomStream_t stream);
/* Matched with the peer's ccomRecv in order, without tags; type and count must be equal. Outside a group it may block
 * until the peer receives; inside one all sends and receives of the group progress together. peer == own rank only in a
 * group. Where ranks share no link of an imposed topology others forward, whatever they do themselves, as long as they
 * have not destroyed the communicator; ccomNotSupported if none can. */
CCOM_API ccomResult_t ccomSend(const void* send, size_t count, ccomDataType_t type, int peer, ccomComm_t comm,
                               ccomStream_t stream);
/* The other side of ccomSend. */
CCOM_API ccomResult_t ccomRecv(void* recv, size_t count, ccomDataType_t type, int peer, ccomComm_t comm,
                               ccomStream_t stream);

/* Calls between Start and End (of one thread, nestable) are collected and issued at the outermost End, on all
 * communicators at the same time; those on the NULL stream are complete when End returns. On one communicator and
 * stream they run in order, adjacent sends and receives together; use one stream per communicator within a group. End
 * returns the first error. An invalid argument is reported by the call itself, which then does not change the group.
 *
 * Adjacent collectives of one kind, type, operator and root, of at most 64 KiB together, may run as one, with the bits
 * of separate calls, unless one needs or overwrites what another has: so all ranks must make such calls in a group, or
 * none; otherwise they are different calls (ccomMismatch). */
CCOM_API ccomResult_t ccomGroupStart(void);
/* Ends what ccomGroupStart began. Without an open group in this thread: ccomInvalidUsage. */
CCOM_API ccomResult_t ccomGroupEnd(void);

/* ---- Persistent calls ------------------------------------------------------------------------------------------- */

/* A collective with all its arguments, to be made often, as MPI's persistent collectives. */
typedef struct ccomPersistent* ccomPersistent_t;
/* Makes *call from the arguments of a collective of equal parts: "allreduce", "allgather", "reduce_scatter",
 * "broadcast", "reduce", "alltoall", "gather", "scatter" or "barrier". What the collective has no use for (op, root) is
 * not looked at. Looks at the arguments as the collective itself does, and chooses its algorithm, so that no call has
 * to. Local: other ranks need not do the same. Waits for earlier calls of this rank on `comm`. The buffers are borrowed
 * until the call is freed, and an operator of ccomRedOpCreate or ccomRedOpCreatePreMulSum may be destroyed before.
 * Errors: those of the collective's arguments. */
CCOM_API ccomResult_t ccomPersistentInit(ccomPersistent_t* call, const char* collective, const void* send, void* recv,
                                         size_t count, ccomDataType_t type, ccomRedOp_t op, int root, ccomComm_t comm);
/* Makes the call with what the buffers hold now: blocking on the NULL stream, else in the stream's order; within a
 * group at its end. To other ranks it is the collective itself: each may make it either way. It may be started again at
 * once. Results have the bits of the collective, and errors are its own; ccomInvalidUsage after the communicator was
 * destroyed. */
CCOM_API ccomResult_t ccomPersistentStart(ccomPersistent_t call, ccomStream_t stream);
/* Local. NULL is allowed. What has been started, on streams too, is not affected. */
CCOM_API ccomResult_t ccomPersistentFree(ccomPersistent_t call);

/* ---- Messages --------------------------------------------------------------------------------------------------- */

/* Tagged messages between two ranks of a communicator that was started with ccomConfig_t.messages. They are independent
 * of the order of collectives, of ccomSend and ccomRecv, of groups and streams, and of messages with another rank or
 * tag; those of one sender with one tag are received in the order in which they were sent. */

/* As a receive's peer: whichever rank sends first. */
#define CCOM_ANY_RANK (-1)
/* A posted message. */
typedef struct ccomMessage* ccomMessage_t;
/* Called once, when the message is complete, by a thread that waits for or tests any message of the communicator, or by
 * a thread of ccom; never within the call that posts a message, but possibly before it has returned, or after a wait
 * for the message has. It may post messages, wait for them and free them; it must not destroy the communicator. While
 * it runs, other threads make progress on messages. peer: the other rank; -1 if unknown. */
typedef void (*ccomMessageFn)(void* user, ccomResult_t result, int peer);

/* Posts a message of `bytes` bytes and returns immediately. Until the message is complete the sender's buffer must not
 * be modified and the receiver's not accessed. The number of bytes must be equal on both sides, otherwise both get
 * ccomMismatch with both numbers. A send is complete when its buffer may be reused: a small (eager) one, up to 992
 * bytes, usually at once, a larger one when it has been received, or, where others forward it, has left. A receive from
 * CCOM_ANY_RANK gets the earliest message. A message to the own rank is complete when it is received. All values of tag
 * are valid. Ranks that share no link: as for ccomSend.
 *
 * The message's timeout is that of operations at this time (ccomConfig_t.timeoutMs, ccomCommSetTimeout). A message that
 * times out is ccomTimeout, which, like any error of a message, is the communicator's and fails all messages and
 * operations. done may be NULL. message may be NULL if the message is not waited for; otherwise it must be freed. It is
 * written before done is called. If an error is returned, nothing was posted and done is not called. */
CCOM_API ccomResult_t ccomMessageSend(const void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm,
                                      ccomMessageFn done, void* user, ccomMessage_t* message);
/* The other side of ccomMessageSend; peer may be CCOM_ANY_RANK. */
CCOM_API ccomResult_t ccomMessageRecv(void* data, size_t bytes, int peer, int64_t tag, ccomComm_t comm,
                                      ccomMessageFn done, void* user, ccomMessage_t* message);
/* Waits until the message is complete, for at most timeoutMs; < 0: until the message's own timeout. Makes progress on
 * messages meanwhile. Several threads may wait for one message. ccomSuccess, the error, or ccomInProgress on timeout.
 * peer may be NULL; *peer: as above, once the message is complete. */
CCOM_API ccomResult_t ccomMessageWait(ccomMessage_t message, int64_t timeoutMs, int* peer);
/* ccomSuccess, ccomInProgress, or the error. */
CCOM_API ccomResult_t ccomMessageTest(ccomMessage_t message, int* peer);
/* Frees the handle; an incomplete message continues. From any thread, but not while another one waits for it. Handles
 * outlive the communicator, whose destruction completes their messages with ccomAborted. */
CCOM_API ccomResult_t ccomMessageFree(ccomMessage_t message);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CCOM_CCOM_H_ */

// SPDX-License-Identifier: Apache-2.0
//
// The keys of errors: "CCOM-E025" stands behind an error's text, and docs/errors.md has a paragraph for it. A key names
// a kind of trouble with a cause and a cure of its own; the first of each result code is for all that has none. Numbers
// are never used again for anything else: new keys are added at the end, and keys that no error has any more stay.
#pragma once

#include <cstdint>

namespace ccom {

enum class Code : int;

// number, name, result code
#define CCOM_ERROR_KEYS(X)                 \
  X(1, SystemCall, SystemError)            \
  X(2, Internal, InternalError)            \
  X(3, Argument, InvalidArgument)          \
  X(4, Usage, InvalidUsage)                \
  X(5, PeerGone, RemoteError)              \
  X(6, NotFinished, InProgress)            \
  X(7, TooLong, Timeout)                   \
  X(8, DifferentCalls, Mismatch)           \
  X(9, CommAborted, Aborted)               \
  X(10, CommRevoked, Revoked)              \
  X(11, NoMemory, OutOfMemory)             \
  X(12, WrongSetting, ConfigError)         \
  X(13, TransportFailed, TransportError)   \
  X(14, Unsupported, NotSupported)         \
  X(15, HandoverFolder, SystemError)       \
  X(16, CannotListen, SystemError)         \
  X(17, UnknownFields, InvalidArgument)    \
  X(18, NotInitialised, InvalidArgument)   \
  X(19, NoRank, InvalidUsage)              \
  X(20, Forked, InvalidUsage)              \
  X(21, Finalized, InvalidUsage)           \
  X(22, NoMessages, InvalidUsage)          \
  X(23, MessageToItself, InvalidUsage)     \
  X(24, NoOpenGroup, InvalidUsage)         \
  X(25, RankDied, RemoteError)             \
  X(26, RankLeft, RemoteError)             \
  X(27, RankSilent, RemoteError)           \
  X(28, RankUnreachable, RemoteError)      \
  X(29, LostAtStart, RemoteError)          \
  X(30, ServerLost, RemoteError)           \
  X(31, MessageWithoutPeer, RemoteError)   \
  X(32, RankLate, Timeout)                 \
  X(33, NeverJoined, Timeout)              \
  X(34, ServerUnreachable, Timeout)        \
  X(35, NoIdFile, Timeout)                 \
  X(36, NoControlConnection, Timeout)      \
  X(37, NameLookup, Timeout)               \
  X(38, RendezvousInUse, Timeout)          \
  X(39, MessageLate, Timeout)              \
  X(40, WaitInterrupted, Aborted)          \
  X(41, ScratchLimit, OutOfMemory)         \
  X(42, SharedMemoryFull, OutOfMemory)     \
  X(43, FileSizeLimit, OutOfMemory)        \
  X(44, ArenaFull, OutOfMemory)            \
  X(45, TooFewDescriptors, OutOfMemory)    \
  X(46, SettingsDiffer, ConfigError)       \
  X(47, BuildsDiffer, ConfigError)         \
  X(48, RanksDisagree, ConfigError)        \
  X(49, NoSuchInterface, ConfigError)      \
  X(50, NoSecret, ConfigError)             \
  X(51, WeakSecret, ConfigError)           \
  X(52, FileNotPrivate, ConfigError)       \
  X(53, UnknownAlgorithm, ConfigError)     \
  X(54, NoFreePort, ConfigError)           \
  X(55, HalfSet, ConfigError)              \
  X(56, ShmBetweenHosts, ConfigError)      \
  X(57, WrongSecret, ConfigError)          \
  X(58, PlanFile, ConfigError)             \
  X(59, NoAlgorithmHere, NotSupported)     \
  X(60, NoLink, NotSupported)              \
  X(61, BufferNotAccessible, NotSupported) \
  X(62, StochasticRounding, NotSupported)  \
  X(63, CannotEmulate, NotSupported)       \
  X(64, Damaged, TransportError)           \
  X(65, TopologyFile, ConfigError)         \
  X(66, VariableValue, ConfigError)        \
  X(67, LeftOut, RemoteError)              \
  X(68, OperatorFailed, OperatorError)     \
  X(69, ResultsDiffer, Mismatch)

enum class ErrorKey : uint16_t {
#define CCOM_ERROR_KEY(number, name, code) name = (number),
  CCOM_ERROR_KEYS(CCOM_ERROR_KEY)
#undef CCOM_ERROR_KEY
};

// The result code of errors with that key.
Code code_of(ErrorKey key);
// The key of errors with that code that have no other.
ErrorKey general_key(Code code);
// The key of that number, as another process has sent it; general_key(code) if there is none of that code.
ErrorKey key_of(uint32_t number, Code code);

}  // namespace ccom

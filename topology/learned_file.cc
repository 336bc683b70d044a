// SPDX-License-Identifier: Apache-2.0
//
// Files with what calls have found out.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/secret.h"
#include "topology/learned_ways.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr size_t kMostKept = 1024;  // that a file grows to: those found last stay

// Whoever does so at the same time has a file of its own.
Status replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + "." + std::to_string(random_u64()) + ".tmp";
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return system_error(errno, "create %s", temporary.c_str());
  Status status = write_all(file, temporary, text);
  // Some file systems tell only here that there was no room.
  if (status.is_ok() && ::fsync(file.get()) != 0) status = system_error(errno, "write %s", temporary.c_str());
  if (status.is_ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = system_error(errno, "rename to %s", path.c_str());
  if (!status.is_ok()) (void)::unlink(temporary.c_str());
  return status;
}

void merge_into(LearnedWays& kept, const LearnedWays& found) {
  if (kept.processor != found.processor || kept.version != found.version) kept.kinds.clear();
  std::erase_if(kept.kinds, [&](const LearnedKind& old) {
    return std::ranges::any_of(found.kinds, [&](const LearnedKind& kind) { return kind.has_same_calls(old); });
  });
  kept.kinds.insert(kept.kinds.end(), found.kinds.begin(), found.kinds.end());
  if (kept.kinds.size() > kMostKept) kept.kinds.erase(kept.kinds.begin(), kept.kinds.end() - kMostKept);
  kept.processor = found.processor;
  kept.version = found.version;
}

}  // namespace

Status save_ways(const std::string& path, const LearnedWays& found) {
  Calibration contents;
  if (::access(path.c_str(), F_OK) == 0) {
    CCOM_TRY_ASSIGN(contents, read_calibration(path));
  }
  merge_into(contents.ways, found);
  return replace_file(path, to_json(contents) + "\n");
}

}  // namespace ccom

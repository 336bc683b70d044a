// SPDX-License-Identifier: Apache-2.0
//
// Files with what calls have found out: those of CCOM_TUNING_SAVE, and the cache.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/private_file.h"
#include "base/secret.h"
#include "base/text.h"
#include "topology/learned_ways.h"
#include "topology/topology.h"

namespace ccom {
namespace {

constexpr size_t kMostKept = 1024;   // that a file grows to: those found last stay
constexpr size_t kMostCached = 128;  // likewise; every rank reads the cache when it starts
constexpr size_t kMostCachedBytes = size_t{256} << 10;

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

void merge_into(LearnedWays& kept, const LearnedWays& found, size_t most) {
  if (kept.processor != found.processor || kept.version != found.version) kept = {};
  std::erase_if(kept.kinds, [&](const LearnedKind& old) {
    return std::ranges::any_of(found.kinds, [&](const LearnedKind& kind) { return kind.has_same_calls(old); });
  });
  kept.kinds.insert(kept.kinds.end(), found.kinds.begin(), found.kinds.end());
  if (kept.kinds.size() > most) kept.kinds.erase(kept.kinds.begin(), kept.kinds.end() - static_cast<ptrdiff_t>(most));
  kept.processor = found.processor;
  kept.version = found.version;
  kept.own = least(kept.own, found.own);
  kept.starts += found.starts;
}

std::string path_in_cache(const std::string& folder, const std::string& processor, const std::string& version) {
  utsname system{};
  ::uname(&system);
  return folder + "/ways-" + hexadecimal(hash_of_text(processor + "\n" + system.release + "\n" + version)) + ".json";
}

Status make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    (void)::mkdir(path.substr(0, slash).c_str(), S_IRWXU);
  return make_private_folder(path);
}

bool is_known(const LearnedWays& kept, const LearnedKind& kind) {
  return std::ranges::any_of(
      kept.kinds, [&](const LearnedKind& old) { return old.has_same_calls(kind) && old.in_use == kind.in_use; });
}

}  // namespace

Status save_ways(const std::string& path, const LearnedWays& found) {
  Calibration contents;
  if (::access(path.c_str(), F_OK) == 0) {
    CCOM_TRY_ASSIGN(contents, read_calibration(path));
  }
  merge_into(contents.ways, found, kMostKept);
  return replace_file(path, to_json(contents) + "\n");
}

LearnedWays cached_ways(const std::string& folder, const std::string& processor, const std::string& version) {
  const auto text = read_private_file(path_in_cache(folder, processor, version), kMostCachedBytes);
  if (!text || !*text) return {};
  Result<Calibration> contents = calibration_from_json(**text);
  if (!contents || contents->ways.processor != processor || contents->ways.version != version) return {};
  return std::move(contents->ways);
}

Status cache_ways(const std::string& folder, LearnedWays found) {
  LearnedWays kept = cached_ways(folder, found.processor, found.version);
  if (kept.starts >= kEnoughStarts) found.starts = 0;
  const bool is_known_all =
      std::ranges::all_of(found.kinds, [&](const LearnedKind& kind) { return is_known(kept, kind); });
  if (is_known_all && found.starts == 0) return {};
  for (LearnedKind& kind : found.kinds) kind.median_us.clear();
  merge_into(kept, found, kMostCached);
  CCOM_TRY(make_folders(folder));
  Calibration contents;
  contents.ways = std::move(kept);
  const std::string path = path_in_cache(folder, found.processor, found.version);
  CCOM_TRY(remove_private_file(path));
  return write_private_file(path, to_json(contents) + "\n");
}

}  // namespace ccom

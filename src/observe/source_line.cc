// SPDX-License-Identifier: Apache-2.0
#include "observe/source_line.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/fork.h"
#include "base/mutex.h"
#include "observe/debug_information.h"

namespace ccom {
namespace {

constexpr size_t kMostKept = 4096;

struct Kept {
  Mutex mutex;
  std::map<std::string, std::string, std::less<>> lines CCOM_GUARDED_BY(mutex);
};
Kept& kept() {
  static constinit PerProcess<Kept> instance;
  return instance.get();
}

std::string_view without_folders(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// "program+0x1234 (step)"
std::string shortened(const PlaceInModule& place) {
  std::string text(without_folders(place.text));
  return place.symbol.empty() ? text : text + " (" + std::string(place.symbol) + ")";
}

std::string resolve(const PlaceInModule& place) {
  const std::optional<SourceLine> found = find_source_line(place);
  if (!found) return shortened(place);
  std::string text = std::string(without_folders(found->file)) + ":" + std::to_string(found->line);
  const std::string function = found->function.empty() ? std::string(place.symbol) : found->function;
  return function.empty() ? text : text + " (" + function + ")";
}

// What stands before the place: "in allreduce #2 of communicator f4ab04 at ", or nothing.
std::string_view call_before(std::string_view site) {
  constexpr std::string_view kIn = "in ", kAt = " at ";
  const size_t at = site.rfind(kAt);
  return site.starts_with(kIn) && at != std::string_view::npos ? site.substr(0, at + kAt.size()) : "";
}

std::optional<PlaceInModule> place_in(std::string_view site) {
  return parse_place(site.substr(call_before(site).size()));
}

}  // namespace

std::optional<PlaceInModule> parse_place(std::string_view site) {
  const size_t mark = site.rfind("+0x");
  if (mark == std::string_view::npos || site.find(':') < mark) return std::nullopt;
  const size_t digits = mark + 3;
  const size_t end = std::min(site.find_first_not_of("0123456789abcdef", digits), site.size());
  if (end == digits || end - digits > 16 || (end < site.size() && site[end] != ' ')) return std::nullopt;
  PlaceInModule place{site.substr(0, end), std::string(site.substr(0, mark)), 0, {}};
  place.offset = std::strtoull(std::string(site.substr(digits, end - digits)).c_str(), nullptr, 16);
  if (end < site.size()) place.symbol = site.substr(end + 1);
  return place;
}

std::string with_source_line(std::string_view site, bool reads_files) {
  if (const std::string_view call = call_before(site); !call.empty())
    return std::string(call) + with_source_line(site.substr(call.size()), reads_files);
  const std::optional<PlaceInModule> place = parse_place(site);
  if (!place) return std::string(site);
  Kept& known = kept();
  {
    const Lock lock(known.mutex);
    if (const auto found = known.lines.find(site); found != known.lines.end()) return found->second;
  }
  if (!reads_files) return shortened(*place);
  std::string text = resolve(*place);
  const Lock lock(known.mutex);
  if (known.lines.size() < kMostKept) known.lines.emplace(site, text);
  return text;
}

std::string SourceLines::of_this_host(std::string_view site) {
  if (const auto place = place_in(site)) programs_.insert(place->path);
  return with_source_line(site, reads_files_);
}

std::string SourceLines::of_another_host(std::string_view site) const {
  const auto place = place_in(site);
  return with_source_line(site, reads_files_ && place && programs_.contains(place->path));
}

}  // namespace ccom

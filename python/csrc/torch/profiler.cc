// SPDX-License-Identifier: Apache-2.0
#include "profiler.h"

namespace ccom_torch {
namespace {

std::string algorithm_of(ccomComm_t comm, const char* collective, size_t bytes) {
  std::string json(16384, '\0');
  size_t length = json.size();
  if (ccomExplain(comm, collective, bytes, ccomUint8, 0, json.data(), &length) != ccomSuccess) return "";
  static constexpr const char* kKey = "\"algorithm\":";
  const size_t key = json.find(kKey);
  if (key == std::string::npos) return "";
  const size_t begin = json.find('"', key + std::char_traits<char>::length(kKey));
  return begin == std::string::npos ? "" : json.substr(begin + 1, json.find('"', begin + 1) - begin - 1);
}

}  // namespace

AlgorithmRecord::AlgorithmRecord(ccomComm_t comm, const char* collective, size_t count_bytes) {
  if (collective == nullptr) return;
  record_.emplace(at::RecordScope::USER_SCOPE);
  if (!record_->isActive()) return;
  name_ = "ccom::" + std::string(collective) + " " + algorithm_of(comm, collective, count_bytes);
  record_->before(std::string_view(name_));
}

}  // namespace ccom_torch

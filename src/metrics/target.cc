// SPDX-License-Identifier: Apache-2.0
#include "metrics/target.h"

#include <arpa/inet.h>

#include <string_view>

#include "base/tcp_socket.h"

namespace ccom {
namespace {

constexpr std::string_view kScheme = "tcp://";

Status wrong(const std::string& text, const std::string& why) {
  return error(ErrorKey::VariableValue, "CCOM_METRICS=%s: %s", text.c_str(), why.c_str())
      .with_cure("give a file, as /run/ccom-%r.prom, or a loopback port, as tcp://127.0.0.1:9400");
}

// A literal: what a name stands for may change.
bool is_loopback(const std::string& address) {
  in_addr number{};
  if (::inet_pton(AF_INET, address.c_str(), &number) == 1) return address.starts_with("127.");
  return address == "::1";
}

// Calls use(letter) for what stands behind each percent sign.
template <typename Fn>
void for_each_mark(const std::string& path, Fn use) {
  for (size_t i = 0; i + 1 < path.size(); ++i)
    if (path[i] == '%') use(path[++i]);
}

}  // namespace

Result<MetricsTarget> parse_metrics_target(const std::string& text) {
  MetricsTarget target;
  if (text.empty()) return target;
  if (!text.starts_with(kScheme)) {
    if (text.find("://") != std::string::npos) return wrong(text, "there are files and tcp://");
    target.path = text;
    bool is_known = true;
    for_each_mark(text, [&](char mark) { is_known = is_known && (mark == 'r' || mark == 'p' || mark == '%'); });
    if (!is_known) return wrong(text, "there are %r, the rank, %p, the process, and %%");
    return target;
  }
  const Result<HostPort> parsed = parse_host_port(std::string_view(text).substr(kScheme.size()));
  if (!parsed) return wrong(text, parsed.error().message());
  target.address = parsed->host == "localhost" ? "127.0.0.1" : parsed->host;
  target.port = parsed->port;
  if (!is_loopback(target.address))
    return wrong(text, "other hosts could read that; only loopback addresses are allowed");
  return target;
}

std::string metrics_path(const std::string& path, Rank rank, int pid) {
  std::string made;
  for (size_t i = 0; i < path.size(); ++i) {
    const char mark = path[i] == '%' && i + 1 < path.size() ? path[i + 1] : '\0';
    if (mark == '\0') {
      made += path[i];
      continue;
    }
    made += mark == 'r' ? std::to_string(rank) : mark == 'p' ? std::to_string(pid) : "%";
    ++i;
  }
  return made;
}

bool tells_ranks_apart(const std::string& path) {
  bool is_apart = false;
  for_each_mark(path, [&](char mark) { is_apart = is_apart || mark == 'r' || mark == 'p'; });
  return is_apart;
}

}  // namespace ccom

// SPDX-License-Identifier: Apache-2.0
#include "transports/tcp/peer_address.h"

#include <string_view>

namespace ccom::tcp {
namespace {

constexpr std::string_view kTlsMark = " tls";

}  // namespace

std::string to_text(const PeerAddress& address) {
  std::string text;
  for (const Endpoint& endpoint : address.endpoints) text += (text.empty() ? "" : ",") + to_text(endpoint);
  return address.tls ? text.append(kTlsMark) : text;
}

Result<PeerAddress> parse_peer_address(const std::string& text) {
  std::string_view rest = text;
  PeerAddress address{.endpoints = {}, .tls = rest.ends_with(kTlsMark)};
  if (address.tls) rest.remove_suffix(kTlsMark.size());
  while (true) {
    const size_t comma = rest.find(',');
    CCOM_TRY_ASSIGN(Endpoint endpoint, parse_endpoint(std::string(rest.substr(0, comma))));
    address.endpoints.push_back(std::move(endpoint));
    if (comma == std::string_view::npos) return address;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace ccom::tcp

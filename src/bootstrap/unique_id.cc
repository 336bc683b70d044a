// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/unique_id.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace ccom {
namespace {

// Numbers are little-endian; unused bytes are zero.
constexpr char kMagic[4] = {'c', 'c', 'i', 'd'};
constexpr uint8_t kVersion = 1;
constexpr size_t kVersionAt = 4;
constexpr size_t kFamilyAt = 5;  // 4 or 6
constexpr size_t kFlagsAt = 6;
constexpr size_t kPortAt = 8;
constexpr size_t kCommunicatorAt = 16;
constexpr size_t kAddressAt = 24;
constexpr size_t kSecretAt = 40;
constexpr size_t kSaltAt = 72;
constexpr size_t kCheckAt = 120;  // to the end: a keyed checksum of everything before
static_assert(kAddressAt + sizeof(in6_addr) == kSecretAt && kSecretAt + Secret::kBytes == kSaltAt);

constexpr uint8_t kFlagRank0Serves = 1, kFlagRank0Made = 2;

template <typename Number>
void put(UniqueId::Packed& bytes, size_t at, Number value) {
  for (size_t i = 0; i < sizeof value; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

template <typename Number>
Number get(std::span<const char> bytes, size_t at) {
  Number value = 0;
  for (size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Number>(static_cast<Number>(static_cast<uint8_t>(bytes[at + i])) << (8 * i));
  }
  return value;
}

uint64_t checksum(std::span<const char> bytes, const Secret& secret) {
  const Mac mac = hmac_sha256(secret.derive("ccom unique id check"), std::as_bytes(bytes.first(kCheckAt)));
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value |= uint64_t{mac[i]} << (8 * i);
  return value;
}

struct NumericAddress {
  bool is_ipv6 = false;
  in6_addr bytes{};  // an IPv4 address occupies the first four
};

Result<NumericAddress> parse(const std::string& text) {
  NumericAddress address;
  if (inet_pton(AF_INET, text.c_str(), &address.bytes) == 1) return address;
  address.is_ipv6 = true;
  if (inet_pton(AF_INET6, text.c_str(), &address.bytes) == 1) return address;
  return error(Code::InvalidArgument, "'%s' is not a numeric IP address", text.c_str());
}

// The IPv4 address in network order, if it is one or an IPv4-mapped IPv6 address.
bool as_ipv4(const NumericAddress& address, in_addr& out) {
  if (address.is_ipv6 && !IN6_IS_ADDR_V4MAPPED(&address.bytes)) return false;
  std::memcpy(&out, address.bytes.s6_addr + (address.is_ipv6 ? 12 : 0), sizeof out);
  return true;
}

Status check_bytes(std::span<const char> bytes) {
  const auto invalid = [](const char* what) {
    return error(Code::InvalidArgument, "the unique id %s", what)
        .with_cure("pass the 128 bytes from ccomGetUniqueId or ccomUniqueIdFromUrl unchanged to every rank");
  };
  if (std::ranges::all_of(bytes, [](char byte) { return byte == 0; }))
    return invalid("is all zero: it was never initialised");
  if (!std::ranges::equal(bytes.first(sizeof kMagic), kMagic)) return invalid("was not created by ccom");
  if (const auto version = get<uint8_t>(bytes, kVersionAt); version != kVersion) {
    return error(Code::InvalidArgument, "the unique id has version %d, but this ccom supports version %d", version,
                 kVersion)
        .with_cure("use the same version of ccom on every rank");
  }
  const auto family = get<uint8_t>(bytes, kFamilyAt);
  if ((family != 4 && family != 6) || get<uint16_t>(bytes, kPortAt) == 0) return invalid("is corrupt");
  return Status::ok();
}

}  // namespace

std::string UniqueId::endpoint() const { return endpoint_text(address, port); }

bool is_loopback_address(const std::string& text) {
  const auto address = parse(text);
  if (!address) return false;
  in_addr ipv4{};
  if (as_ipv4(*address, ipv4)) return (ntohl(ipv4.s_addr) >> 24) == 127;
  return IN6_IS_ADDR_LOOPBACK(&address->bytes);
}

bool is_wildcard_address(const std::string& text) {
  const auto address = parse(text);
  if (!address) return false;
  in_addr ipv4{};
  if (as_ipv4(*address, ipv4)) return ipv4.s_addr == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&address->bytes);
}

UniqueId masked(UniqueId id, const Secret& key, std::string_view purpose) {
  const std::string label = std::string(purpose) + " " + std::to_string(id.communicator);
  id.secret = id.secret.masked_by(key.derive(label));
  return id;
}

Result<UniqueId::Packed> pack(const UniqueId& id) {
  CCOM_TRY_ASSIGN(const NumericAddress address, parse(id.address));
  if (is_wildcard_address(id.address) || id.port == 0) {
    return error(Code::InvalidArgument, "%s is not a valid rendezvous address", id.endpoint().c_str());
  }
  UniqueId::Packed bytes{};
  std::ranges::copy(kMagic, bytes.begin());
  put(bytes, kVersionAt, kVersion);
  put(bytes, kFamilyAt, static_cast<uint8_t>(address.is_ipv6 ? 6 : 4));
  put(bytes, kFlagsAt,
      static_cast<uint8_t>((id.rank0_serves ? kFlagRank0Serves : 0) | (id.rank0_made ? kFlagRank0Made : 0)));
  put(bytes, kPortAt, id.port);
  put(bytes, kCommunicatorAt, id.communicator);
  std::memcpy(bytes.data() + kAddressAt, &address.bytes, sizeof address.bytes);
  std::memcpy(bytes.data() + kSecretAt, id.secret.bytes().data(), Secret::kBytes);
  put(bytes, kSaltAt, id.salt);
  put(bytes, kCheckAt, checksum(bytes, id.secret));
  return bytes;
}

Result<UniqueId> unpack(std::span<const char, UniqueId::kBytes> bytes) {
  CCOM_TRY(check_bytes(bytes));
  UniqueId id;
  const auto* secret = reinterpret_cast<const uint8_t*>(bytes.data()) + kSecretAt;
  id.secret = Secret(std::span<const uint8_t, Secret::kBytes>(secret, Secret::kBytes));
  if (checksum(bytes, id.secret) != get<uint64_t>(bytes, kCheckAt)) {
    return error(Code::InvalidArgument, "the unique id is corrupt: its checksum is wrong")
        .with_cure("pass on all 128 bytes unchanged; they are binary, not a C string");
  }
  char text[INET6_ADDRSTRLEN];
  const int family = get<uint8_t>(bytes, kFamilyAt) == 6 ? AF_INET6 : AF_INET;
  CCOM_ASSERT(inet_ntop(family, bytes.data() + kAddressAt, text, sizeof text) != nullptr);
  id.address = text;
  id.port = get<uint16_t>(bytes, kPortAt);
  id.communicator = get<uint64_t>(bytes, kCommunicatorAt);
  id.salt = get<uint64_t>(bytes, kSaltAt);
  id.rank0_serves = (get<uint8_t>(bytes, kFlagsAt) & kFlagRank0Serves) != 0;
  id.rank0_made = (get<uint8_t>(bytes, kFlagsAt) & kFlagRank0Made) != 0;
  if (is_wildcard_address(id.address)) return error(Code::InvalidArgument, "the unique id contains no address");
  return id;
}

}  // namespace ccom

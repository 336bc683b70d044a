// SPDX-License-Identifier: Apache-2.0
//
// TCP over loopback: with one connection per channel, with several, without checksums, inside TLS, over two
// addresses.
#include "tests/conformance/transport_suite.h"
#include "transports/tcp/factory.h"

namespace ccom::conformance {
namespace {

class TcpJob final : public Job {
 public:
  explicit TcpJob(const tcp::TcpConfig& config) : config_(config) {}
  Result<std::unique_ptr<Transport>> make(Rank rank) override {
    tcp::TcpConfig config = config_;
    config.rank = rank;
    return tcp::make_tcp_transport(config);
  }

 private:
  const tcp::TcpConfig config_;
};

Member member(std::string name, int streams, bool crc, bool tls = false,
              const std::vector<std::string>& addresses = {"127.0.0.1"}) {
  const tcp::TcpConfig config{.communicator = 7,
                              .key = Secret::random(),
                              .bind_addresses = addresses,
                              .streams = streams,
                              .crc = crc,
                              .tls = tls};
  return {.name = std::move(name),
          .make_job = [config](JobShape) -> std::unique_ptr<Job> { return std::make_unique<TcpJob>(config); }};
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformance,
                         testing::Values(member("OneStream", 1, true), member("FourStreams", 4, true),
                                         member("WithoutChecksums", 1, false), member("Tls", 1, true, true),
                                         member("TlsFourStreams", 4, true, true),
                                         member("TwoInterfaces", 1, true, false, {"127.0.0.1", "127.0.0.2"})),
                         member_name);

}  // namespace
}  // namespace ccom::conformance

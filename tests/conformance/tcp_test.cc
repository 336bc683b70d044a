// SPDX-License-Identifier: Apache-2.0
//
// TCP over loopback: with one connection per channel, with several, without checksums.
#include "tests/conformance/transport_suite.h"
#include "transports/tcp/factory.h"

namespace ccom::conformance {
namespace {

class TcpJob final : public Job {
 public:
  TcpJob(int streams, bool crc) : streams_(streams), crc_(crc) {}
  Result<std::unique_ptr<Transport>> make(Rank rank) override {
    return tcp::make_tcp_transport(
        {.rank = rank, .communicator = 7, .key = key_, .bind_address = "127.0.0.1", .streams = streams_, .crc = crc_});
  }

 private:
  const Secret key_ = Secret::random();
  const int streams_;
  const bool crc_;
};

Member member(std::string name, int streams, bool crc) {
  return {.name = std::move(name), .make_job = [streams, crc](JobShape) -> std::unique_ptr<Job> {
            return std::make_unique<TcpJob>(streams, crc);
          }};
}

INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformance,
                         testing::Values(member("OneStream", 1, true), member("FourStreams", 4, true),
                                         member("WithoutChecksums", 1, false)),
                         member_name);

}  // namespace
}  // namespace ccom::conformance

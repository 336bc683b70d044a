// SPDX-License-Identifier: Apache-2.0
//
// How ranks find one another: launchers' environments, ids, addresses, and what ranks say at the rendezvous.
#include <arpa/inet.h>
#include <google/protobuf/stubs/logging.h>

#include <map>

#include "base/tcp_socket.h"
#include "bootstrap/answers.h"
#include "bootstrap/gathering.h"
#include "bootstrap/interface_filter.h"
#include "bootstrap/launch.h"
#include "bootstrap/launch_environment.h"
#include "bootstrap/launch_hosts.h"
#include "bootstrap/rendezvous.pb.h"
#include "bootstrap/unique_id.h"
#include "bootstrap/url.h"
#include "tests/fuzz/target.h"

namespace ccom {
namespace {

using fuzz::Reader;
using fuzz::require;
using fuzz::text_of;

// Lines of NAME=VALUE.
CCOM_FUZZ_TARGET(launch_environment) {
  std::map<std::string, std::string, std::less<>> variables;
  std::string_view text = text_of(input);
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals != line.npos) variables[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  const EnvironmentLookup environment = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  const Result<Launch> launch = read_launch(environment);
  if (launch) {
    require(launch->nranks >= 1 && launch->rank >= 0 && launch->rank < launch->nranks);
    require(launch->local_rank < 0 || launch->local_nranks < 0 || launch->local_rank < launch->local_nranks);
  }
  const auto rendezvous = read_launch_rendezvous(environment, 1000, [](int) { return 1000; });
  if (rendezvous && rendezvous->origin != "CCOM_URL")
    require(rendezvous->url.starts_with("tcp://") || rendezvous->url.starts_with("file://"));
  (void)read_interface_filter(environment, {});
  for (const char* name : {"SM_HOSTS", "TF_CONFIG"}) {
    if (const char* value = environment(name)) (void)parse_host_names(name, value);
  }
  for (const char* name : {"SLURM_JOB_NODELIST", "PBS_NODEFILE"}) {
    if (const char* value = environment(name)) (void)first_node(name, value);
  }
}

CCOM_FUZZ_TARGET(unique_id) {
  UniqueId::Packed bytes{};
  std::memcpy(bytes.data(), input.data(), std::min(bytes.size(), input.size()));
  const Result<UniqueId> id = unpack(bytes);
  if (!id) return;
  const Result<UniqueId::Packed> packed = pack(*id);
  require(packed.has_value());
  const Result<UniqueId> again = unpack(*packed);
  require(again && again->endpoint() == id->endpoint() && again->communicator == id->communicator);
}

CCOM_FUZZ_TARGET(addresses) {
  const std::string_view text = text_of(input);
  if (const auto found = parse_host_port(text)) require(!found->host.empty());
  if (const auto ports = parse_port_range(text)) require(ports->low <= ports->high);
}

// Urls as users write them, of rank 1: it creates nothing. Names of hosts would be asked for in the network.
CCOM_FUZZ_TARGET(url) {
  Reader reader(input);
  const auto is_name = [](std::string_view text) {
    const Result<HostPort> where = parse_host_port(text);
    in6_addr numeric;
    return where && ::inet_pton(AF_INET, where->host.c_str(), &numeric) != 1 &&
           ::inet_pton(AF_INET6, where->host.c_str(), &numeric) != 1;
  };
  const int nranks = static_cast<int>(reader.below(4)) - 1, rank = reader.below(8) == 0 ? nranks : 1;
  const std::string_view url = text_of(reader.take(1000));
  constexpr std::string_view kTcp = "tcp://";
  if (url == "env://" || (url.starts_with(kTcp) && is_name(url.substr(kTcp.size())))) return;
  const MakeId make_id = [] { return error(Code::SystemError, "rank 0 alone makes one"); };
  const Result<UniqueId> id = unique_id_from_url(url, nranks, rank, Deadline::after_ms(0), make_id);
  if (!id) return require(!id.error().message().empty());
  require(rank >= 0 && rank < nranks && url.starts_with(kTcp) && id->port != 0 && !id->address.empty());
}

// What passes between a rank and the server of the rendezvous, inside TLS.
CCOM_FUZZ_TARGET(rendezvous_messages) {
  if (input.empty()) return;
  google::protobuf::SetLogHandler(nullptr);  // it has much to say about strings
  const std::string text(text_of(input.subspan(1)));
  if (std::to_integer<int>(input[0]) % 2 == 0) {
    wire::Request request;
    if (!request.ParseFromString(text)) return;
    Gathering gathering;
    const Caller caller = caller_of(request);
    (void)gathering.would_admit(caller);
    (void)gathering.join(caller);
    const wire::Contribution& part = request.contribution();
    (void)gathering.contribute(caller, part.round(), part.phase(), part.part());
    (void)gathering.result(part.round());
    gathering.lose_rank(caller.rank);
  } else {
    wire::Answer answer;
    if (!answer.ParseFromString(text)) return;
    const Status status = decode(answer);
    if (!answer.has_failure()) require(status.is_ok());
  }
}

// Any number of ranks that say anything in any order. Whoever has an answer has all parts of his round.
CCOM_FUZZ_TARGET(gathering) {
  constexpr int kCallers = 6;
  fuzz::Reader reader(input);
  Gathering gathering;
  for (int steps = 0; steps < 200 && !reader.is_empty(); ++steps) {
    const auto kind = reader.number<uint8_t>();
    const Caller caller{.rank = static_cast<int>(reader.below(kCallers)) - 1,
                        .nranks = static_cast<int>(reader.below(kCallers)),
                        .token = reader.below(3),
                        .who = "somebody"};
    const uint64_t round = reader.below(4);
    switch (kind % 6) {
      case 0: (void)gathering.join(caller); break;
      case 1: gathering.leave(caller); break;
      case 2: (void)gathering.would_admit(caller); break;
      case 3: {
        const std::string phase(1, static_cast<char>('a' + reader.below(2)));
        (void)gathering.contribute(caller, round, phase, std::string(text_of(reader.take(reader.below(40)))));
        break;
      }
      case 4: gathering.lose_rank(caller.rank); break;
      default: gathering.time_out(caller.rank, 1); break;
    }
    const Gathering::Parts parts = gathering.result(round);
    if (parts != nullptr) require(static_cast<int>(parts->size()) == gathering.nranks());
  }
}

}  // namespace
}  // namespace ccom

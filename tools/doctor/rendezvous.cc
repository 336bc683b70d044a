// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/rendezvous.h"

#include <unistd.h>

#include <cstring>

#include "base/network.h"
#include "base/options.h"
#include "base/tcp_socket.h"
#include "bootstrap/grpc_client.h"
#include "bootstrap/interface_filter.h"
#include "bootstrap/rendezvous_servers.h"
#include "bootstrap/url.h"
#include "tools/doctor/socket.h"

namespace ccom::doctor {

namespace {

// Distinguishes a network that blocks everything from one that passes small packets only.
std::string plain_connection(const UniqueId& id) {
  const Opened opened = connect_to(id.address, id.port, Deadline::after(std::chrono::seconds(3)));
  if (opened.failure == 0) return ", with which a plain TCP connection is possible";
  return std::string(", with which not even a plain TCP connection is possible: ") + std::strerror(opened.failure);
}

}  // namespace

Result<JobRendezvous> JobRendezvous::join(int rank, int nranks, Deadline arrival, Deadline life) {
  const MakeId make_id = [life]() -> Result<UniqueId> {
    CCOM_TRY_ASSIGN(const InterfaceFilter filter, read_interface_filter(process_environment, list_interfaces()));
    CCOM_TRY_ASSIGN(const PortRange ports, parse_port_range(option("CCOM_PORT_RANGE")));
    return create_unique_id(filter.text, ports, life);
  };
  CCOM_TRY_ASSIGN(const LaunchRendezvous launch, read_launch_rendezvous(process_environment, ::geteuid()));
  CCOM_TRY_ASSIGN(UniqueId id, unique_id_from_url("env://", nranks, rank, arrival, make_id));
  JobRendezvous job;
  job.secret_ = id.secret;
  job.where_ = id.endpoint() + " (" + launch.origin + ")";
  if (id.rank0_serves && rank == 0) CCOM_TRY(host_rendezvous(id, life));
  id.rank0_serves = false;
  auto rendezvous = connect_rendezvous(id, nranks, rank, arrival, {}, {.has_socket = true});
  if (!rendezvous) return std::move(rendezvous).error().in("rendezvous server " + job.where_ + plain_connection(id));
  job.rendezvous_ = *std::move(rendezvous);
  return job;
}

}  // namespace ccom::doctor

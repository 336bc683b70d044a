// SPDX-License-Identifier: Apache-2.0
//
// Reports as JSON: exchanged between ranks, and printed by --json.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/doctor/report.h"

namespace ccom::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DataAddress, interface, address, port, mtu, bytes_per_second)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RankReport, rank, host_id, host_name, instance_type, kernel,
                                                ccom_version, libfabric, providers, providers_failure, interfaces,
                                                filter, filter_origin, filter_failure, addresses, efa_devices, cpus,
                                                open_files, locked_bytes, shm_bytes, ptrace_scope, free_hugepages,
                                                available_bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Reach, from, to, address, connects, answers, carries, path_mtu,
                                                connect_ms, failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Speed, a, b, latency_ns, there_bytes_per_second, back_bytes_per_second,
                                                transports, failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Job, tried, failure, transports, start_ms, small_us, large_us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HostEntry, label, ranks, report, clock_ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Report, nranks, rendezvous, hosts, versions, reaches, speeds, job,
                                                ended, missing)

}  // namespace ccom::doctor

// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/report_json.h"

#include <nlohmann/json.hpp>

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
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Offer, id, failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Job, tried, failure, transports, start_ms, small_us, large_us)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HostEntry, label, ranks, report, clock_ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Report, nranks, rendezvous, hosts, versions, reaches, speeds, job,
                                                ended, missing)

namespace {

std::string text_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

template <typename T>
std::string to_message(const T& value) {
  return text_of(value);
}

template <typename T>
std::optional<T> from_message(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<T>();
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

#define CCOM_DOCTOR_MESSAGE(...)                       \
  template std::string to_message(const __VA_ARGS__&); \
  template std::optional<__VA_ARGS__> from_message(const std::string&);
CCOM_DOCTOR_MESSAGE(std::string)
CCOM_DOCTOR_MESSAGE(int64_t)
CCOM_DOCTOR_MESSAGE(RankReport)
CCOM_DOCTOR_MESSAGE(std::vector<Reach>)
CCOM_DOCTOR_MESSAGE(Offer)
CCOM_DOCTOR_MESSAGE(Speed)
CCOM_DOCTOR_MESSAGE(Job)
CCOM_DOCTOR_MESSAGE(Report)
#undef CCOM_DOCTOR_MESSAGE

std::string json_report(const Report& report, const std::vector<Finding>& findings) {
  nlohmann::json hosts = nlohmann::json::array();
  for (int host = 0; host < static_cast<int>(report.hosts.size()); ++host) {
    const HostEntry& entry = report.hosts[static_cast<size_t>(host)];
    hosts.push_back({{"host", entry.label}, {"ranks", entry.ranks}, {"verdict", name_of(worst(findings, host))}});
  }
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    nlohmann::json labels = nlohmann::json::array();
    for (const int host : finding.hosts) labels.push_back(report.hosts[static_cast<size_t>(host)].label);
    list.push_back(
        {{"level", name_of(finding.level)}, {"hosts", labels}, {"text", finding.text}, {"cure", finding.cure}});
  }
  const nlohmann::json all{
      {"verdict", name_of(worst(findings))}, {"hosts", hosts}, {"findings", list}, {"report", report}};
  return text_of(all) + "\n";
}

}  // namespace ccom::doctor

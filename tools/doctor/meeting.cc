// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/meeting.h"

#include <unistd.h>

#include "base/network.h"
#include "bootstrap/grpc_rendezvous.h"
#include "bootstrap/interface_filter.h"
#include "bootstrap/meeting_point.h"
#include "bootstrap/url.h"

namespace ccom::doctor {

Result<Meeting> Meeting::come(int rank, int nranks, Deadline arrival, Deadline life) {
  const MakeId make_id = [life]() -> Result<UniqueId> {
    CCOM_TRY_ASSIGN(const InterfaceFilter filter, read_interface_filter(process_environment, list_interfaces()));
    return create_unique_id(filter.text, life);
  };
  CCOM_TRY_ASSIGN(const LaunchMeeting launch, read_launch_meeting(process_environment, ::geteuid()));
  CCOM_TRY_ASSIGN(UniqueId id, unique_id_from_url("env://", nranks, rank, arrival, make_id));
  Meeting meeting;
  meeting.secret_ = id.secret;
  meeting.where_ = id.endpoint() + " (" + launch.origin + ")";
  if (id.rank0_serves && rank == 0) CCOM_TRY(host_meeting_point(id, life));
  id.rank0_serves = false;
  auto rendezvous = connect_rendezvous(id, nranks, rank, arrival);
  if (!rendezvous) return std::move(rendezvous).error().in("meeting point " + meeting.where_);
  meeting.rendezvous_ = *std::move(rendezvous);
  return meeting;
}

}  // namespace ccom::doctor

// SPDX-License-Identifier: Apache-2.0
//
// The one connection that the examination relies on: the rendezvous that the ranks of a job would use as well.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/secret.h"
#include "bootstrap/rendezvous.h"
#include "tools/doctor/report_json.h"

namespace ccom::doctor {

class JobRendezvous {
 public:
  // Joins the rendezvous given by the launcher's environment, until `arrival`; it can be used for exchanges until
  // `life`.
  static Result<JobRendezvous> join(int rank, int nranks, Deadline arrival, Deadline life);

  // Every rank's value, by rank. The first failure ends the rendezvous.
  template <typename T>
  Result<std::vector<T>> exchange(const char* phase, const T& own, std::chrono::seconds limit) {
    CCOM_TRY_ASSIGN(const std::vector<std::string> texts,
                    rendezvous_->all_gather(phase, to_message(own), Deadline::after(limit)));
    std::vector<T> values;
    for (const std::string& text : texts) {
      std::optional<T> value = from_message<T>(text);
      if (!value) {
        return error(Code::InternalError,
                     "cannot parse the data of rank %zu: it may run another version of ccom-doctor", values.size())
            .with_peers({static_cast<int>(values.size())});
      }
      values.push_back(*std::move(value));
    }
    return values;
  }

  const Secret& secret() const { return secret_; }
  const std::string& where() const { return where_; }  // "10.0.0.1:21000 (MASTER_ADDR and MASTER_PORT)"

 private:
  std::unique_ptr<Rendezvous> rendezvous_;
  Secret secret_;
  std::string where_;
};

}  // namespace ccom::doctor

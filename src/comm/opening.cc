// SPDX-License-Identifier: Apache-2.0
//
// The parts of a communicator beside its transports: node, hierarchy, messages.
#include "comm/communicator.h"
#include "planner/node_tuning.h"

namespace ccom {

// Shared memory without messages, for the collectives that the planner would run that way.
Status Communicator::open_node(const WaitPolicy& policy) {
  std::optional<NodeConfig> config = links_->node_config();
  if (!config)
    return membership_.nranks == 1 ? Status()
                                   : config_.sums_in_messages("they do not share memory, or may not use it freely");
  config->barrier.policy = policy;
  if (topology_.hosts.size() > 1) {
    CCOM_TRY(config_.sums_in_messages("they are on several hosts"));
    level_ = host_level(topology_, membership_.rank);
    return level_ ? open_hierarchy(*std::move(config), *level_) : Status();
  }
  node_ = std::make_unique<TunedNode>(
      *std::move(config), node_tuning(topology_), links_->monitor(),
      [this](const CallWords& words) { return describe_call(Envelope{words}); },
      [this](const Status& cause) { return engine_->fail(cause); });
  for (size_t c = 0; c < on_node_.size(); ++c) {
    const auto collective = static_cast<Collective>(c);
    PlanKey key;
    key.collective = collective;
    key.root = is_rooted(collective) ? 0 : -1;
    // A name that does not exist is the error of the call that asks for it.
    const Result<std::shared_ptr<const Choice>> choice = cache_->choice(key);
    on_node_[c] = choice && (*choice)->program().is_node();
    if (reduces(collective) && choice && !on_node_[c])
      CCOM_TRY(config_.sums_in_messages("a named algorithm sends messages"));
  }
  return node_->open();
}

// Shared memory inside this host for the collectives that the planner would run that way.
Status Communicator::open_hierarchy(NodeConfig config, const HostLevel& level) {
  host_node_ = std::make_unique<TunedNode>(
      std::move(config), node_tuning(inside(topology_, level)), links_->monitor(),
      [this](const CallWords& words) { return describe_call(Envelope{words}); },
      [this](const Status& cause) { return engine_->fail(cause); });
  hierarchy_.emplace(Hierarchy::Parts{*host_node_, *engine_, *links_}, level, topology_, config_.crossing);
  for (size_t c = 0; c < by_hosts_.size(); ++c) {
    PlanKey key;
    key.collective = static_cast<Collective>(c);
    key.root = is_rooted(key.collective) ? 0 : -1;
    const Result<std::shared_ptr<const Choice>> choice = cache_->choice(key);
    by_hosts_[c] = choice && !(*choice)->program().is_messages();
  }
  return host_node_->open();
}

Status Communicator::open_messages(const WaitPolicy& policy) {
  CCOM_TRY_ASSIGN(std::optional<MessageRoutes> routes, links_->message_routes());
  if (!routes) return {};
  messages_ = std::make_shared<Messages>(*std::move(routes), links_->monitor(), policy,
                                         [this](Status status) { return finish("message", std::move(status)); });
  return messages_->open();
}

}  // namespace ccom

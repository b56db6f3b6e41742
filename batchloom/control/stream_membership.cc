// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/stream_membership.h"

#include "batchloom/store/manifest_reader.h"

namespace batchloom::control {

Result<StreamSettings> StreamSettings::compare(const store::Stream& stream,
                                               const Membership& membership,
                                               std::optional<store::Step> /*change_from*/,
                                               const CallOptions& call) {
  StreamSettings settings;
  settings.membership_ = membership;
  store::ManifestReader reader(stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  settings.next_step_ = head->head.next_step;
  settings.remembered_ = true;
  return settings;
}

Status StreamSettings::put(store::ProducerSession& /*session*/,
                           const CallOptions& /*call*/) const {
  return Status::ok();
}

}  // namespace batchloom::control

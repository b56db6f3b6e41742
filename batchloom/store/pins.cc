// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "batchloom/store/head_edit.h"
#include "batchloom/store/list_keys.h"
#include "batchloom/store/pin_codec.h"
#include "batchloom/store/read_object.h"
#include "batchloom/store/trim.h"
#include "batchloom/store/upload.h"

namespace batchloom::store {
namespace {

Status validate_names(const std::string& group, const std::string& id) {
  BL_RETURN_IF_ERROR(validate_name("group", group));
  return validate_name("pin", id);
}

Result<std::optional<Pin>> read_pin(const Stream& stream, const PinName& name,
                                    const CallOptions& call) {
  const std::string key = pin_key(name);
  return read_object(stream.objects(), {key, kSmallObjectMaxBytes}, call,
                     [&](const objstore::ObjectData& data) {
                       return decode_pin(stream.uuid(), name, data.bytes);
                     });
}

Result<std::vector<PinName>> list_names(const Stream& stream, std::string_view prefix,
                                        const CallOptions& call) {
  std::vector<PinName> names;
  BL_RETURN_IF_ERROR(for_each_key(stream, prefix, call, [&](const std::string& key) {
    if (auto name = parse_pin_key(key)) names.push_back(*std::move(name));
  }));
  return names;
}

Result<std::vector<Pin>> read_listed(const Stream& stream, std::string_view prefix,
                                     const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const std::vector<PinName> names, list_names(stream, prefix, call));
  std::vector<Pin> pins;
  for (const PinName& name : names) {
    BL_ASSIGN_OR_RETURN(std::optional<Pin> pin, read_pin(stream, name, call));
    if (pin) pins.push_back(*std::move(pin));  // Else it was removed since.
  }
  std::ranges::sort(pins, {}, [](const Pin& pin) { return std::tie(pin.step, pin.name); });
  return pins;
}

/// Removes a pin that came too late, and says so.
Status refuse(const Stream& stream, const Pin& pin, const Status& refusal,
              const CallOptions& call) {
  stream.counters().counter("store_pins_refused").add();
  const std::string key = pin_key(pin.name);
  const Status removed = remove_pins(stream, {pin.name}, call);
  if (removed.is_ok()) return refusal.with_context("pinning " + key);
  return {
      refusal.kind(),
      fmt::format("pinning {}: {}; the pin could not be removed again and promises nothing ({}):"
                  " unpin '{}' of group '{}'",
                  key, refusal.message(), removed.to_string(), pin.name.id, pin.name.group)};
}

}  // namespace

Result<Pin> pin_step(const Stream& stream, const PinRequest& request, const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_names(request.group, request.id));
  const Pin pin{.name = {.group = request.group, .id = request.id, .nonce = stream.random_nonce()},
                .step = request.step};
  const Bytes bytes = encode_pin(stream.uuid(), pin);
  const ByteSpan part = bytes;
  BL_RETURN_IF_ERROR(upload_unique(stream, pin_key(pin.name), std::span(&part, 1), call));
  ManifestReader reader(stream);
  const Status kept = confirm_kept(stream, reader, pin.step, call);
  if (kept.is(ErrorKind::kNotFound)) return refuse(stream, pin, kept, call);
  if (!kept.is_ok()) {
    return kept.with_context(
        fmt::format("pinning {}: it stands, but may have come too late; unpin it and pin again",
                    pin_key(pin.name)));
  }
  stream.counters().counter("store_pins").add();
  return pin;
}

Result<std::size_t> unpin(const Stream& stream, const std::string& group, const std::string& id,
                          const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_names(group, id));
  BL_ASSIGN_OR_RETURN(const auto names, list_names(stream, group_prefix(group), call));
  std::vector<PinName> of_id;
  for (const PinName& name : names) {
    if (name.id == id) of_id.push_back(name);
  }
  BL_RETURN_IF_ERROR(remove_pins(stream, of_id, call));
  return of_id.size();
}

Status remove_pins(const Stream& stream, const std::vector<PinName>& names,
                   const CallOptions& call) {
  if (names.empty()) return Status::ok();
  std::vector<std::string> keys;
  for (const PinName& name : names) keys.push_back(pin_key(name));
  BL_ASSIGN_OR_RETURN(const auto replies, stream.objects().remove(keys, call));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].is_ok()) return replies[i].with_context("removing " + keys[i]);
  }
  return Status::ok();
}

Result<std::vector<Pin>> list_pins(const Stream& stream, const CallOptions& call) {
  return read_listed(stream, kPinPrefix, call);
}

Result<std::vector<Pin>> list_pins(const Stream& stream, const std::string& group,
                                   const CallOptions& call) {
  BL_RETURN_IF_ERROR(validate_name("group", group));
  return read_listed(stream, group_prefix(group), call);
}

Status check_not_trimmed(const Head& head, Step step) {
  if (step >= head.first_step) return Status::ok();
  return Status::not_found(fmt::format("step {} was trimmed: the stream begins at step {}",
                                       step.value, head.first_step.value));
}

Status confirm_kept(const Stream& stream, ManifestReader& reader, Step step,
                    const CallOptions& call) {
  const HeadEdit withdraw = [&](const Head& head) -> Result<std::optional<Head>> {
    BL_RETURN_IF_ERROR(check_not_trimmed(head, step));
    if (!head.trim_intent || head.trim_intent->step <= step) return std::optional<Head>();
    return std::optional(withdraw_trim_intent(head));
  };
  BL_ASSIGN_OR_RETURN(const EditReceipt receipt, commit_edit(stream, reader, withdraw, call));
  if (receipt.committed) stream.counters().counter("store_intents_withdrawn").add();
  return Status::ok();
}

}  // namespace batchloom::store

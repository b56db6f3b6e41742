// SPDX-License-Identifier: Apache-2.0
#include "batchloom/client/checkpoint_pins.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace batchloom::client {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool same_checkpoint(const store::Pin& a, const store::Pin& b) {
  return a.step == b.step && a.name.id == b.name.id;
}

/// All but those of the newest `keep` checkpoints. `oldest_first`, and equal ones side by side.
std::vector<store::PinName> outdated(const std::vector<store::Pin>& oldest_first,
                                     std::uint64_t keep) {
  std::vector<store::PinName> names;
  std::uint64_t newer = 0;
  for (std::size_t i = oldest_first.size(); i-- > 0;) {
    const bool is_last = i + 1 == oldest_first.size();
    if (is_last || !same_checkpoint(oldest_first[i], oldest_first[i + 1])) ++newer;
    if (newer > keep) names.push_back(oldest_first[i].name);
  }
  return names;
}

}  // namespace

std::string pin_series(std::string_view name) {
  std::string series;
  for (const char c : name) {
    if (!is_digit(c)) {
      series.push_back(c);
    } else if (series.empty() || series.back() != '#') {
      series.push_back('#');
    }
  }
  return series;
}

Status pin_checkpoint(const store::Stream& stream, const store::PinRequest& request,
                      std::uint64_t keep, const CallOptions& call) {
  BL_RETURN_IF_ERROR(store::pin_step(stream, request, call).status());
  BL_ASSIGN_OR_RETURN(std::vector<store::Pin> pins, store::list_pins(stream, request.group, call));
  const std::string series = pin_series(request.id);
  std::erase_if(pins, [&](const store::Pin& pin) { return pin_series(pin.name.id) != series; });
  // Of those at this step, the one just made is the newest.
  std::ranges::sort(pins, {}, [&](const store::Pin& pin) {
    return std::tuple(pin.step <= request.step, pin.step, pin.name.id == request.id, pin.name);
  });
  return store::remove_pins(stream, outdated(pins, std::max(keep, std::uint64_t{1})), call);
}

}  // namespace batchloom::client

// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/keys.h"

#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

/// A key that is accepted is the one that would have been written.
void attempt(std::string_view key) {
  if (const auto slot = parse_manifest_key(key)) {
    BL_CHECK(manifest_key(*slot) == key, "foreign spelling of a manifest key");
  }
  if (const auto name = parse_segment_key(key)) {
    BL_CHECK(segment_key(*name) == key, "foreign spelling of a segment key");
  }
  if (const auto name = parse_data_key(key)) {
    BL_CHECK(data_key(*name) == key, "foreign spelling of a data key");
  }
  if (const auto name = parse_pin_key(key)) {
    BL_CHECK(pin_key(*name) == key, "foreign spelling of a pin's key");
  }
  if (const auto group = parse_live_cursor_key(key)) {
    BL_CHECK(live_cursor_key(*group) == key, "foreign spelling of a live cursor's key");
  }
  BL_CHECK(validate_name("name", key).is_ok() == is_name(key), "two opinions about a name");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(as_text(input));
  for (const std::string_view sample :
       {"m/00000000000000000012", "s/00000000000000000012-2-000000000000beef",
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tgb",
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.state",
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.membership",
        "pin/train/step-12-0a1b2c3d4e5f6071", "pin/train/live"}) {
    attempt(as_text(fuzz::edited(as_bytes(sample), input)));
  }
  return 0;
}

}  // namespace batchloom::store

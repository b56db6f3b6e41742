// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/damage.h"

#include <gtest/gtest.h>

namespace batchloom::store {
namespace {

TEST(Damage, NamesKeyByteAndReason) {
  const Status whole = corrupt_at("m/1", 32, "damaged");
  EXPECT_TRUE(whole.is(ErrorKind::kCorruption));
  EXPECT_EQ(whole.message(), "m/1: at byte 32: damaged");
  const ObjectPart index{.key = "d/x", .name = "index", .begin_bytes = 192};
  EXPECT_EQ(corrupt_at(index, 32, "damaged").message(), "d/x: at byte 224: index: damaged")
      << "counted from the object's begin";
}

TEST(Damage, ALaterVersionIsInvalid) {
  const Status newer = newer_at("m/1", 6, "format version 1");
  EXPECT_TRUE(newer.is(ErrorKind::kInvalid));
  EXPECT_EQ(newer.message(), "m/1: at byte 6: format version 1: upgrade batchloom");
  EXPECT_EQ(unknown_version_at({.key = "m/1"}, 6, "head", 2).to_string(),
            "invalid: m/1: at byte 6: head has format version 2, this build reads up to 1: upgrade "
            "batchloom");
  EXPECT_EQ(unknown_version_at({.key = "m/1"}, 6, "head", 0).to_string(),
            "invalid: m/1: at byte 6: head has format version 0, a draft of version 1: make the "
            "stream anew");
}

TEST(Damage, WhatIsMissingHasNoByte) {
  const Status missing = missing_object("gc/floor", "though init makes it");
  EXPECT_TRUE(missing.is(ErrorKind::kCorruption));
  EXPECT_EQ(missing.message(), "gc/floor: missing, though init makes it");
}

TEST(Damage, AWrongSizeIsFoundWhereTheObjectEndsOrShould) {
  const auto text = [](std::uint64_t actual, std::uint64_t expected) {
    return std::string(wrong_size("d/x", actual, expected, "its entry").message());
  };
  EXPECT_EQ(text(0, 9), "d/x: at byte 0: the object is empty: it has 0 bytes, its entry says 9");
  EXPECT_EQ(text(8, 9), "d/x: at byte 8: truncated: it has 8 bytes, its entry says 9");
  EXPECT_EQ(text(12, 9), "d/x: at byte 9: too long: it has 12 bytes, its entry says 9");
}

}  // namespace
}  // namespace batchloom::store

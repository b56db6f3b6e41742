// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/keys.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "batchloom/store/store_testing.h"

namespace batchloom::store {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

const DataName kName{.kind = DataKind::kBatch,
                     .producer = "loader-0",
                     .term = Term(7),
                     .seq = Seq(41),
                     .nonce = Nonce(0x0a1b2c3d4e5f6071)};

TEST(Keys, SpellsEachKey) {
  EXPECT_EQ(manifest_key(Slot(12)), "m/00000000000000000012");
  EXPECT_EQ(segment_key({Slot(12), 2, Nonce(0xbeef)}), "s/00000000000000000012-2-000000000000beef");
  EXPECT_EQ(data_key(kName), "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tgb");
  DataName state = kName;
  state.kind = DataKind::kState;
  EXPECT_EQ(data_key(state), "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.state");
  DataName membership = kName;
  membership.kind = DataKind::kMembership;
  EXPECT_EQ(data_key(membership),
            "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.membership");
  EXPECT_EQ(pin_key({"train", "step-12", Nonce(0xbeef)}), "pin/train/step-12-000000000000beef");
  EXPECT_EQ(live_cursor_key("train"), "pin/train/live");
  EXPECT_EQ(group_prefix("train"), "pin/train/");
}

TEST(Keys, ThePinOfAnyNameIsReadBack) {
  for (const std::string& id :
       {std::string("a"), std::string("live"), std::string("a-"), std::string("a-b-"),
        std::string("a-0123456789abcdef"), std::string("0123456789abcdef"), std::string(63, 'z')}) {
    const PinName name{"live", id, Nonce(0x0123456789abcdef)};
    EXPECT_EQ(parse_pin_key(pin_key(name)), name) << id;
    EXPECT_EQ(parse_live_cursor_key(pin_key(name)), std::nullopt) << id;
  }
  EXPECT_EQ(parse_live_cursor_key(live_cursor_key("live")), "live");
  EXPECT_EQ(parse_pin_key(live_cursor_key("live")), std::nullopt);
}

TEST(Keys, RejectsForeignPinKeys) {
  for (const std::string_view key : {"pin",
                                     "pin/",
                                     "pin/g",
                                     "pin/g/",
                                     "pin/g/a",
                                     "pin/g/-000000000000beef",
                                     "pin/g/a-000000000000bee",
                                     "pin/g/a-000000000000BEEF",
                                     "pin/g/a_000000000000beef",
                                     "pin/g/a000000000000beef",
                                     "pin/g/A-000000000000beef",
                                     "pin/g/_a-000000000000beef",
                                     "pin/g/a.b-000000000000beef",
                                     "pin/g/a/b-000000000000beef",
                                     "pin//a-000000000000beef",
                                     "pin/G/a-000000000000beef",
                                     "pin/g.h/a-000000000000beef",
                                     "pin/a-000000000000beef",
                                     "pin/g/a-000000000000beef ",
                                     "pin/g/a-000000000000beef.tmp",
                                     "pins/g/a-000000000000beef",
                                     "Pin/g/a-000000000000beef",
                                     "/pin/g/a-000000000000beef",
                                     "m/g/a-000000000000beef"}) {
    EXPECT_EQ(parse_pin_key(key), std::nullopt) << key;
  }
  EXPECT_EQ(parse_pin_key("pin/g/" + std::string(64, 'a') + "-000000000000beef"), std::nullopt);
}

TEST(Keys, RejectsForeignCursorKeys) {
  for (const std::string_view key :
       {"pin/live", "pin//live", "pin/g/live/", "pin/g/live ", "pin/g/Live", "pin/g/lives",
        "pin/g/liv", "pin/g/", "pin/G/live", "pin/g/h/live", "pin/g.h/live", "g/live",
        "pins/g/live"}) {
    EXPECT_EQ(parse_live_cursor_key(key), std::nullopt) << key;
  }
}

TEST(Keys, NumbersBeyondThePaddingStayValid) {
  const DataName name{DataKind::kState, "p", Term(kMax), Seq(1'000'000'000'000), Nonce(kMax)};
  EXPECT_EQ(data_key(name), "d/ff/p.18446744073709551615.1000000000000.ffffffffffffffff.state");
  EXPECT_EQ(parse_data_key(data_key(name)), name);
  EXPECT_EQ(parse_manifest_key(manifest_key(Slot(kMax))), Slot(kMax));
  const SegmentName segment{Slot(kMax), 4'294'967'295, Nonce(0)};
  EXPECT_EQ(parse_segment_key(segment_key(segment)), segment);
}

TEST(Keys, RejectsForeignManifestKeys) {
  for (const std::string_view key :
       {"", "m", "m/", "m/12", "m/0000000000000000012", "m/000000000000000000012",
        "m/0000000000000000001a", "m/ 0000000000000000012", "m/+0000000000000000012",
        "m/-0000000000000000012", "m/00000000000000000012/", "m/00000000000000000012 ",
        "M/00000000000000000012", "s/00000000000000000012", "/m/00000000000000000012",
        "m/18446744073709551616", "m/99999999999999999999", "m//00000000000000000012"}) {
    EXPECT_EQ(parse_manifest_key(key), std::nullopt) << key;
  }
}

TEST(Keys, RejectsForeignSegmentKeys) {
  for (const std::string_view key :
       {"s/", "s/00000000000000000012", "s/00000000000000000012-2", "s/00000000000000000012-2-",
        "s/00000000000000000012-2-000000000000bee", "s/00000000000000000012-2-0000000000000beef",
        "s/00000000000000000012-2-000000000000BEEF", "s/00000000000000000012-02-000000000000beef",
        "s/00000000000000000012--000000000000beef", "s/0000000000000000012-2-000000000000beef",
        "s/00000000000000000012-4294967296-000000000000beef",
        "s/00000000000000000012-2-000000000000beef.tmp",
        "s/00000000000000000012.2-000000000000beef", "m/00000000000000000012-2-000000000000beef"}) {
    EXPECT_EQ(parse_segment_key(key), std::nullopt) << key;
  }
}

TEST(Keys, RejectsForeignDataKeys) {
  for (const std::string_view key :
       {"d/",
        "d/0a/",
        "d/0a/loader-0",
        "d/0b/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tgb",   // hh of another nonce
        "d/0A/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tgb",   // upper case
        "d/0a/loader-0.000000000007.000000000041.0A1B2C3D4E5F6071.tgb",   // upper case
        "d/0a/Loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tgb",   // not a name
        "d/0a/-loader.000000000007.000000000041.0a1b2c3d4e5f6071.tgb",    // not a name
        "d/0a/.000000000007.000000000041.0a1b2c3d4e5f6071.tgb",           // no name
        "d/0a/a/b.000000000007.000000000041.0a1b2c3d4e5f6071.tgb",        // a folder too many
        "d/0a/loader-0.00000000007.000000000041.0a1b2c3d4e5f6071.tgb",    // padded too little
        "d/0a/loader-0.0000000000007.000000000041.0a1b2c3d4e5f6071.tgb",  // padded too much
        "d/0a/loader-0.000000000007.0000000000041.0a1b2c3d4e5f6071.tgb",  // padded too much
        "d/0a/loader-0.99999999999999999999.000000000041.0a1b2c3d4e5f6071.tgb",  // overflows
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f607.tgb",           // short nonce
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f60711.tgb",         // long nonce
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071",              // no suffix
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tg",           // half a suffix
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tgbx",    // more than a suffix
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.state.",  // more than a suffix
        "d/0a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.state.tgb",
        "d/a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tgb",
        "d/00a/loader-0.000000000007.000000000041.0a1b2c3d4e5f6071.tgb"}) {
    EXPECT_EQ(parse_data_key(key), std::nullopt) << key;
  }
}

TEST(Keys, NamesAreLowerCaseAndShort) {
  for (const std::string& name :
       {std::string("a"), std::string("0"), std::string("a-_9"), std::string(63, 'z')}) {
    EXPECT_TRUE(validate_name("producer", name).is_ok()) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string("_"), std::string("A"), std::string("a.b"),
        std::string("a/b"), std::string("a b"), std::string("\xc3\xa4"), std::string("a\0b", 3),
        std::string(64, 'z')}) {
    const Status status = validate_name("producer", name);
    EXPECT_TRUE(status.is(ErrorKind::kInvalid)) << name;
    EXPECT_NE(status.message().find("producer '" + name + "'"), std::string::npos)
        << status.message();
  }
}

RC_GTEST_PROP(Keys, EveryKeyIsReadBack,
              (std::uint64_t slot, std::uint32_t level, std::uint64_t nonce)) {
  RC_ASSERT(parse_manifest_key(manifest_key(Slot(slot))) == Slot(slot));
  const SegmentName segment{Slot(slot), level, Nonce(nonce)};
  RC_ASSERT(parse_segment_key(segment_key(segment)) == segment);
  const DataName name = *arbitrary_data_name();
  RC_ASSERT(parse_data_key(data_key(name)) == name);
  const PinName pin{*arbitrary_name(), *arbitrary_name(), Nonce(nonce)};
  RC_ASSERT(parse_pin_key(pin_key(pin)) == pin);
  RC_ASSERT(parse_live_cursor_key(live_cursor_key(pin.group)) == pin.group);
}

/// Whatever is accepted is what would have been written: no two keys name one object.
RC_GTEST_PROP(Keys, AnEditedKeyIsRefusedOrNamesAnother, ()) {
  std::string key =
      *rc::gen::arbitrary<bool>()
          ? data_key(*arbitrary_data_name())
          : pin_key({*arbitrary_name(), *arbitrary_name(), (*arbitrary_data_name()).nonce});
  const auto place = *rc::gen::inRange<std::size_t>(0, key.size());
  const char letter = *rc::gen::elementOf(std::string("09afAFgz._-/ "));
  switch (*rc::gen::inRange(0, 3)) {
    case 0: key[place] = letter; break;
    case 1: key.insert(place, 1, letter); break;
    default: key.erase(place, 1);
  }
  if (const auto parsed = parse_data_key(key)) RC_ASSERT(data_key(*parsed) == key);
  if (const auto parsed = parse_pin_key(key)) RC_ASSERT(pin_key(*parsed) == key);
}

}  // namespace
}  // namespace batchloom::store

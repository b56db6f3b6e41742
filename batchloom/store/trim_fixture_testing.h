// SPDX-License-Identifier: Apache-2.0
// What the tests of pins, trimming and reclaiming share.
#pragma once

#include <functional>
#include <string>

#include "batchloom/store/live_cursor.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/store_fixture_testing.h"
#include "batchloom/store/trimmer.h"

namespace batchloom::store {

/// A StoreTest with steps, and with ways to act in the midst of a trim or a pin. `stream_` is what
/// a test looks at, `other_` is where others act.
class TrimTest : public StoreTest {
 protected:
  using StoreTest::StoreTest;

  /// Commits so many batches of "p", of `steps` steps each, one commit for each.
  void grow(std::uint64_t count, std::uint32_t steps = 1);
  /// Another pins a step, for group "g".
  Pin pin(Step step, const std::string& id = "a");
  TrimReport run_trim(const Stream& stream);
  TrimReport run_trim() { return run_trim(*stream_); }
  /// What stands there is what the protocol could have made, and nothing needed is missing.
  void expect_sound();
  Step first_step() { return newest(*other_)->head.first_step; }

  /// (b) alone: what a trimmer leaves that dies then. Returns its intent.
  TrimIntent announce(Step step);
  /// (d) alone, whoever's intent is there.
  void complete(Step step);
  void put(const std::string& key, const Bytes& bytes);

  /// Runs `act` before request number `n` (from 1) of an operation under a prefix, once.
  void before(std::size_t n, objstore::Operation operation, const std::string& prefix,
              std::function<void()> act);
  /// The moments of a trim on `stream_`.
  void before_intent(std::function<void()> act);
  void before_second_listing(std::function<void()> act);
  void before_completion(std::function<void()> act);
};

}  // namespace batchloom::store

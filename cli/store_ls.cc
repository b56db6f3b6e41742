// SPDX-License-Identifier: Apache-2.0
// `batchloom store ls`
#include <span>

#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/segment_reader.h"
#include "cli/commands.h"

namespace batchloom::cli {
namespace {

/// The memberships that hold at a step and later, each to be printed before the entry in which it
/// begins.
class MembershipRows {
 public:
  MembershipRows(const store::Head& head, store::Step from, bool json)
      : rows_(head.memberships), json_(json) {
    if (const store::MembershipRow* holds = head.membership_at(from)) {
      rows_ = rows_.subspan(static_cast<std::size_t>(holds - rows_.data()));
    }
  }

  /// Those from steps below `end` that were not printed yet.
  void print_below(store::Step end) {
    while (!rows_.empty() && rows_.front().from_step < end) print_next();
  }
  void print_rest() {
    while (!rows_.empty()) print_next();
  }

 private:
  void print_next() {
    print_row(describe_membership(rows_.front()), json_);
    rows_ = rows_.subspan(1);
  }

  std::span<const store::MembershipRow> rows_;
  const bool json_;
};

}  // namespace

Status run(const StoreLs& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(short_call(runtime)));
  store::ManifestReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr newest, reader.latest(short_call(runtime)));
  const store::Head& head = newest->head;
  store::SegmentReader segments(*stream);
  store::Step step = args.from.value_or(head.first_step);
  MembershipRows memberships(head, step, args.stream.json);
  // Asking for the next step is no error: nothing has been committed there yet.
  for (std::uint64_t shown = 0; step != head.next_step && shown < args.limit; ++shown) {
    BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head, step, short_call(runtime)));
    memberships.print_below(entry.end_step());
    print_row(describe_entry(entry), args.stream.json);
    step = entry.end_step();
  }
  if (step == head.next_step) memberships.print_rest();
  return Status::ok();
}

}  // namespace batchloom::cli

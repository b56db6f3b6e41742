// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "batchloom/client/state_text.h"
#include "python/bindings/batch.h"
#include "python/bindings/blocking.h"
#include "python/bindings/consumer_handle.h"
#include "python/bindings/errors.h"
#include "python/bindings/module.h"

namespace batchloom::python {
namespace {

namespace nb = nanobind;

/// A number that may come from anywhere: TypeErrors are for types.
std::uint64_t from_0(std::string_view name, std::int64_t value,
                     std::uint64_t most = static_cast<std::uint64_t>(INT64_MAX)) {
  if (value >= 0 && static_cast<std::uint64_t>(value) <= most) {
    return static_cast<std::uint64_t>(value);
  }
  throw StatusError(Status::invalid(
      fmt::format("{}={}: a whole number from 0 to {} is needed", name, value, most)));
}

std::string_view text_of(const nb::bytes& bytes) {
  return {bytes.c_str(), bytes.size()};
}

/// What Python's Consumer holds: a handle, and what arrays are made for.
struct Consumer {
  std::unique_ptr<ConsumerHandle> handle;
  Framework framework = Framework::kNumpy;
};

/// As both ways to begin take them.
client::RankReaderOptions options_of(const std::string& url, std::int64_t rank,
                                     const model::Topology& topology, const std::string& group,
                                     const std::optional<nb::bytes>& resume,
                                     const std::optional<std::int64_t>& start,
                                     std::int64_t min_slot) {
  client::RankReaderOptions options;
  options.location = {.url = url, .folder = or_raise(store::parse_store_url(url))};
  options.group = group;
  options.rank = model::Rank(static_cast<std::uint32_t>(from_0("rank", rank, UINT32_MAX)));
  options.topology = topology;
  if (resume) options.resume = or_raise(client::parse_state(text_of(*resume)));
  if (start) options.start = store::Step(from_0("start", *start));
  options.min_slot = store::Slot(from_0("min_slot", min_slot));
  return options;
}

void open(Consumer* self, const std::string& url, std::int64_t rank,
          const model::Topology& topology, const std::string& group,
          const std::optional<nb::bytes>& resume, const std::optional<std::int64_t>& start,
          std::int64_t min_slot, std::int64_t prefetch_bytes, bool for_torch, double open_timeout,
          bool split_samples, bool report_cursor, double waited) {
  client::RankReaderOptions options =
      options_of(url, rank, topology, group, resume, start, min_slot);
  options.prefetch_bytes = from_0("prefetch_bytes", prefetch_bytes);
  options.split_samples = split_samples;
  options.report_cursor = report_cursor;
  options.waited_before = to_duration("waited", waited);
  auto handle = std::make_unique<ConsumerHandle>(std::move(options),
                                                 to_duration("open_timeout", open_timeout));
  new (self) Consumer{.handle = std::move(handle),
                      .framework = for_torch ? Framework::kTorch : Framework::kNumpy};
}

nb::bytes bytes_of(const client::ConsumerState& state) {
  const std::string text = client::to_text(state);
  return nb::bytes(text.data(), text.size());
}

std::pair<std::uint64_t, nb::bytes> find_start_of(const std::string& url, std::int64_t rank,
                                                  const model::Topology& topology,
                                                  const std::string& group,
                                                  const std::optional<nb::bytes>& resume,
                                                  const std::optional<std::int64_t>& start,
                                                  std::int64_t min_slot, double open_timeout) {
  const client::RankStart begin =
      find_start(options_of(url, rank, topology, group, resume, start, min_slot),
                 to_duration("open_timeout", open_timeout));
  return {begin.slot.value, bytes_of(begin.state)};
}

std::optional<Batch> next(Consumer& self, const std::optional<double>& timeout) {
  std::optional<Duration> duration;
  if (timeout) duration = to_duration("timeout", *timeout);
  auto data = self.handle->next(duration);
  if (data == nullptr) return std::nullopt;
  return Batch{.data = std::move(data), .framework = self.framework};
}

void pin(Consumer& self, const nb::bytes& state, const std::string& name,
         const std::optional<std::int64_t>& keep) {
  std::optional<std::uint64_t> kept;
  if (keep) kept = from_0("keep", *keep);
  if (kept == 0)
    throw StatusError(Status::invalid("keep=0: the pin just made is one of those kept"));
  self.handle->pin(text_of(state), name, kept);
}

}  // namespace

void bind_consumer(nb::module_& module) {
  nb::class_<Consumer>(module, "Consumer", nb::is_weak_referenceable(),
                       "What batchloom.Consumer stands on.")
      .def("__init__", open, nb::arg("url"), nb::kw_only(), nb::arg("rank"), nb::arg("topology"),
           nb::arg("group"), nb::arg("resume").none(), nb::arg("start").none(), nb::arg("min_slot"),
           nb::arg("prefetch_bytes"), nb::arg("for_torch"), nb::arg("open_timeout"),
           nb::arg("split_samples"), nb::arg("report_cursor"), nb::arg("waited"))
      .def("next", next, nb::arg("timeout").none(), "None at the end of the stream.")
      .def("pin", pin, nb::arg("state"), nb::arg("name"), nb::arg("keep").none())
      .def(
          "unpin", [](Consumer& self, const std::string& name) { return self.handle->unpin(name); },
          nb::arg("name"))
      .def(
          "seek", [](Consumer& self, const nb::bytes& state) { self.handle->seek(text_of(state)); },
          nb::arg("state"))
      .def(
          "skip_to", [](Consumer& self, std::uint64_t step) { self.handle->skip_to(step); },
          nb::arg("step"), "Goes on at `step`, as if those before it had been handed out.")
      .def("close", [](Consumer& self) { self.handle->close(); })
      .def(
          "release", [](Consumer& self) { self.handle->release(); },
          "As the process's end: the group's cursor stays open.")
      .def_prop_ro("cursor",
                   [](const Consumer& self) { return self.handle->state().next_step.value; })
      .def_prop_ro("slot", [](const Consumer& self) { return self.handle->slot(); })
      .def_prop_ro(
          "skipped", [](const Consumer& self) { return self.handle->skipped(); },
          "The steps that it passes over, ascending.")
      .def("counters", [](const Consumer& self) { return self.handle->counters(); });
  module.def("find_start", find_start_of, nb::arg("url"), nb::kw_only(), nb::arg("rank"),
             nb::arg("topology"), nb::arg("group"), nb::arg("resume").none(),
             nb::arg("start").none(), nb::arg("min_slot"), nb::arg("open_timeout"),
             "The slot and the state that several processes of one rank begin with.");
  module.def("end_all_calls", end_all_calls,
             "The interpreter ends: other threads leave what they wait in, with SystemExit, and "
             "nothing waits from then on.");
}

}  // namespace batchloom::python

// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/graph_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "batchloom/planning/graph_layout.h"

namespace batchloom::planning {
namespace {

class FaultFinder {
 public:
  explicit FaultFinder(const GraphSpec& graph) : graph_(graph) {}

  GraphFaults find() {
    if (graph_.mix) look_at_mix(*graph_.mix);
    std::set<Modality> seen;
    for (at_ = 0; at_ < graph_.selections.size(); ++at_) {
      const SelectionSpec& selection = graph_.selections[at_];
      if (!seen.insert(selection.modality).second) {
        fault(GraphCall::kSelect, "selected already; say all of a modality in one selection");
      }
      look_at(selection);
    }
    if (graph_.find(Modality::kText) == nullptr) {
      faults_.push_back(
          {.call = GraphCall::kGraph, .reason = "nothing lays out the tokens; select text"});
    }
    return std::move(faults_);
  }

 private:
  void fault(GraphCall call, std::string reason) {
    faults_.push_back({.call = call, .selection = at_, .reason = std::move(reason)});
  }
  void source_fault(std::size_t source, std::string reason) {
    faults_.push_back({.call = GraphCall::kMix, .source = source, .reason = std::move(reason)});
  }

  void look_at_mix(const MixSpec& mix) {
    MixtureConfig limits{.seed = mix.seed,
                         .unit = mix.unit,
                         .units_per_step = mix.units_per_step,
                         .max_sample_tokens = mix.max_sample_tokens};
    limits.sources.resize(mix.sources.size());
    if (const Status status = check_config(limits); !status.is_ok()) {
      faults_.push_back({.call = GraphCall::kMix, .reason = std::string(status.message())});
    }
    std::set<std::string> names;
    for (std::size_t i = 0; i < mix.sources.size(); ++i) {
      const MixSource& source = mix.sources[i];
      if (source.name.empty()) source_fault(i, "a source without a name");
      if (!names.insert(source.name).second) {
        source_fault(i, fmt::format("source '{}' is named twice", source.name));
      }
      if (source.exhausted != Exhausted::kRepeat && source.epochs != 0) {
        source_fault(i, fmt::format("source '{}' is to make {} passes, and not to repeat; let it "
                                    "repeat, or give no number of passes",
                                    source.name, source.epochs));
      }
    }
  }

  void look_at(const SelectionSpec& selection) {
    if (!selection.distribute) fault(GraphCall::kDistribute, "missing; dp, hdp or world");
    if (!selection.cost) fault(GraphCall::kCost, "missing; a cost model");
    if (!selection.balance) {
      fault(GraphCall::kBalance, fmt::format("missing; {}", fmt::join(balance_names(), ", ")));
    }
    if (selection.balance == Balance::kTwoModule) look_at_two_module(selection);
    selection.modality == Modality::kText ? look_at_text(selection) : look_at_image(selection);
  }

  void look_at_text(const SelectionSpec& text) {
    if (text.distribute == Spread::kWorld) {
      fault(GraphCall::kDistribute,
            "ranks along tp and pp need the same tokens; distribute text along dp, or along hdp");
    }
    if (text.cost && text.cost->linear.points().empty() && text.cost->attention.points().empty()) {
      fault(GraphCall::kCost, "has no times for tokens; it is of pictures alone");
    }
    if (text.options.capacity_tokens == 0) {
      fault(GraphCall::kBalance, "a capacity of 0 tokens; at least 1");
    }
    if (text.options.min_share_tokens == 0) {
      fault(GraphCall::kBalance, "a least share of 0 tokens; at least 1");
    }
    std::set<model::Axis> seen;
    for (const model::Axis axis : text.broadcast_at) {
      if (axis != model::Axis::kTp && axis != model::Axis::kPp) {
        fault(GraphCall::kBroadcastAt,
              fmt::format("ranks along {} need other tokens; broadcast along tp or pp",
                          to_string(axis)));
      }
      if (!seen.insert(axis).second) {
        fault(GraphCall::kBroadcastAt, fmt::format("{} is named twice", to_string(axis)));
      }
    }
  }

  void look_at_image(const SelectionSpec& image) {
    if (image.balance == Balance::kTwoLevel || image.balance == Balance::kHdp) {
      fault(GraphCall::kBalance,
            "pictures are neither packed nor cut; none, lpt, kk or two_module");
    }
    if (image.cost && image.cost->encoder.points().empty()) {
      fault(GraphCall::kCost, "has no times for pictures; it is of tokens alone");
    }
    if (image.options != TokenOptions{}) {
      fault(GraphCall::kBalance,
            "capacity, least share and offload are of tokens; pictures have none of them");
    }
    if (!image.broadcast_at.empty()) {
      fault(GraphCall::kBroadcastAt,
            "pictures go to those who encode them, and to nobody else; broadcast text");
    }
  }

  void look_at_two_module(const SelectionSpec& selection) {
    const bool text = selection.modality == Modality::kText;
    const SelectionSpec* other = graph_.find(text ? Modality::kImage : Modality::kText);
    if (other == nullptr || other->balance != Balance::kTwoModule) {
      fault(GraphCall::kBalance,
            fmt::format("is of encoder and backbone together; balance {} by it, too",
                        text ? "image" : "text"));
    }
    if (text && selection.distribute == Spread::kHdp) {
      fault(GraphCall::kDistribute, "two_module lays out text in groups; distribute it along dp");
    }
    if (!text && selection.distribute == Spread::kHdp) {
      fault(GraphCall::kDistribute,
            "two_module knows pictures along world, or along dp with their samples");
    }
  }

  const GraphSpec& graph_;
  GraphFaults faults_;
  std::size_t at_ = 0;
};

/// A step of one part that is as long as parts may be.
std::string why_longest_does_not_fit(const model::Topology& topology, const SelectionSpec& text,
                                     std::uint32_t tokens) {
  model::SampleMeta longest;
  longest.tokens = tokens;
  const auto plan = lay_out_text(text, topology, {longest});
  return plan.is_ok() ? "" : std::string(plan.status().message());
}

std::string arguments_of(const SelectionSpec& selection, GraphCall call) {
  switch (call) {
    case GraphCall::kDistribute:
      return selection.distribute ? std::string(to_string(*selection.distribute)) : "";
    case GraphCall::kCost: return selection.cost ? selection.cost->name : "";
    case GraphCall::kBalance:
      return selection.balance ? std::string(to_string(*selection.balance)) : "";
    case GraphCall::kBroadcastAt: {
      std::vector<std::string_view> axes;
      for (const model::Axis axis : selection.broadcast_at) axes.push_back(to_string(axis));
      return fmt::format("{}", fmt::join(axes, ", "));
    }
    default: return "";
  }
}

std::string_view name_of(GraphCall call) {
  switch (call) {
    case GraphCall::kGraph: return "graph";
    case GraphCall::kMix: return "mix";
    case GraphCall::kSelect: return "select";
    case GraphCall::kDistribute: return "distribute";
    case GraphCall::kCost: return "cost";
    case GraphCall::kBalance: return "balance";
    case GraphCall::kBroadcastAt: return "broadcast_at";
  }
  return "unknown";
}

}  // namespace

GraphFaults find_faults(const GraphSpec& graph) {
  return FaultFinder(graph).find();
}

GraphFaults find_layout_faults(const model::Topology& topology, const GraphSpec& graph) {
  const SelectionSpec& text = *graph.find(Modality::kText);
  const std::uint32_t cp = topology.extent(model::Axis::kCp);
  const Spread along = spread_of(*text.balance);
  if (cp == 1 || *text.distribute == along) return {};
  return {{.call = GraphCall::kDistribute,
           .selection = static_cast<std::size_t>(&text - graph.selections.data()),
           .reason = fmt::format(
               "{} lays out over {}, and cp={}; distribute along {}", to_string(*text.balance),
               along == Spread::kHdp ? "dp and cp" : "groups along dp", cp, to_string(along))}};
}

GraphFaults find_faults_on(const model::Topology& topology, const GraphSpec& graph) {
  GraphFaults faults = find_layout_faults(topology, graph);
  if (!faults.empty() || !graph.mix) return faults;
  const SelectionSpec& text = *graph.find(Modality::kText);
  const std::string why = why_longest_does_not_fit(topology, text, graph.mix->max_sample_tokens);
  if (!why.empty()) {
    faults.push_back(
        {.call = GraphCall::kMix,
         .reason = fmt::format("parts may have {} tokens (max_sample_tokens), and {} on {} cannot "
                               "lay out one: {}",
                               graph.mix->max_sample_tokens, to_string(*text.balance),
                               to_string(topology), why)});
  }
  return faults;
}

std::string call_of(const GraphSpec& graph, const GraphFault& fault) {
  if (!fault.selection) return std::string(name_of(fault.call));
  const SelectionSpec& selection = graph.selections[*fault.selection];
  const std::string select = fmt::format("select({})", to_string(selection.modality));
  if (fault.call == GraphCall::kSelect) return select;
  return fmt::format("{}.{}({})", select, name_of(fault.call), arguments_of(selection, fault.call));
}

Status to_status(const GraphSpec& graph, const GraphFaults& faults) {
  if (faults.empty()) return Status::ok();
  std::string text = faults.size() == 1 ? std::string("sample graph: ")
                                        : fmt::format("sample graph: {} faults", faults.size());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (faults.size() > 1) text += fmt::format("{} ({}) ", i == 0 ? ":" : ";", i + 1);
    text += fmt::format("{}: {}", call_of(graph, faults[i]), faults[i].reason);
  }
  return Status::invalid(std::move(text));
}

}  // namespace batchloom::planning

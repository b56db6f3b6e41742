// SPDX-License-Identifier: Apache-2.0
#include "batchloom/planning/cost_model_toml.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "batchloom/planning/toml_table.h"
#include "batchloom/planning/toml_text.h"

namespace batchloom::planning {
namespace {

constexpr std::uint64_t kFormat = 0;
constexpr std::string_view kGrowths[] = {"linear", "quadratic"};  ///< By CostCurve::Growth.

struct CurvePair {
  CostCurve both;
  CostCurve forward;
};

std::string points_to_toml(std::string_view key, const CostCurve& curve) {
  std::string text = fmt::format("{} = [\n", key);
  for (const CostPoint& point : curve.points()) {
    text += fmt::format("  [{}, {}],\n", point.tokens, point.time_ps);
  }
  return text + "]\n";
}

/// Nothing where a curve takes no time.
std::string curves_to_toml(std::string_view part, const CostCurve& both, const CostCurve* forward) {
  if (both.points().empty()) return {};
  std::string text = fmt::format("\n[{}]\ngrowth = \"{}\"\n", part,
                                 kGrowths[static_cast<std::size_t>(both.growth())]);
  text += points_to_toml("both_ps", both);
  if (forward != nullptr) text += points_to_toml("forward_ps", *forward);
  return text;
}

Result<CostCurve> parse_curve(const TomlTable& table, std::string_view key,
                              CostCurve::Growth growth) {
  BL_ASSIGN_OR_RETURN(const auto rows, table.rows(key, 2));
  std::vector<CostPoint> points;
  for (const auto& row : rows) {
    if (row[0] > UINT32_MAX) return table.wrong(key, "has a point of more than 4294967295 tokens");
    points.push_back({static_cast<std::uint32_t>(row[0]), row[1]});
  }
  Result<CostCurve> curve = CostCurve::create(std::move(points), growth);
  if (!curve.is_ok()) {
    return table.wrong(key, fmt::format("is no curve: {}", curve.status().message()));
  }
  return curve;
}

Result<CostCurve::Growth> parse_growth(const TomlTable& table) {
  BL_ASSIGN_OR_RETURN(const std::string growth, table.text("growth"));
  if (growth == kGrowths[0]) return CostCurve::Growth::kLinear;
  if (growth == kGrowths[1]) return CostCurve::Growth::kQuadratic;
  return table.wrong("growth", "must be \"linear\" or \"quadratic\"");
}

Result<CurvePair> parse_part(const TomlTable& model, std::string_view part) {
  BL_ASSIGN_OR_RETURN(const std::optional<TomlTable> table, model.table(part));
  if (!table) return model.wrong(part, "is missing");
  CurvePair curves;
  BL_ASSIGN_OR_RETURN(const CostCurve::Growth growth, parse_growth(*table));
  BL_ASSIGN_OR_RETURN(curves.both, parse_curve(*table, "both_ps", growth));
  BL_ASSIGN_OR_RETURN(curves.forward, parse_curve(*table, "forward_ps", growth));
  BL_RETURN_IF_ERROR(table->finish());
  return curves;
}

Result<CostCurve> parse_encoder(const TomlTable& model) {
  BL_ASSIGN_OR_RETURN(const std::optional<TomlTable> table, model.table("encoder"));
  if (!table) return CostCurve();
  BL_ASSIGN_OR_RETURN(const CostCurve::Growth growth, parse_growth(*table));
  BL_ASSIGN_OR_RETURN(CostCurve curve, parse_curve(*table, "both_ps", growth));
  BL_RETURN_IF_ERROR(table->finish());
  return curve;
}

Status parse_figures(const TomlTable& table, CostModel& model) {
  constexpr TomlRange k32Bits{.most = UINT32_MAX};
  constexpr TomlRange kBytes{.most = kMaxBytesPerToken};
  BL_ASSIGN_OR_RETURN(model.name, table.text("name"));
  BL_ASSIGN_OR_RETURN(const std::uint64_t version, table.number("version", k32Bits));
  BL_ASSIGN_OR_RETURN(const std::uint64_t layers,
                      table.number("layers", {.least = 1, .most = kMaxLayers}));
  model.version = static_cast<std::uint32_t>(version);
  model.layers = static_cast<std::uint32_t>(layers);
  BL_ASSIGN_OR_RETURN(model.launch_ns, table.number("launch_ns", {.most = kMaxLaunchNs}));
  BL_ASSIGN_OR_RETURN(model.kv_bytes_per_token, table.number("kv_bytes_per_token", kBytes));
  BL_ASSIGN_OR_RETURN(model.activation_bytes_per_token,
                      table.number("activation_bytes_per_token", kBytes));
  BL_ASSIGN_OR_RETURN(model.copy_bytes_per_s, table.number("copy_bytes_per_s", {}));
  return check_figures(model);
}

}  // namespace

std::string to_toml(const CostModel& model) {
  std::string text = fmt::format("format = {}\nname = {}\nversion = {}\n", kFormat,
                                 toml_quoted(model.name), model.version);
  text += fmt::format("layers = {}\nlaunch_ns = {}\n", model.layers, model.launch_ns);
  text += fmt::format(
      "kv_bytes_per_token = {}\nactivation_bytes_per_token = {}\ncopy_bytes_per_s = {}\n",
      model.kv_bytes_per_token, model.activation_bytes_per_token, model.copy_bytes_per_s);
  text += curves_to_toml("attention", model.attention, &model.attention_forward);
  text += curves_to_toml("linear", model.linear, &model.linear_forward);
  return text + curves_to_toml("encoder", model.encoder, nullptr);
}

Result<CostModel> parse_cost_model(std::string_view text, std::string_view name) {
  BL_ASSIGN_OR_RETURN(const TomlTable table, TomlTable::parse(text, name));
  BL_RETURN_IF_ERROR(table.number("format", {.least = kFormat, .most = kFormat}).status());
  CostModel model;
  BL_RETURN_IF_ERROR(parse_figures(table, model));
  BL_ASSIGN_OR_RETURN(CurvePair attention, parse_part(table, "attention"));
  BL_ASSIGN_OR_RETURN(CurvePair linear, parse_part(table, "linear"));
  BL_ASSIGN_OR_RETURN(model.encoder, parse_encoder(table));
  BL_RETURN_IF_ERROR(table.finish());
  model.attention = std::move(attention.both);
  model.attention_forward = std::move(attention.forward);
  model.linear = std::move(linear.both);
  model.linear_forward = std::move(linear.forward);
  return model;
}

}  // namespace batchloom::planning

// SPDX-License-Identifier: Apache-2.0
#include "cli/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cli/table.h"

namespace batchloom::cli {
namespace {

constexpr double kMiB = 1024 * 1024;

/// Names as terminals may have them: no byte of them commands anything. C1 controls are two bytes
/// in UTF-8.
std::string without_controls(std::string_view text) {
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    clean += byte < 0x20 || byte == 0x7F || is_c1 ? '?' : text[i];
    if (is_c1) ++i;
  }
  return clean;
}

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80;
}

/// The line's first characters.
std::string_view clip(std::string_view line, std::size_t columns) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (begins_character(line[i]) && ++characters > columns) return line.substr(0, i);
  }
  return line;
}

std::string percent(double share) {
  return fmt::format("{:.1f}%", share * 100);
}

/// Of what one thread spends with something: scrapes are no more exact than their clocks.
std::string percent_of_time(double per_second) {
  return percent(std::min(per_second, 1.0));
}

std::string mib(double bytes) {
  return fmt::format("{:.1f} MiB", bytes / kMiB);
}

class View {
 public:
  explicit View(const TopLook& look) : now_(look.now), place_(look.place) {
    const bool has_before = look.before && look.seconds > 0;
    // Another run took the port: it has done less.
    if (has_before &&
        now_.get("batchloom_running_seconds") >= look.before->get("batchloom_running_seconds")) {
      before_ = &*look.before;
    }
    seconds_ = before_ != nullptr ? look.seconds : now_.get("batchloom_running_seconds");
  }

  std::string head() const {
    std::string text =
        fmt::format("{}  batchloom {}", place_,
                    without_controls(first_label("batchloom_build_info", "version")));
    if (!now_.find("batchloom_running_seconds")) {
      return text + "\nits sources are being indexed: it has not begun\n";
    }
    text += before_ != nullptr ? fmt::format(", rates of the last {:.1f} s\n", seconds_)
                               : fmt::format(", rates of its {:.0f} s so far\n", seconds_);
    for (const auto& [name, what] : {std::pair<std::string_view, std::string>{"step", steps()},
                                     {"throughput", throughput()},
                                     {"lead", lead()},
                                     {"imbalance", imbalance()},
                                     {"memory", memory()},
                                     {"waited", waits()},
                                     {"waits for", waits_for()},
                                     {"store", store()}}) {
      text += fmt::format("{:<10}  {}\n", name, what);
    }
    return text;
  }

  std::string sources() const {
    Table table({"source", "wanted", "drawn", "tokens/s", "samples/s", "MiB/s", "threads", "waited",
                 "passes", "bad"});
    for (const std::string& name : now_.labels("batchloom_source_tokens_total", "source")) {
      const auto value = [&](std::string_view what) {
        return now_.get(fmt::format("batchloom_source_{}", what), "source", name);
      };
      const auto per_second = [&](std::string_view what) {
        return rate(fmt::format("batchloom_source_{}", what), "source", name);
      };
      table.add(
          {without_controls(name), percent(value("wanted_ratio")), percent(value("drawn_ratio")),
           short_number(per_second("tokens_total")), short_number(per_second("samples_total")),
           fmt::format("{:.1f}", per_second("read_bytes_total") / kMiB),
           fmt::format("{:.2f}", per_second("load_seconds_total")),
           percent_of_time(per_second("wait_seconds_total")),
           fmt::format("{:.0f}", value("passes")), fmt::format("{:.0f}", value("bad_records"))});
    }
    return table.to_text();
  }

 private:
  std::string first_label(std::string_view name, const std::string& label) const {
    const std::vector<std::string> labels = now_.labels(name, label);
    return labels.empty() ? "of unknown version" : labels.front();
  }

  double per_second(double now, double before) const {
    return seconds_ > 0 ? std::max(now - before, 0.0) / seconds_ : 0;
  }
  double rate(std::string_view name) const {
    return per_second(now_.sum(name), before_ != nullptr ? before_->sum(name) : 0);
  }
  double rate(std::string_view name, std::string_view label, std::string_view of) const {
    return per_second(now_.get(name, label, of),
                      before_ != nullptr ? before_->get(name, label, of) : 0);
  }

  std::string steps() const {
    std::string text = fmt::format("{:.0f}", now_.get("batchloom_next_step"));
    if (const auto wanted = now_.find("batchloom_wanted_steps")) {
      text += fmt::format(" of {:.0f}", *wanted);
    }
    return text +
           fmt::format(", {} a second", short_number(rate("batchloom_committed_steps_total")));
  }
  std::string throughput() const {
    return fmt::format("{} tokens/s, {} samples/s, {}/s",
                       short_number(rate("batchloom_tokens_total")),
                       short_number(rate("batchloom_samples_total")),
                       mib(rate("batchloom_committed_bytes_total")));
  }
  std::string lead() const {
    const auto most = now_.find("batchloom_lead_max_steps");
    if (!most) return "unlimited";
    return fmt::format("{:.0f} of {:.0f} steps", now_.get("batchloom_lead_steps"), *most);
  }
  std::string imbalance() const {
    return fmt::format("{:.2f} as drawn, {:.2f} as planned",
                       now_.get("batchloom_imbalance_drawn_ratio"),
                       now_.get("batchloom_imbalance_planned_ratio"));
  }
  std::string memory() const {
    return fmt::format("{} of {}", mib(now_.get("batchloom_memory_bytes")),
                       mib(now_.get("batchloom_memory_max_bytes")));
  }
  std::string waits() const {
    std::string text;
    for (const std::string& reason : now_.labels("batchloom_wait_seconds_total", "reason")) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", without_controls(reason),
                          percent_of_time(rate("batchloom_wait_seconds_total", "reason", reason)));
    }
    return text;
  }
  std::string waits_for() const {
    for (const std::string& reason : now_.labels("batchloom_waiting", "reason")) {
      if (now_.get("batchloom_waiting", "reason", reason) == 0) continue;
      if (reason != "sources") return without_controls(reason);
      for (const std::string& source : now_.labels("batchloom_source_waiting", "source")) {
        const bool waits = now_.get("batchloom_source_waiting", "source", source) != 0;
        if (waits) return fmt::format("source {}", without_controls(source));
      }
    }
    return "nothing";
  }
  std::string store() const {
    return fmt::format("{} requests/s, {:.0f} errors, {:.0f} tried anew",
                       short_number(rate("batchloom_store_requests_total")),
                       now_.sum("batchloom_store_errors_total"),
                       now_.get("batchloom_store_retries_total"));
  }

  const Scrape& now_;
  const std::string place_;
  const Scrape* before_ = nullptr;
  double seconds_ = 0;
};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string fit(std::string_view text, const TopRoom& room) {
  std::vector<std::string_view> lines = lines_of(text);
  std::string more;
  if (room.lines && lines.size() > *room.lines && *room.lines > 0) {
    more = fmt::format("... and {} lines more", lines.size() - *room.lines + 1);
    lines.resize(*room.lines - 1);
    lines.emplace_back(more);
  }
  std::string fitted;
  for (const std::string_view line : lines) {
    fitted += room.columns ? clip(line, *room.columns) : line;
    fitted += '\n';
  }
  return fitted;
}

}  // namespace

std::string short_number(double value) {
  constexpr std::array<std::string_view, 5> kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  // What would be rounded to 1000.0 belongs to the next unit.
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.1f}{}", value, kUnits[unit]);
}

std::string top_text(const TopLook& look, const TopRoom& room) {
  const View view(look);
  std::string text = view.head();
  if (look.now.find("batchloom_source_tokens_total")) text += "\n" + view.sources();
  return fit(text, room);
}

}  // namespace batchloom::cli

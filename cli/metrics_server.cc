// SPDX-License-Identifier: Apache-2.0
// The only file that knows prometheus-cpp.
#include "cli/metrics_server.h"

#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>

#include "batchloom/base/mutex.h"

namespace batchloom::cli {
namespace {

/// Requests that are answered at once.
constexpr int kThreads = 2;
/// Whoever sends or reads nothing for so long is hung up on.
constexpr int kClientMs = 2'000;

prometheus::MetricFamily as_theirs(const MetricFamily& family) {
  const bool is_counter = family.kind == MetricKind::kCounter;
  prometheus::MetricFamily theirs;
  theirs.name = family.name;
  theirs.help = family.help;
  theirs.type = is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  for (const MetricValue& value : family.values) {
    prometheus::ClientMetric& metric = theirs.metric.emplace_back();
    if (!value.label.empty()) metric.label.push_back({value.label, value.of});
    (is_counter ? metric.counter.value : metric.gauge.value) = value.value;
  }
  return theirs;
}

}  // namespace

class MetricsServer::Collector final : public prometheus::Collectable {
 public:
  void show(MetricsServer::Look look) {
    auto shown = std::make_shared<const MetricsServer::Look>(std::move(look));
    const MutexLock lock(mutex_);
    look_.swap(shown);
  }

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::shared_ptr<const MetricsServer::Look> look;
    {
      const MutexLock lock(mutex_);
      look = look_;
    }
    std::vector<prometheus::MetricFamily> families;
    for (const MetricFamily& family : (*look)()) families.push_back(as_theirs(family));
    return families;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const MetricsServer::Look> look_ BL_GUARDED_BY(mutex_);
};

class MetricsServer::Impl {
 public:
  /// Throws where the server cannot start.
  Impl(const HostPort& place, Look look)
      : collector_(std::make_shared<Collector>()),
        exposer_(std::make_unique<prometheus::Exposer>(std::vector<std::string>{
            "listening_ports", place.to_text(), "num_threads", std::to_string(kThreads),
            "request_timeout_ms", std::to_string(kClientMs)})) {
    collector_->show(std::move(look));
    exposer_->RegisterCollectable(collector_);
  }

  int port() const { return exposer_->GetListeningPorts().at(0); }
  void show(Look look) { collector_->show(std::move(look)); }

 private:
  const std::shared_ptr<Collector> collector_;
  const std::unique_ptr<prometheus::Exposer> exposer_;  // Goes first: it joins who collects.
};

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl, std::string url)
    : impl_(std::move(impl)), url_(std::move(url)) {}
MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const HostPort& place, Look look) {
  BL_ASSIGN_OR_RETURN(HostPort numeric, resolve(place));
  // The library says only that it could not.
  BL_RETURN_IF_ERROR(check_listen(numeric));
  try {
    auto impl = std::make_unique<Impl>(numeric, std::move(look));
    numeric.port = static_cast<std::uint16_t>(impl->port());
    const std::string url = fmt::format("http://{}/metrics", numeric.to_text());
    return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl), url));
  } catch (const std::exception& error) {
    return Status::invalid(fmt::format("cannot serve at {}: {}", numeric.to_text(), error.what()));
  }
}

void MetricsServer::show(Look look) {
  if (impl_ != nullptr) impl_->show(std::move(look));
}

void MetricsServer::stop() {
  impl_ = nullptr;
}

}  // namespace batchloom::cli

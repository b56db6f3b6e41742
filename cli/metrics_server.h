// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/base/status.h"
#include "cli/host_port.h"
#include "cli/metric_family.h"

namespace batchloom::cli {

/// Metrics over HTTP, in Prometheus' text form, for whoever asks for /metrics. Values are looked up
/// when somebody asks and at no other time. A few requests are answered at once, by threads of the
/// server's own; others wait, and whoever does not read is hung up on after seconds, so that nobody
/// can hold it up. What it was asked and how long answers took is among the metrics (`exposer_`).
///
/// One thread at a time; its threads inherit the signal mask of the one that makes it.
class MetricsServer {
 public:
  /// Called by the server's threads, several at once; must not throw.
  using Look = std::function<std::vector<MetricFamily>()>;

  /// Listens at `place`, with port 0 at any that is free. `invalid`, saying why, where it cannot.
  static Result<std::unique_ptr<MetricsServer>> start(const HostPort& place, Look look);
  /// As stop().
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  /// "http://127.0.0.1:9464/metrics", with the port chosen.
  const std::string& url() const { return url_; }

  /// What is shown from now on.
  void show(Look look);
  /// Answers nobody any more; once it returns, no Look is called. Waits for answers under way.
  void stop();

 private:
  class Collector;
  class Impl;
  MetricsServer(std::unique_ptr<Impl> impl, std::string url);

  std::unique_ptr<Impl> impl_;
  const std::string url_;
};

/// Lets a server show something for as long as this lives, and stops the server then: so what a
/// Look refers to may go after this.
class ShownMetrics {
 public:
  /// `server` may be null, and outlives it.
  ShownMetrics(MetricsServer* server, MetricsServer::Look look) : server_(server) {
    if (server_ != nullptr) server_->show(std::move(look));
  }
  ~ShownMetrics() {
    if (server_ != nullptr) server_->stop();
  }
  ShownMetrics(const ShownMetrics&) = delete;
  ShownMetrics& operator=(const ShownMetrics&) = delete;

 private:
  MetricsServer* const server_;
};

}  // namespace batchloom::cli

// A Host (host.h) as a UC session wants it.
#pragma once

#include <functional>

#include "tests/support/host.h"
#include "wdp/uc_consumer.h"

namespace weft::test {

class UcHost final : public wdp::UcConsumer {
 public:
  explicit UcHost(uint32_t send_capacity = 256) : host(send_capacity) {}

  Host host;
  std::vector<wire::TermError> remote_errors;
  int send_failures = 0;
  int windows_opened = 0;
  // Looks at what arrives before anything else happens.
  std::function<void(const rdmap::Receive&, rdmap::Status, const rdmap::Arrival&)> on_receive;
  std::function<void(const rdmap::SendWqe&, rdmap::Status)> on_send;

  // rdmap::Consumer
  rdmap::Memory& memory() override { return host.memory(); }
  rdmap::SendQueue& send_queue() override { return host.send_queue(); }
  bool take_receive(rdmap::Receive& out) override { return host.take_receive(out); }
  void receive_done(const rdmap::Receive& r, rdmap::Status status,
                    const rdmap::Arrival& a) override {
    if (on_receive) on_receive(r, status, a);
    host.receive_done(r, status, a);
  }
  void send_done(const rdmap::SendWqe& w, rdmap::Status status) override {
    if (on_send) on_send(w, status);
    host.send_done(w, status);
  }
  rdmap::Status execute(rdmap::SendWqe& w) override { return host.execute(w); }
  void stream_ready() override { host.stream_ready(); }
  void stream_ended(const rdmap::StreamEnd& e) override { host.stream_ended(e); }
  // wdp::UcConsumer
  void remote_error(wire::TermError error) override { remote_errors.push_back(error); }
  void window_opened() override { ++windows_opened; }
  void send_failed() override {
    ++send_failures;
    host.flush();
  }
};

}  // namespace weft::test

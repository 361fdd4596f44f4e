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
  std::function<void(const work::Receive&, work::Status, const work::Arrival&)> on_receive;
  std::function<void(const work::SendWqe&, work::Status)> on_send;

  // work::Consumer
  work::Memory& memory() override { return host.memory(); }
  work::SendQueue& send_queue() override { return host.send_queue(); }
  bool take_receive(work::Receive& out) override { return host.take_receive(out); }
  void give_back(work::TakenReceive r) override { host.give_back(r); }
  void receive_done(const work::Receive& r, work::Status status, const work::Arrival& a) override {
    if (on_receive) on_receive(r, status, a);
    host.receive_done(r, status, a);
  }
  void send_done(const work::SendWqe& w, work::Status status) override {
    if (on_send) on_send(w, status);
    host.send_done(w, status);
  }
  work::Status execute(work::SendWqe& w) override { return host.execute(w); }
  void stream_ready() override { host.stream_ready(); }
  void stream_ended(const work::StreamEnd& e) override { host.stream_ended(e); }
  // wdp::UcConsumer
  void remote_error(wire::TermError error) override { remote_errors.push_back(error); }
  void window_opened() override { ++windows_opened; }
  void send_failed() override {
    ++send_failures;
    host.flush();
  }
};

}  // namespace weft::test

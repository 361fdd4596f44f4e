#include "cm/stream_start.h"

#include <utility>

#include "cm/silent_ports.h"

namespace weft::cm {

using engine::Token;

namespace {

// Of all ids of the process.
SilentPorts& silent_listeners() {
  static SilentPorts ports;
  return ports;
}

wdp::Endpoint listener_of(const ActiveStartPlan& plan) {
  return {.address = plan.to.gid(), .port = plan.to.port()};
}

}  // namespace

void StreamStart::begin(Token& token, ActiveStartPlan plan, BoundPort& port, bool asks_again) {
  plan_ = std::move(plan);
  port_ = &port;
  asks_again_ = asks_again;
  begin_by_tcp(token);
}

void StreamStart::begin(Token& token, ActiveStartPlan plan, BoundPort& port, bool asks_again,
                        drive::DatagramDriver& driver, ChannelStartPlan channel) {
  if (silent_listeners().has(listener_of(plan), token.now())) {
    return begin(token, std::move(plan), port, asks_again);
  }
  plan_ = std::move(plan);
  port_ = &port;
  asks_again_ = asks_again;
  channel_ = &ChannelStart::start(token, *this, driver, std::move(channel));
  driver.settle(token);
}

void StreamStart::begin_by_tcp(Token& token) {
  tcp_.begin(token, std::move(plan_), port_->take_socket(), asks_again_);
}

void StreamStart::cancel(Token& token) {
  if (channel_ != nullptr) std::exchange(channel_, nullptr)->cancel(token);
  tcp_.cancel(token);
}

void StreamStart::channel_started(Token& token, ChannelStart&, Started&& started) {
  channel_ = nullptr;
  handler_.stream_started(token, std::move(started));
}

void StreamStart::channel_start_failed(Token& token, ChannelStart&, ActiveStartFailure&& failure) {
  channel_ = nullptr;
  handler_.stream_not_started(token, std::move(failure));
}

void StreamStart::no_channel(Token& token, ChannelStart&, bool silent) {
  channel_ = nullptr;
  token.runtime().guard(
      token,
      [&] {
        if (silent) silent_listeners().add(listener_of(plan_), token.now());
        begin_by_tcp(token);
      },
      [&] { handler_.no_memory_to_start(token); });
}

}  // namespace weft::cm

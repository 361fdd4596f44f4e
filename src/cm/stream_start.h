// The active start of RC by an id of rdma_cm: through a channel to the listener's UDP port where
// that may be (spec/wdp-rd 7.6), else by TCP.
//
//   begin() ──► ChannelStart ──► started | refused
//        │           └─ there is no channel ─┐
//        └───────────────────────────────────┴─► RetryingStart ──► started | refused
#pragma once

#include "cm/bound_port.h"
#include "cm/channel_start.h"
#include "cm/retrying_start.h"

namespace weft::cm {

// Engine holder; one engine from begin() to the outcome or cancel().
class StreamStart final : private RetryingStartHandler, private ChannelStartHandler {
 public:
  explicit StreamStart(RetryingStartHandler& handler) : handler_(handler) {}

  // By TCP from the socket of `port`, which is kept. `asks_again`: where nobody listens. Throws
  // std::bad_alloc.
  void begin(engine::Token& token, ActiveStartPlan plan, BoundPort& port, bool asks_again);
  // The same through a channel first, by the driver of the queue pair's socket.
  void begin(engine::Token& token, ActiveStartPlan plan, BoundPort& port, bool asks_again,
             drive::DatagramDriver& driver, ChannelStartPlan channel);
  // No outcome is wanted any more. The engine knows nothing of it afterwards.
  void cancel(engine::Token& token);
  // False in the pauses between two.
  bool connecting() const { return channel_ != nullptr || tcp_.connecting(); }

 private:
  void begin_by_tcp(engine::Token& token);
  // RetryingStartHandler
  void stream_started(engine::Token& token, Started&& started) override {
    handler_.stream_started(token, std::move(started));
  }
  void stream_not_started(engine::Token& token, ActiveStartFailure&& failure) override {
    handler_.stream_not_started(token, std::move(failure));
  }
  void no_memory_to_start(engine::Token& token) override { handler_.no_memory_to_start(token); }
  // ChannelStartHandler
  void channel_started(engine::Token& token, ChannelStart& start, Started&& started) override;
  void channel_start_failed(engine::Token& token, ChannelStart& start,
                            ActiveStartFailure&& failure) override;
  void no_channel(engine::Token& token, ChannelStart& start, bool silent) override;

  RetryingStartHandler& handler_;
  RetryingStart tcp_{*this};
  ChannelStart* channel_ = nullptr;
  // For TCP
  ActiveStartPlan plan_;
  BoundPort* port_ = nullptr;
  bool asks_again_ = false;
};

}  // namespace weft::cm

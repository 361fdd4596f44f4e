// The active start of an id of rdma_cm, which begins again for a while where nobody listens.
//
// Programs connect to a server of theirs that is about to listen (ib_write_bw -R does): on an
// adapter of hardware, resolving the address takes long enough. So a refusal counts only when it
// stands for a while, unless the program has something else to go on with.
#pragma once

#include "cm/active_start.h"

namespace weft::cm {

// Hears of the outcome once. Engine holder.
class RetryingStartHandler {
 public:
  virtual void stream_started(engine::Token& token, Started&& started) = 0;
  virtual void stream_not_started(engine::Token& token, ActiveStartFailure&& failure) = 0;
  // There was no memory to begin again.
  virtual void no_memory_to_start(engine::Token& token) = 0;

 protected:
  ~RetryingStartHandler() = default;
};

// Engine holder; one engine from begin() to the outcome or cancel().
class RetryingStart final : private engine::EventHandler, private ActiveStartHandler {
 public:
  explicit RetryingStart(RetryingStartHandler& handler) : handler_(handler) {}

  // `bound`: see ActiveStart::start(). `asks_again`: where nobody listens. Throws std::bad_alloc.
  void begin(engine::Token& token, ActiveStartPlan plan, port::Fd bound, bool asks_again);
  // No outcome is wanted any more. The engine knows nothing of it afterwards.
  void cancel(engine::Token& token);
  // False in the pauses between two.
  bool connecting() const { return start_ != nullptr; }

 private:
  // ActiveStartHandler
  void start_connected(engine::Token& token, ActiveStart& start, Started&& started) override;
  void start_failed(engine::Token& token, ActiveStart& start,
                    ActiveStartFailure&& failure) override;
  // engine::EventHandler, without a descriptor
  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token& token) override { handler_.no_memory_to_start(token); }
  void abandon_in_child() override {}

  RetryingStartHandler& handler_;
  ActiveStartPlan plan_;
  ActiveStart* start_ = nullptr;
  Time refusals_until_;
  Duration pause_{};
};

}  // namespace weft::cm

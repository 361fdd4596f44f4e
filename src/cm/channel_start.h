// The active side of a start through a channel of reliable datagrams (spec/wdp-rd 7.5, 7.6): a
// channel to the peer's socket, a Request to its queue pair or to the listener there, the Reply.
//
//   channel opens ── Request ──► Reply ──► started | refused
//        └─ there is none, or the peer's begin by TCP ──► no_channel()
#pragma once

#include "cm/active_start.h"
#include "drive/datagram_driver.h"
#include "drive/rd_bytes.h"

namespace weft::cm {

// What a start through a channel is to do.
struct ChannelStartPlan {
  wdp::Path path;          // to the peer's port
  uint32_t interface = 0;  // of path.from
  Qpn to;                  // the queue pair there
  wire::RdOffer own;       // of this end
  mpa::Offer offer;        // what this side wants
  std::vector<std::byte> private_data;
  Duration timeout;  // until the Reply
  // `to` is a listener of rdma_cm, which sees this as the port that it is called from.
  std::optional<uint16_t> caller;
};

class ChannelStart;
// Hears of the outcome once; the start is gone afterwards. Engine holder.
class ChannelStartHandler {
 public:
  virtual void channel_started(engine::Token& token, ChannelStart& start, Started&& started) = 0;
  virtual void channel_start_failed(engine::Token& token, ChannelStart& start,
                                    ActiveStartFailure&& failure) = 0;
  // The Request was not sent: connect by TCP. `silent`: nobody answered there in time, or the
  // peer's connections do not begin by channels; it is not worth asking again soon.
  virtual void no_channel(engine::Token& token, ChannelStart& start, bool silent) = 0;

 protected:
  ~ChannelStartHandler() = default;
};

class ChannelStart final : public engine::EventHandler,
                           public drive::DatagramSender,
                           private wdp::RdStreamOwner {
 public:
  // Begins on the engine, which owns the start. The handler is called later, never from inside this
  // call. `driver`: of the socket of the queue pair in plan.own. Throws std::bad_alloc.
  static ChannelStart& start(engine::Token& token, ChannelStartHandler& handler,
                             drive::DatagramDriver& driver, ChannelStartPlan plan);
  ~ChannelStart() override;
  // No outcome is wanted any more. The peer hears of it; the start is gone.
  void cancel(engine::Token& token);
  // Is the Request out (spec/addressing 5.5)? Before that it gives way to a connection that comes
  // in.
  bool request_sent() const { return state_ == State::awaiting_reply; }

  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token& token) override;
  void abandon_in_child() override {}

 private:
  enum class State : uint8_t { opening, awaiting_reply, replied };
  ChannelStart(ChannelStartHandler& handler, drive::DatagramDriver& driver, ChannelStartPlan plan);

  // drive::DatagramSender
  void settled(engine::Token& token) override;
  // wdp::RdStreamOwner
  void stream_changed() override { driver_.schedule_settling(*this); }
  void replied(Bytes frame) override;

  void proceed(engine::Token& token);
  void open_channel(engine::Token& token);
  void begin_stream(const wire::RdOffer& peer);
  void no_channel(engine::Token& token, bool silent);
  void judge(engine::Token& token);
  // Last call to it.
  void end(engine::Token& token);
  void fail(engine::Token& token, stats::DialEnd why, ActiveStartFailure&& failure);

  ChannelStartHandler& handler_;
  drive::DatagramDriver& driver_;
  ChannelStartPlan plan_;
  mpa::Initiator initiator_;
  const std::vector<std::byte> request_;
  std::unique_ptr<wdp::RdStream> stream_;
  std::optional<mpa::Initiator::Outcome> outcome_;
  State state_ = State::opening;
  bool begun_ = false;  // it is the engine's; else there was no memory
  Time until_;          // of the whole
  Time step_by_;        // the channel is open by then; or the peer is asked whether it is there
};

}  // namespace weft::cm

// The bytes of an RC connection over a channel (spec/wdp-rd 7): cut into messages of one flow on
// one side, put together again on the other. How far a sender is ahead of its reader is bounded, so
// that a queue pair that reads nothing holds up no other one of the channel.
//
//   send()  ─ window, room in the channel ─► messages of the flow ─► the peer's take()
//   owner  ◄────────── take()                         └─ "taken so many bytes" ─► window
//   read()  ◄─ inbox ◄─┘ what the owner does not take at once
//
// Above 400 lines with its source: one stream, both ways and its end.
#pragma once

#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/io_vec.h"
#include "wdp/rd_channels.h"
#include "wire/rd_offer.h"

namespace weft::wdp {

// Called from inside calls into a channel, and from those of the stream's own.
class RdStreamOwner {
 public:
  virtual ~RdStreamOwner() = default;
  // There is something to read, or room again after there was none, or the connection has ended.
  virtual void stream_changed() = 0;
  // The next bytes of the stream, from inside a call into the channel, which is not to be called
  // meanwhile. True: the owner has taken all of them. Else they wait for read().
  virtual bool bytes_came(Bytes, Time) noexcept { return false; }
  // The answer to request(): an MPA Reply. begin() may be called.
  virtual void replied(Bytes) {}
};

// Engine holder only.
class RdStream final : public RdClient, public RdReceiver {
 public:
  // Bytes that a sender may be ahead of its reader, if it has not heard of more.
  static constexpr size_t kWindow = size_t{1} << 20;

  // Both references are kept. `own`: what the peer was told; its queue pair is on the channels'
  // socket.
  RdStream(RdChannels& channels, RdStreamOwner& owner, const wire::RdOffer& own);
  void belongs_to(RdStreamOwner& owner) { owner_ = &owner; }
  RdStream(const RdStream&) = delete;
  RdStream& operator=(const RdStream&) = delete;

  // The peer takes what comes. `most`: bytes of a message at most.
  void begin(const wire::RdOffer& peer, const Path& path, size_t most);
  bool begun() const { return most_ > 0; }
  // The same by that channel, which has brought the peer's word just now.
  void begin(const wire::RdOffer& peer, RdChannel& channel, size_t most);

  // --- the start through a channel (spec/wdp-rd 7.5), before begin()
  // The Initiator: this end looks for a channel there. See needs_channel().
  void call(const Path& path) { path_ = path; }
  // The same to a listener of rdma_cm (spec/wdp-rd 7.6), which is told the port of the id.
  void call_listener(const Path& path, uint16_t caller);
  // Its Reply has named the queue pair, at another port of the same host: the stream goes by the
  // channel there.
  void begin_there(const wire::RdOffer& peer, size_t most);
  // The Responder of rdma_cm, instead of begin(): nothing is sent before the peer's first word has
  // come, by the channel that it comes by. Where there is a channel the peer is greeted.
  void await(const wire::RdOffer& peer, const Path& path, size_t most);
  bool awaits() const { return beginning_.awaits && channel_ == nullptr && error_ == 0 && !left_; }
  // It will not come.
  void peer_lost() { fail(ECONNRESET); }
  // awaits(), and this end is about to leave: what the peer is told by any channel, for it may come
  // yet. There is a channel (RdChannels::find()).
  void turn_away();
  // has_channel() said yes. The Request is for that queue pair of the peer's. False: the channel
  // has no room, and stream_changed() tells when there is.
  bool request(Qpn to, Bytes frame);
  // stream_changed() is to tell when the channel opens, or has room.
  void want_room() { channel_->out().want_room(client_); }
  // It is taken back: an answer comes too late, or cannot be lived with. Where it throws
  // std::bad_alloc nothing has happened.
  void cancel_request();
  // The answer is no: there is nothing to take back.
  void refused() { beginning_.requested = false; }
  // The Responder, behind begin(): its Reply. There is room (RdChannels::take_start()).
  void reply(Bytes frame);
  RdChannel* channel() const { return channel_; }
  const wire::RdOffer& own() const { return own_; }
  // Bytes of a message at most, as begin() was told.
  size_t most() const { return most_; }

  const Path& path() const { return path_; }
  // Is there a channel to send by? One that was there before begin() may lead to a process that has
  // ended, or end itself: its peer is asked first, and stream_changed() tells of the answer.
  bool has_channel();
  // There is none, nor one that is asked: the owner opens one, and asks again.
  bool needs_channel() { return !awaits() && !has_channel() && channels_.find(path_) == nullptr; }
  // It waits for one that is at rest.
  bool channel_rests() {
    return needs_channel() && channels_.resting().has(ChannelEnds::of(path_));
  }

  // --- the stream
  struct Moved {
    size_t bytes = 0;
    bool unreachable = false;  // the memory of what is next is gone
  };
  // has_channel() said yes. What is not taken waits for stream_changed().
  Moved send(std::span<const IoVec> pieces);
  Moved read(std::span<const IoVec> pieces);
  // The peer hears how much was taken, where that is enough to say so. read() says so by itself.
  void tell_taken();
  size_t readable() const { return inbox_.size() - read_; }
  // Nothing more is sent; the peer hears of it behind all bytes. Where it throws std::bad_alloc
  // nothing has happened, and it is to be called again; so with leave().
  void end();
  // The peer has said so, and all that it had sent is read.
  bool peer_ended() const { return peer_ended_ && readable() == 0; }
  // Ended without that: errno, else 0.
  int error() const { return error_; }
  // Has anything of the peer's come?
  bool heard() const { return heard_; }
  // Nothing is said and heard any more; what was sent still goes. `abort`: the peer is told that it
  // is an end before its time.
  void leave(bool abort);
  // The same as an end before its time, with a Request that has no answer taken back, and without a
  // second try: a peer that there is no memory to tell hears it by the end of the channel.
  void forsake();
  // Memory that is of no use now.
  void trim();

  // RdReceiver
  Result<Ok, wire::WdpDrop> take(RdChannel& channel, const RdArrival& arrival,
                                 Bytes payload) override;
  void cancelled(const RdStart& start) override;
  // RdClient
  void message_ended(uint64_t request, End end) override;
  void has_room() override { owner_->stream_changed(); }
  void channel_ended(const RdChannel& channel) override;
  void look_for_rest(Time now) override;

 private:
  // In IMM of a message without bytes of the stream; its number is in TO.
  using Word = wire::RdStreamWord;
  // What the queue pair of a listener has said before the listener's Reply came.
  struct Greeting {
    SessionToken channel;
    Qpn from;
    Word word{};
  };
  // Of an Initiator by rdma_cm, until the listener's Reply.
  struct ToListener {
    uint16_t caller = 0;  // its id's port
    std::optional<Greeting> greeting;
  };
  // How the connection begins, other than by TCP.
  struct Beginning {
    std::unique_ptr<ToListener> to_listener;
    bool requested = false;
    bool announces = false;  // the Initiator by rdma_cm: says a first word
    bool awaits = false;     // the Responder by rdma_cm: hears one
    bool there = false;      // for the start has passed through the channel
  };
  // How far the peer may be ahead.
  struct Window {
    RdExtra extra;         // beyond kWindow
    uint64_t edge = 0;     // it was told that it may send so far
    Time told;             // when it heard last of what was read
    bool shrinks = false;  // it is to hear that there is no extra
  };

  void ask(RdChannel& channel);
  void go_by(RdChannel& channel);
  void greet(RdChannel& channel, Word word);
  bool greeted(const RdChannel& channel, const RdArrival& arrival);
  RdMessage message(uint32_t number, size_t bytes) const;
  void say(Word word, uint32_t number, uint64_t request = 0);
  void tell_soon() noexcept;
  void widen();
  void fail(int error);
  Result<Ok, wire::WdpDrop> hear(Word word, uint32_t number);
  Result<Ok, wire::WdpDrop> hear_reply(const RdChannel& channel, const RdArrival& arrival,
                                       Bytes frame);
  void say_start(Word word, uint32_t session, Bytes payload);

  RdChannels& channels_;
  RdStreamOwner* owner_;
  const wire::RdOffer own_;
  const ClientId client_;
  wire::RdOffer peer_;
  Path path_;
  uint32_t most_ = 0;
  uint32_t peer_window_ = kWindow;
  RdChannel* channel_ = nullptr;
  RdChannel* asked_ = nullptr;  // until it has answered the question
  uint32_t question_ = 0;
  int error_ = 0;  // errno
  uint64_t sent_ = 0;
  uint64_t peer_has_read_ = 0;
  std::vector<std::byte> inbox_;
  size_t read_ = 0;         // of the inbox
  uint64_t received_ = 0;   // all that came
  uint64_t told_read_ = 0;  // what the peer knows that was read
  Window window_;
  Beginning beginning_;
  bool heard_ = false;
  bool ended_ = false;
  bool peer_ended_ = false;
  bool left_ = false;
};

}  // namespace weft::wdp

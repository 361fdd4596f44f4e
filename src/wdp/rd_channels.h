// The channels of one socket (spec/wdp-rd 1): which one leads to a peer, which peers have none, and
// the queue pairs at this end.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "wdp/demux.h"
#include "wdp/rd_channel.h"
#include "wdp/rd_start.h"
#include "wdp/resting_channels.h"

namespace weft::wdp {

// Who takes the messages of a queue pair that is connected (rd_stream.h): there is always room for
// what a peer may send.
class RdReceiver {
 public:
  virtual Result<Ok, wire::WdpDrop> take(RdChannel& channel, const RdArrival& arrival,
                                         Bytes payload) = 0;
  // The peer takes a Request back: the one that it has begun by?
  virtual void cancelled(const RdStart& start) = 0;

 protected:
  ~RdReceiver() = default;
};

// A queue pair of type RD (rd_queue.h).
class RdMember {
 public:
  virtual void take(RdChannel& channel, const RdArrival& arrival, Bytes payload) = 0;
  virtual void answered(RdChannel& channel, const wire::WdpResponse& response) = 0;

 protected:
  ~RdMember() = default;
};

// Engine holder only. Does not own what it finds.
class RdChannels final : public RdShared {
 public:
  explicit RdChannels(Demux& demux) : demux_(demux) {}
  RdChannels(const RdChannels&) = delete;
  RdChannels& operator=(const RdChannels&) = delete;

  // What this end says of itself. Without it there are no channels here: REQs are refused.
  struct Setup {
    uint16_t own_port = 0;
    bool crc = false;
    size_t window = 0;    // bytes that the socket has room for
    bool starts = false;  // connections of RC may begin here (take_start())
  };
  void enable(const Setup& setup) { setup_ = setup; }
  const std::optional<Setup>& setup() const { return setup_; }
  Offer offer() const;

  // --- queue pairs that send
  ClientId add(RdClient& client);
  void remove(ClientId client) { clients_.erase(client); }
  // --- queue pairs that are connected, by index
  void add(uint8_t index, RdReceiver& receiver) { receivers_[index] = &receiver; }
  // Its index may be a later connection's by then, which stays.
  void remove(uint8_t index, const RdReceiver& receiver) {
    if (receivers_[index] == &receiver) receivers_[index] = nullptr;
  }
  // --- connections that begin (spec/wdp-rd 7.5), in order but for those whose channel has no room
  // for an answer, which wait
  std::optional<RdStart> take_start();
  // A Cancel for a Request that does not wait: its connection ends, if it has one.
  void cancelled(const RdStart& start) {
    if (RdReceiver* const r = receivers_[start.index]) r->cancelled(start);
  }
  // --- queue pairs of type RD, by index
  void add(uint8_t index, RdMember& member) { members_[index] = &member; }
  void remove_member(uint8_t index) { members_.erase(index); }
  // --- queue pairs that receive: this one has receives again, or is gone
  void receives_posted(uint8_t index);
  bool waits_for(uint8_t index) const { return waiting_.contains(index); }
  // What is not acknowledged yet is, at once.
  void flush();

  // --- peers. By both addresses, for the peer knows this end by its own. Not one that ends.
  RdChannel* find(const Path& path) const;
  RdChannel* find(SessionToken token) const;
  void add(RdChannel& channel, const Path& path);
  void remove(RdChannel& channel, Time now);
  // That this side has ended because it was idle, where the peer may not know.
  std::optional<wire::WdpEnded> ended_when_idle(const Path& path) const;
  // The peer has said that it has none, less than a minute ago.
  bool is_refused(const Path& path, Time now) const;
  // Those at rest among them.
  size_t size() const { return by_token_.size() + resting_.size(); }
  // --- channels at rest (spec/wdp-rd 2.5): find() knows none of them
  // What is kept of it, instead of all that it is. Without memory for that it goes on, and false.
  bool rest(RdChannel& channel, Time now);
  const RestingChannels& resting() const { return resting_; }
  // Those whose time is over are gone. Their peers hear nothing: they call before they speak.
  void forget_old(Time now);
  // That one goes on as `channel`. Throws std::bad_alloc; then nothing has changed.
  void wake(const ChannelEnds& ends, RdChannel& channel, Time now);

  // Calls that wait for their RTU.
  size_t half_open() const;
  template <class F>
  void each(F&& f) const {
    for (const auto& [token, channel] : by_token_) f(*channel);
  }

  // --- RdShared
  RdClient* client(ClientId id) override;
  const std::shared_ptr<RdBudget>& budget() override { return budget_; }
  void waits(RdChannel& channel, uint8_t index) override;
  void refused(const Path& path, Time now) override;
  void dropped(wire::WdpDrop why) override { drops_.count(why); }
  void ended(RdChannel& channel) override;
  bool take(RdChannel& channel, const RdArrival& arrival, Bytes payload) override;
  void answered(RdChannel& channel, const wire::WdpResponse& response) override;

  // What the channels have dropped, messages for which there was no queue pair among it.
  const DropCounts& drops() const { return drops_; }

 private:
  static constexpr size_t kMostRefused = 1024;
  static constexpr size_t kMostStarts = 4096;
  void leave(const RdChannel& channel, const ChannelEnds& ends);
  bool waits_behind_another(const RdChannel& channel, uint8_t index) const;
  bool keep_start(const RdChannel& channel, const RdArrival& arrival, Bytes payload);

  Demux& demux_;
  std::optional<Setup> setup_;
  // Its holders may outlive this.
  std::shared_ptr<RdBudget> budget_ = std::make_shared<RdBudget>();
  std::map<ChannelEnds, RdChannel*> by_peer_;
  std::unordered_map<SessionToken, RdChannel*> by_token_;
  RestingChannels resting_;
  std::map<ChannelEnds, Time> refused_;  // until
  std::unordered_map<ClientId, RdClient*> clients_;
  ClientId last_client_ = 0;
  std::array<RdReceiver*, 256> receivers_{};
  std::deque<RdStart> starts_;
  std::map<uint8_t, RdMember*> members_;
  std::map<uint8_t, std::vector<RdChannel*>> waiting_;  // those that wait first are first
  DropCounts drops_;
};

}  // namespace weft::wdp

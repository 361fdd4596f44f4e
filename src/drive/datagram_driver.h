// Moves datagrams between one UDP socket and all that sends WDP through it: UC connections, queue
// pairs of UD and RD, channels, and the wdp::WdpSocket that finds out whom a datagram is for
// (docs/design/09).
//
//   socket ─ trains ─► DatagramDriver ─► wdp::WdpSocket ─► UcConnection (in a UcLink), UdQueue
//   socket ◄─ trains ─ DatagramDriver ◄─ DatagramSender: one train each, in rotation
//
// An adapter port has one for all its queue pairs. Anybody with a UDP socket of his own (a listener
// of rdma_cm, a multicast group) may have another: start() it, serve its DatagramOwner, and make
// UcLinks on it.
//
// Above 400 lines with its source: what comes in and what goes out share the socket and its visits
// (datagram_input.cc has the first half; DatagramOutput, LookAhead and OverrunCount are parts).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/adapter_ports.h"
#include "drive/datagram_output.h"
#include "drive/datagram_sender.h"
#include "drive/datagram_tally.h"
#include "drive/look_ahead.h"
#include "drive/overrun_count.h"
#include "engine/event_handler.h"
#include "engine/runtime.h"
#include "port/datagram_port.h"
#include "wdp/wdp_socket.h"

namespace weft::drive {

class DatagramDriver;
class PortCheck;
class RdLink;
class UcLink;

// Who answers for a socket where nobody is connected yet: as wdp::WdpSocketOwner. The defaults know
// nobody. Called from inside a visit; may call of the driver's port what WdpSocketOwner says.
class DatagramOwner {
 public:
  virtual ~DatagramOwner() = default;
  virtual Result<wdp::WdpSocketOwner::Callee, wire::RejReason> called(Token& token,
                                                                      DatagramDriver& driver,
                                                                      const wire::WdpCtl& req,
                                                                      const wdp::Endpoint& from);
  virtual std::optional<wire::RejReason> requested(Token& token, DatagramDriver& driver,
                                                   const wdp::RequestKey& key,
                                                   const wdp::Handshake& handshake);
  virtual void answered(Token& token, DatagramDriver& driver, SessionToken question,
                        const wdp::Handshake& handshake);
  // A peer's connection begins, or does not after all, through a channel of the socket.
  virtual void start_came(Token& token, DatagramDriver& driver, const wdp::RdStart& start);
  // Of the socket of a multicast group: datagrams have come from there, and its members take them
  // next. Is that an address of this host?
  virtual bool group_heard(Token& token, DatagramDriver& driver, const Gid& from);
};

// Engine holder only.
class DatagramDriver final : public engine::EventHandler {
 public:
  // What a socket of one asks for in each direction.
  static constexpr size_t kBuffer = kDatagramBuffer;

  // Gives the driver to the engine and begins to listen. `group`: the multicast group that the
  // socket is bound to. Its members hear what comes, and nobody is answered.
  static DatagramDriver& start(Token& token, DatagramOwner& owner,
                               std::unique_ptr<port::DatagramPort> socket,
                               const std::optional<Gid>& group = {});
  ~DatagramDriver() override;

  // So many of the bytes that are coming in are small messages: somebody waits for them, and the
  // helper does not rest on account of them (docs/design/19). Inside a visit.
  void came_in_small_ones(size_t bytes) { small_ += bytes; }
  // What is called there takes effect with the next settle().
  wdp::WdpSocket& wdp_socket() { return wdp_socket_; }
  const port::DatagramPort::Properties& properties() const { return properties_; }
  Random& random() { return random_; }

  // Datagrams from a link-local address of this host leave by this interface, and those to a group
  // of IPv6 from any of its addresses of IPv6. Also learnt from what comes in.
  void set_interface(const Gid& local, uint32_t interface) {
    output_.set_interface(local, interface);
  }

  // --- reliable datagrams (spec/wdp-rd), on the socket of a port whose queue pairs have them
  // `port`: its number; `starts`: connections of RC may begin in them.
  void enable_channels(uint16_t port, bool crc, bool starts = false);
  // Calls the socket there; its channel is there at once. Takes effect with settle().
  void open_channel(Token& token, const wdp::Path& path);
  // All of them end, for the process does.
  void close_channels(Token& token);
  // The queue pair has receives again, or is gone.
  void channels_resume(Token& token, uint8_t index);

  // The sender may have something to say, and is to be settled; or has nothing to say, and is to
  // be settled. Takes effect with settle().
  void schedule(DatagramSender& sender);
  void schedule_settling(DatagramSender& sender) { settling_.push_back(sender); }
  // Sends what there is to send, settles, sees to deadlines. To be called after anything was done
  // to the WdpSocket or to a sender; has no effect inside a visit, which ends with it anyway.
  void settle(Token& token);
  // The sender's program has posted requests: sends them now, or together with those that follow.
  void posted(Token& token, DatagramSender& sender);
  // The sender refers to memory that goes back to the program: what waits for the socket is kept
  // as a copy.
  void detach_memory(DatagramSender& sender) { output_.detach_memory(sender); }
  // The same, and the sender is not called any more.
  void remove(Token& token, DatagramSender& sender);
  // A program has used up its receives and needs a moment to post more, while the socket is better
  // at keeping what comes than the protocol, which would drop it. For a short time nothing is read,
  // for anybody; once only until receives_posted().
  void wait_for_receives(DatagramSender& sender);
  bool waits_for(const DatagramSender& sender) const { return sender.lacks_receives_; }
  void receives_posted(Token& token, DatagramSender& sender);
  // Nobody has the port to which the WdpSocket's question went.
  void port_closed(Token& token, SessionToken question);
  // Nobody answers for the socket any more. The driver goes with the last of its links.
  void close(Token& token);

  void on_ready(Token& token, bool readable, bool writable) override;
  bool try_receive(Token& token) override;
  bool tries_receive() const override { return true; }
  void on_deadline(Token& token) override;
  void on_doorbell(Token& token) override { settle(token); }
  void on_gathered(Token& token) override { settle(token); }
  void on_memory_retired(Token&) override { output_.detach_memory(); }
  void on_no_memory(Token& token) override;
  void abandon_in_child() override { close_socket(); }

 private:
  friend class PortCheck;
  friend class RdLink;
  friend class UcLink;
  // Whatever is called meanwhile, what comes of it is seen to at the end. Answers for the socket
  // with the token that it was made with.
  class Visit final : public wdp::WdpSocketOwner {
   public:
    Visit(DatagramDriver& d, Token& token) : driver_(d), token_(token), outer_(d.inside_) {
      d.inside_ = true;
    }
    ~Visit() override { driver_.inside_ = outer_; }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    std::optional<wire::RejReason> requested(const wdp::RequestKey& key,
                                             const wdp::Handshake& handshake) override;
    Result<Callee, wire::RejReason> called(const wire::WdpCtl& req,
                                           const wdp::Endpoint& from) override;
    wdp::RdChannel* channel_called() override;
    void answered(SessionToken question, const wdp::Handshake& handshake) override;

   private:
    DatagramDriver& driver_;
    Token& token_;
    const bool outer_;
  };
  DatagramDriver(Token& token, DatagramOwner& owner, std::unique_ptr<port::DatagramPort> socket,
                 const std::optional<Gid>& group);

  // Nothing is read until then, for that sender's program to post receives.
  struct ReceivePause {
    DatagramSender* sender = nullptr;
    bool begun = false;
    Time until = Time::never();  // set when the visit is over in which it has begun
    bool lasts(Time now) const { return begun && now < until; }
  };
  // Of the train that was being delivered when the pause began.
  struct Undelivered {
    std::vector<std::byte> bytes;
    port::DatagramPort::Received how;
  };

  // --- for its links
  void enter() { ++links_; }
  void leave(Token& token, wdp::UcConnection& connection);
  void leave(Token& token, wdp::RdChannel& channel);
  // What is to be kept of the channel is, and its link goes. False: there is no memory for that.
  bool rest(Token& token, wdp::RdChannel& channel);
  // A datagram is for this sender: whatever comes of it, also where there is no memory for it.
  void reached(DatagramSender& sender) {
    current_.set(&sender);
    schedule(sender);
  }

  void end_channels(Token& token);
  void close_socket();
  size_t receive(Token& token, size_t calls);
  std::optional<size_t> receive_one(Token& token, Visit& visit);
  size_t receive_in_place(Token& token, wdp::UcSession& session, const PieceList& places,
                          Bytes seen);
  void deliver(Token& token, Visit& visit, Bytes bytes, const port::DatagramPort::Received& r);
  wdp::UdReception reception_of(Token& token, const port::DatagramPort::Received& r);
  void wait_no_longer(Token& token);
  void tell_starts(Token& token);
  void settle_now(Token& token);
  void end_if_unused(Token& token);

  DatagramOwner* owner_;
  const std::unique_ptr<port::DatagramPort> socket_;
  const port::DatagramPort::Properties properties_;
  const std::optional<Gid> group_;
  bool open_ = true;  // the socket
  Random& random_;
  wdp::WdpSocket wdp_socket_;
  size_t links_ = 0;
  size_t port_checks_ = 0;  // under way
  IntrusiveList<DatagramSender, SettlingTag> settling_;

  bool inside_ = false;  // a visit
  size_t small_ = 0;     // bytes of small messages that have come in this visit
  CurrentSender current_;
  DatagramOutput output_;
  LookAhead look_ahead_;
  ReceivePause pause_;
  Undelivered rest_;
  OverrunCount overruns_;
  DropTally drops_;
  DropTally channel_drops_;
  RejTally rejections_;
  uint64_t posted_at_poll_ = UINT64_MAX;
};

}  // namespace weft::drive

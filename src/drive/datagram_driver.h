// Moves datagrams between one UDP socket and all that sends WDP through it: UC connections, UD
// queue pairs, and the wdp::WdpSocket that finds out whom a datagram is for (docs/design/09).
//
//   socket ─ trains ─► DatagramDriver ─► wdp::WdpSocket ─► UcConnection (in a UcLink), UdQueue
//   socket ◄─ trains ─ DatagramDriver ◄─ DatagramSender: one train each, in rotation
//
// An adapter port has one for all its queue pairs. Anybody with a UDP socket of his own (a listener
// of rdma_cm) may have another: start() it, serve its DatagramOwner, and make UcLinks on it.
#pragma once

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "config/options.h"
#include "drive/datagram_tally.h"
#include "drive/overrun_count.h"
#include "drive/pacer.h"
#include "engine/event_handler.h"
#include "engine/runtime.h"
#include "port/datagram_port.h"
#include "wdp/wdp_socket.h"

namespace weft::drive {

using engine::Token;

class DatagramDriver;
class UcLink;

// What WDP wants to know of a datagram besides its bytes.
wdp::UdReception reception_of(const port::DatagramPort::Received& r);

// `bytes` came uncalled for in one datagram or train, into a socket with such a buffer:
// Runtime::unsolicited().
void count_unsolicited(Token& token, size_t receive_buffer, size_t bytes);

// Who sends through a driver. Engine holder calls, from inside a visit of the driver.
class DatagramSender : public ListHook<struct SendingTag>,
                       public ListHook<struct SettlingTag>,
                       public ListHook<struct PacedTag> {
 public:
  DatagramSender() : pacer_(config::options().rate) {}
  DatagramSender(const DatagramSender&) = delete;
  DatagramSender& operator=(const DatagramSender&) = delete;
  virtual ~DatagramSender() = default;

  // See wdp::UcConnection, wdp::UdQueue.
  virtual bool ready(Token& token) = 0;
  virtual void fill(Token& token, wdp::Train& train) = 0;
  // What it would say next is no data, and does not wait for its pace.
  virtual bool urgent(Token&) { return false; }
  // May IP cut up what it sends?
  virtual bool fragments() const { return false; }
  virtual void llp_took_all(Token& token) = 0;
  virtual void path_carries(Token& token, size_t max_payload) = 0;
  virtual void own_memory_lost(Token& token) = 0;
  // The visit is over: publish completions, see to the state and to the deadline.
  virtual void settled(Token& token) = 0;
  // It was left in the middle for want of memory: end as little as can be.
  virtual void on_no_memory(Token& token) = 0;

 private:
  friend class DatagramDriver;
  port::Segmentation segmentation_;  // of the way to its peer
  Pacer pacer_;
  bool lacks_receives_ = false;
};

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
                                                   const wdp::Demux::RequestKey& key,
                                                   const wdp::Handshake& handshake);
  virtual void answered(Token& token, DatagramDriver& driver, SessionToken question,
                        const wdp::Handshake& handshake);
};

// Engine holder only.
class DatagramDriver final : public engine::EventHandler, private wdp::WdpSocketOwner {
 public:
  // Of what is asked of the kernel for each socket and direction (design/17).
  static constexpr size_t kBuffer = size_t{4} << 20;

  // Gives the driver to the engine and begins to listen.
  static DatagramDriver& start(Token& token, DatagramOwner& owner,
                               std::unique_ptr<port::DatagramPort> socket);
  ~DatagramDriver() override;

  // What is called there takes effect with the next settle().
  wdp::WdpSocket& port() { return port_; }
  const port::DatagramPort::Properties& properties() const { return properties_; }
  Random& random() { return random_; }
  // Of the visit that calls into a consumer.
  Token& token() { return *token_; }

  // Datagrams from a link-local address of this host leave by this interface, and those to a group
  // of IPv6 from any of its addresses of IPv6. Also learnt from what comes in.
  void set_interface(const Gid& local, uint32_t interface);

  // The sender may have something to say, and is to be settled; or has nothing to say, and is to
  // be settled. Takes effect with settle().
  void schedule(DatagramSender& sender);
  void schedule_settling(DatagramSender& sender) { settling_.push_back(sender); }
  // Sends what there is to send, settles, sees to deadlines. To be called after anything was done
  // to the port or to a sender; has no effect inside a visit, which ends with it anyway.
  void settle(Token& token);
  // The sender's program has posted requests: sends them now, or together with those that follow.
  void posted(Token& token, DatagramSender& sender);
  // The sender refers to memory that goes back to the program: what waits for the socket is kept
  // as a copy.
  void detach_memory(DatagramSender& sender);
  // The same, and the sender is not called any more.
  void remove(Token& token, DatagramSender& sender);
  // A program has used up its receives and needs a moment to post more, while the socket is better
  // at keeping what comes than the protocol, which would drop it. For a short time nothing is read,
  // for anybody; once only until receives_posted().
  void wait_for_receives(DatagramSender& sender);
  bool waits_for(const DatagramSender& sender) const { return sender.lacks_receives_; }
  void receives_posted(Token& token, DatagramSender& sender);
  // Nobody answers for the socket any more. The driver goes with the last of its links.
  void close(Token& token);

  void on_ready(Token& token, bool readable, bool writable) override;
  bool try_receive(Token& token) override;
  bool tries_receive() const override { return true; }
  void on_deadline(Token& token) override;
  void on_doorbell(Token& token) override { settle(token); }
  void on_gathered(Token& token) override { settle(token); }
  void on_memory_retired(Token& token) override;
  void on_no_memory(Token& token) override;
  void abandon_in_child() override { close_socket(); }

 private:
  friend class UcLink;
  // Whatever is called meanwhile, what comes of it is seen to at the end.
  class Visit {
   public:
    Visit(DatagramDriver& d, Token& token) : driver_(d), outer_(d.inside_), before_(d.token_) {
      d.inside_ = true;
      d.token_ = &token;
    }
    ~Visit() {
      driver_.inside_ = outer_;
      driver_.token_ = before_;
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

   private:
    DatagramDriver& driver_;
    const bool outer_;
    Token* const before_;
  };
  DatagramDriver(Token& token, DatagramOwner& owner, std::unique_ptr<port::DatagramPort> socket);

  // wdp::WdpSocketOwner
  std::optional<wire::RejReason> requested(const wdp::Demux::RequestKey& key,
                                           const wdp::Handshake& handshake) override;
  Result<Callee, wire::RejReason> called(const wire::WdpCtl& req,
                                         const wdp::Endpoint& from) override;
  void answered(SessionToken question, const wdp::Handshake& handshake) override;

  // 0: routes say which one.
  uint32_t interface_of(const Gid& local, const Gid& remote) const;
  void enter(wdp::UcConnection& connection, UcLink& link) { links_[&connection] = &link; }
  void leave(Token& token, wdp::UcConnection& connection);

  void close_socket();
  bool rests(const Token& token) const;
  size_t receive(Token& token, size_t calls);
  UcLink* link_of(wdp::UcConnection* connection) const;
  UcLink* link_for(Bytes datagram, const wdp::Endpoint& from) const;
  std::optional<size_t> receive_one(Token& token);
  void note_size(const port::DatagramPort::Received& r);
  wdp::UcConnection* direct_for(Bytes front, const port::DatagramPort::Received& r,
                                PieceList& places) const;
  size_t receive_in_place(Token& token, wdp::UcConnection& connection, const PieceList& places,
                          Bytes seen);
  void deliver(Token& token, Bytes bytes, const port::DatagramPort::Received& r);
  void wait_no_longer(Token& token);
  void settle_now(Token& token);
  void send(Token& token);
  void call_paced(Token& token);
  bool next_train(Token& token);
  void push_train(Token& token);
  void source_lost(Token& token);
  void train_gone(Token& token, bool sent);
  void keep_train();
  void drop_train();
  void refused_as_too_big(Token& token, size_t size);
  void end_if_unused(Token& token);

  DatagramOwner* owner_;
  const std::unique_ptr<port::DatagramPort> socket_;
  const port::DatagramPort::Properties properties_;
  bool open_ = true;  // the socket
  Random& random_;
  wdp::WdpSocket port_;
  std::unordered_map<wdp::UcConnection*, UcLink*> links_;
  std::map<Gid, uint32_t> interfaces_;  // of addresses of IPv6
  IntrusiveList<DatagramSender, SendingTag> sending_;
  IntrusiveList<DatagramSender, SettlingTag> settling_;
  IntrusiveList<DatagramSender, PacedTag> paced_;  // would speak, and may not yet
  Time paced_until_ = Time::never();

  Token* token_ = nullptr;             // of the visit
  bool inside_ = false;                // a visit
  DatagramSender* current_ = nullptr;  // that is being called

  wdp::Train train_;
  bool filling_ = false;                 // train_ is not complete
  DatagramSender* filler_ = nullptr;     // whose train it is; nullptr: the port's, or it has left
  bool fragments_ = false;               // IP may cut up its datagrams
  size_t sent_ = 0;                      // bytes of train_ that the kernel has
  std::vector<IoVec> rest_;              // what it has not
  port::Segmentation segmentation_;      // of what is nobody's
  bool blocked_ = false;                 // waiting for the socket to turn writable
  DatagramSender* waits_for_ = nullptr;  // to post receives
  Time waits_until_ = Time::never();
  std::vector<std::byte> rest_in_;  // of the train that was being delivered
  port::DatagramPort::Received rest_how_;
  unsigned likely_ = 0;    // the next datagrams that may well be large and come alone
  unsigned refusals_ = 0;  // large ones that were looked at in vain, since the last that was not
  unsigned no_looks_ = 0;  // until they are looked at again
  OverrunCount overruns_;
  DropTally drops_;
  RejTally rejections_;
  uint64_t posted_at_poll_ = UINT64_MAX;
  bool spoke_ = false;  // something was sent since something came
};

}  // namespace weft::drive

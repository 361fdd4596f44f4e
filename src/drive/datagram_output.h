// Trains out: whose turn it is, and what the kernel makes of it (docs/design/09, 17). The part of a
// DatagramDriver that sends.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "drive/datagram_sender.h"
#include "drive/train_pool.h"
#include "engine/runtime.h"
#include "port/datagram_port.h"
#include "wdp/wdp_socket.h"

namespace weft::drive {

using SettlingList = IntrusiveList<DatagramSender, SettlingTag>;

// Engine holder only, from inside a visit of the driver unless it says otherwise. What the
// arguments of the constructor refer to has to stay.
class DatagramOutput {
 public:
  // `own`: what WDP says by itself, before any sender's.
  DatagramOutput(port::DatagramPort& socket, const port::DatagramPort::Properties& properties,
                 wdp::WdpSocket& own, CurrentSender& current, TrainPool& trains)
      : socket_(socket), properties_(properties), own_(own), current_(current), trains_(trains) {}

  // See DatagramDriver::set_interface(). At any time.
  void set_interface(const Gid& local, uint32_t interface);
  // The interface by which datagrams between these addresses leave; 0: routes say which. At any
  // time.
  uint32_t interface_of(const Gid& local, const Gid& remote) const;
  // The sender may have something to say. At any time.
  void schedule(DatagramSender& sender) { sending_.push_back(sender); }
  // It is not called any more, and no memory of its program is referred to. At any time.
  void remove(DatagramSender& sender);
  // What waits for the socket is kept as a copy: all, or what is the sender's. At any time.
  void detach_memory();
  void detach_memory(const DatagramSender& sender) {
    if (filler_ == &sender) detach_memory();
  }

  // Sends what there is to send, until the socket is full or the others have their turn. `driver`
  // hears of room in the socket. Each sender that had its turn goes to `asked`.
  void send(Token& token, engine::EventHandler& driver, SettlingList& asked);
  // When a sender whose turn was too early may send.
  Time due() const { return paced_until_; }
  // The socket is writable. False: nothing waited for that.
  bool unblock() { return std::exchange(blocked_, false); }
  // A sender was left in the middle of its train: that does not go out.
  void abandon_filling();
  // Has something been sent since the last call?
  bool spoke_since() { return std::exchange(spoke_, false); }

 private:
  void call_paced(Token& token);
  void send_trains(Token& token, engine::EventHandler& driver, SettlingList& asked);
  bool next_train(Token& token, SettlingList& asked);
  void push_train(Token& token, engine::EventHandler& driver);
  void train_gone(Token& token);
  void drop_train();
  void refused_as_too_big(Token& token, size_t size);

  port::DatagramPort& socket_;
  const port::DatagramPort::Properties& properties_;
  wdp::WdpSocket& own_;
  CurrentSender& current_;
  TrainPool& trains_;
  std::map<Gid, uint32_t> interfaces_;  // of addresses of IPv6
  IntrusiveList<DatagramSender, SendingTag> sending_;
  IntrusiveList<DatagramSender, PacedTag> paced_;  // would send, and may not yet
  Time paced_until_ = Time::never();

  std::unique_ptr<wdp::Train> train_;  // within send(), and while it waits for the socket
  bool filling_ = false;               // train_ is not complete
  DatagramSender* filler_ = nullptr;   // whose train it is; nullptr: WDP's own, or it has left
  bool fragments_ = false;             // IP may cut up its datagrams
  size_t sent_ = 0;                    // bytes of train_ that the kernel has
  std::vector<IoVec> rest_;            // what it has not
  port::Segmentation segmentation_;    // of what is nobody's
  bool blocked_ = false;               // waiting for the socket to turn writable
  bool spoke_ = false;
};

}  // namespace weft::drive

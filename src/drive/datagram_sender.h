// What a DatagramDriver asks of those that send through it.
#pragma once

#include <utility>

#include "base/intrusive_list.h"
#include "config/options.h"
#include "drive/pacer.h"
#include "engine/event_handler.h"
#include "port/datagram_port.h"
#include "wdp/train.h"

namespace weft::drive {

using engine::Token;

// What sends through a driver: a UcLink, a UD queue pair. Engine holder calls, from inside a visit
// of the driver.
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
  friend class DatagramOutput;
  port::Segmentation segmentation_;  // of the way to its peer
  Pacer pacer_;
  bool lacks_receives_ = false;
};

// The sender whose function runs. One that found no memory has left it here.
class CurrentSender {
 public:
  template <class Work>
  void call(DatagramSender& sender, Work&& work) {
    sender_ = &sender;
    work();
    sender_ = nullptr;
  }
  // What is done now is for `sender`; nullptr: for nobody.
  void set(DatagramSender* sender) { sender_ = sender; }
  DatagramSender* take() { return std::exchange(sender_, nullptr); }
  void forget(const DatagramSender& sender) {
    if (sender_ == &sender) sender_ = nullptr;
  }

 private:
  DatagramSender* sender_ = nullptr;
};

}  // namespace weft::drive

// What a DatagramDriver asks of those that send through it.
#pragma once

#include <utility>

#include "base/intrusive_list.h"
#include "config/options.h"
#include "drive/pacer.h"
#include "engine/event_handler.h"
#include "port/datagram_port.h"
#include "wdp/train_source.h"

namespace weft::drive {

using engine::Token;

// What sends through a driver: the link of a UC connection, a UD queue pair. What it says comes
// from its source. Engine holder calls, from inside a visit of the driver.
class DatagramSender : public ListHook<struct SendingTag>,
                       public ListHook<struct SettlingTag>,
                       public ListHook<struct PacedTag> {
 public:
  DatagramSender(const DatagramSender&) = delete;
  DatagramSender& operator=(const DatagramSender&) = delete;
  virtual ~DatagramSender() = default;

  // The visit is over: publish completions, see to the state and to the deadline.
  virtual void settled(Token& token) = 0;
  // It was left in the middle for want of memory: end as little as can be.
  virtual void on_no_memory(Token& token) = 0;

 protected:
  // `fragments`: IP may cut up what it sends.
  explicit DatagramSender(bool fragments) : pacer_(config::options().rate), fragments_(fragments) {}
  // nullptr: it has nothing to say.
  void set_source(wdp::TrainSource* source) { source_ = source; }

 private:
  friend class DatagramDriver;
  friend class DatagramOutput;
  wdp::TrainSource* source_ = nullptr;
  port::Segmentation segmentation_;  // of the way to its peer
  Pacer pacer_;
  const bool fragments_;
  bool lacks_receives_ = false;
};

// The sender whose function runs. One that found no memory has left it here.
class CurrentSender {
 public:
  template <class Work>
  void call(DatagramSender& sender, Work&& work) {
    sender_ = &sender;
    calls_ = true;
    work();
    calls_ = false;
    sender_ = nullptr;
  }
  // What is done now is for `sender`; nullptr: for nobody. Not within call(): a queue pair that
  // makes a channel speak is the one that finds no memory.
  void set(DatagramSender* sender) {
    if (!calls_) sender_ = sender;
  }
  DatagramSender* take() {
    calls_ = false;
    return std::exchange(sender_, nullptr);
  }
  void forget(const DatagramSender& sender) {
    if (sender_ == &sender) sender_ = nullptr;
  }

 private:
  DatagramSender* sender_ = nullptr;
  bool calls_ = false;
};

}  // namespace weft::drive

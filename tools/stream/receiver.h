// `weft stream recv`: listens for senders, keeps the account of each stream, feeds the ring.
//
// Above 400 lines with its source: one thread talks with a sender and another serves its streams,
// and what these two tell each other is the class (reception.cc has the first one's part).
#pragma once

#include <atomic>
#include <condition_variable>
#include <future>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "stream/inlet.h"
#include "stream/report.h"
#include "stream/sink.h"

namespace weft::stream {

struct ReceiverOptions {
  InletOptions inlet;
  RingSpec ring;
  uint32_t hold = 1;
  uint16_t control_port = kControlPort;
  SinkOptions sink;
  ReportOptions report;
  double duration = 0;    // seconds; 0: until a signal
  bool once = false;      // ends when every stream had a sender that ended
  double idle_ms = 1000;  // UDP without control: so much silence ends a sender
};

class Receiver {
 public:
  explicit Receiver(const ReceiverOptions& options);
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  ~Receiver();
  // Until a signal, the end of the duration, or of all senders. The exit status.
  int run();

 private:
  // From the threads of control connections to the one of the lanes.
  struct Begin {
    ConnectedSender sender;
    Control* control = nullptr;  // alive as long as the sender's end is not posted
    std::vector<uint64_t> wishes;
    bool fixed = false;      // it cannot begin with others
    std::vector<bool> anew;  // whose count begins anew
    std::vector<std::optional<uint64_t>> resumed_from;
    std::promise<std::vector<uint64_t>> first;
  };
  struct End {
    uint64_t session = 0;
    std::vector<uint64_t> end;      // empty: the sender is gone without a word
    std::vector<uint64_t> goes_on;  // with these, at once; empty: it does not
    std::promise<nlohmann::json> counts;
  };
  struct Connection {  // a control connection
    std::unique_ptr<Control> control;
    std::thread thread;
    bool answered = false;  // the sender's end: its thread says that and is over
    std::atomic<bool> over{false};
  };
  struct Running {  // a sender's session
    ConnectedSender sender;
    Control* control = nullptr;
    std::unique_ptr<End> end;
    int64_t end_seen_ns = 0;
  };
  using Event = std::variant<std::unique_ptr<Begin>, std::unique_ptr<End>>;

  void listen();
  void serve(Control& control);
  void serve_sender(Control& control);
  void refuse(Control& control, const std::string& reason, bool again);
  void tell_of_refusal(const std::string& sender, const std::string& reason);
  ConnectedSender sender_of(const nlohmann::json& hello) const;
  std::unique_ptr<Begin> begin_of(Control& control, const nlohmann::json& hello);
  void post(Event event);

  void handle_events();
  void note_first_begin();
  void begin(Begin& event);
  void make_room_for(const ConnectedSender& sender);
  void note_end(std::unique_ptr<End> event);
  void look_after_streams(int64_t now_ns);
  void note_served(uint32_t stream);
  void end_silent(size_t stream, int64_t now_ns);
  void tell_of_invalid(size_t stream);
  int64_t quiet_since_of(const Lane& lane) const;
  bool through(const Running& running, int64_t now_ns) const;
  bool anything_waits();
  void receive(int64_t start);
  void end_all();
  void answer(Running& running, nlohmann::json counts);
  void close(Running& running);
  bool all_served() const;
  Snapshot snapshot() const;

  ReceiverOptions options_;
  port::Fd listener_;  // before the ring: the port tells whether such a receiver runs already
  Ring ring_;
  Lanes lanes_;
  port::Fd waker_;
  std::unique_ptr<Inlet> inlet_;
  std::unique_ptr<Sink> sink_;
  Report report_;

  std::mutex mutex_;           // of what follows, up to the blank line
  std::vector<Event> events_;  // in the order in which they came
  std::list<Connection> connections_;
  bool closed_ = false;
  std::string last_refusal_;

  std::vector<std::unique_ptr<Running>> running_;  // of the lanes' thread
  std::vector<bool> served_;                       // streams that had a sender that ended
  std::vector<bool> told_of_invalid_;              // streams
  std::optional<int64_t> first_begin_ns_;          // of any sender
  double cpu_before_ = 0;                          // until then
  int64_t resumed_ns_ = 0;                         // when this thread ran again, and packets waited
  std::atomic<uint64_t> sessions_{0};
  std::atomic<bool> posted_{false};  // there are events
  std::atomic<bool> stop_{false};
  std::thread listening_;
};

}  // namespace weft::stream

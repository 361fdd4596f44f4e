// The runtime of handlers in the simulator: virtual time in the place of threads, epoll and clocks.
// The drivers of production (src/drive) run on it as they do on an engine.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "engine/deadlines.h"
#include "engine/runtime.h"
#include "sim/scheduler.h"

namespace weft::sim {

// What a runtime watches: in the manner of a non-blocking socket, level-triggered.
class Socket {
 public:
  virtual ~Socket() = default;
  virtual bool readable() const = 0;
  virtual bool writable() const = 0;
  // As EPOLLERR or EPOLLHUP.
  virtual bool broken() const { return false; }
};

// One host. All its handlers run in actions of the scheduler, or in run().
class Runtime final : public engine::Runtime {
 public:
  struct Options {
    uint64_t seed = 1;
    // How long output that can wait waits (Engine: 50 us at most).
    Duration defer = std::chrono::microseconds{50};
    // Share of the posts that wait for others, until the next turn.
    double gather = 0;
    // Share of the looks at a readable socket that come unasked (EventHandler::try_receive()).
    double unasked = 0;
  };
  Runtime(Scheduler& scheduler, const Options& options);
  ~Runtime() override;

  // Calls work(token) as the holder, and then looks at what is ready. Not from inside a call of a
  // handler.
  template <class Work>
  void run(Work&& work) {
    engine::Token token = token_of(*this, scheduler_.now());
    running_ = true;
    work(token);
    turn(token);
    running_ = false;
  }
  Time now() const { return scheduler_.now(); }
  Scheduler& scheduler() { return scheduler_; }

  // A number for a socket that handlers can watch. The socket says changed() when it may be ready.
  int open(const Socket& socket);
  void changed();
  void close(int fd);

  // As Engine::retire_memory().
  void retire_memory();

  // --- engine::Runtime
  void add(engine::Token& token, std::unique_ptr<engine::EventHandler> handler, int fd, bool read,
           bool write) override;
  // The handler is deleted with the runtime, so that a test can look at it.
  void remove(engine::Token& token, engine::EventHandler& handler) override;
  void forget(engine::Token& token, engine::EventHandler& handler) override;
  void rewatch(engine::Token& token, engine::EventHandler& handler, int fd, bool read,
               bool write) override;
  void again(engine::Token& token, engine::EventHandler& handler) override;
  void more_to_send(engine::Token& token, engine::EventHandler& handler) override;
  // Nobody polls here: all handlers are told of.
  void ask_memory(engine::Token&, engine::EventHandler&) override {}
  void ask_memory_after(engine::Token&, engine::EventHandler&, const port::PeerWord&) override {}
  bool gather(engine::Token& token, engine::EventHandler& handler) override;
  void defer(engine::Token& token, engine::EventHandler& handler) override;
  void closes_at(engine::Token&, Time when) override { ends_at_ = std::max(ends_at_, when); }
  // A process that ends does so then, by what its handlers have asked for so far.
  Time ends_at() const { return ends_at_; }
  // Bytes on account of which Engine's helper thread may rest.
  using engine::Runtime::take_received;

 private:
  void update_interest(engine::Token& token, engine::EventHandler& handler, bool read,
                       bool write) override;
  void update_deadline(engine::Token& token, engine::EventHandler& handler, Time when) override;

  void turn(engine::Token& token);
  bool visit_ready(engine::Token& token, engine::EventHandler& handler);
  const Socket* socket_of(const engine::EventHandler& handler) const;
  void flush_deferred(engine::Token& token);

  Scheduler& scheduler_;
  const Options options_;
  SeededRandom choices_;
  Alarm alarm_;  // the next turn
  Alarm defer_alarm_;
  bool running_ = false;
  engine::Deadlines deadlines_;
  std::map<int, const Socket*> sockets_;
  int next_fd_ = 3;
  Time ends_at_;
  std::vector<engine::EventHandler*> handlers_;
  std::vector<std::unique_ptr<engine::EventHandler>> owned_;
  IntrusiveList<engine::EventHandler, engine::ReadyTag> again_;
  IntrusiveList<engine::EventHandler, engine::GatheringTag> gathered_;
  IntrusiveList<engine::EventHandler, engine::DeferredTag> deferred_;
};

}  // namespace weft::sim

// The adapter of this process: its engines, its registered memory, its ports. One for the life of
// the process, but for two cases: after fork(2) the child gets a fresh one and the parent's is dead
// there; and a program that has closed its descriptors gets a fresh one when it opens the device
// again.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "observe/counter_memory.h"
#include "verbs/memory_table.h"
#include "verbs/multicast_groups.h"
#include "verbs/ports.h"

namespace weft::verbs {

class Adapter final {
 public:
  static constexpr unsigned kMostEngines = 8;

  // The one of this process; made at the first call, with what `make_bring_up` gives, and anew
  // where the program has closed the descriptors of the one before, which is dead then. Where the
  // system refuses what it takes, the call that was refused, and the log says what would help.
  // Throws std::bad_alloc. Programs come in through cm::adapter().
  static Result<Adapter*, port::SystemError> get(
      const std::function<std::unique_ptr<BringUp>()>& make_bring_up);
  // The one there is, or nullptr. Any thread, exit handlers and children of fork(2) too.
  static Adapter* existing();

  // nullptr: queue pairs are not connected by number.
  BringUp* bring_up() const { return bring_up_.get(); }

  Ports& ports() { return *ports_; }
  MemoryTable& memory() { return memory_; }
  MulticastGroups& groups() { return groups_; }
  // What is counted; of the device, by any thread with add_shared().
  observe::CounterMemory& counters() { return *counters_; }
  engine::Engine& engine(size_t i) { return *engines_[i]; }
  // Engines by turns, so that queue pairs spread over them.
  engine::Engine& next_engine();
  // What next_engine() gives to the calling thread from now on; nullptr: by turns again.
  static void prefer(engine::Engine* engine);

  // Looks at all sockets once. Any thread.
  void progress() {
    for (auto& e : engines_) e->progress();
  }
  // Engine::wait() over all engines.
  int wait(int fd, const std::function<bool()>& ready);
  void expect_sleeper() {
    for (auto& e : engines_) e->expect_sleeper();
  }
  void may_sleep() {
    for (auto& e : engines_) e->may_sleep();
  }
  void forget_sleeper() {
    for (auto& e : engines_) e->forget_sleeper();
  }

  // Says what was put off, before the process exits.
  void flush_at_exit();
  void abandon_in_child();
  // Engine::intact() and Engine::abandon_lost() of all engines.
  bool intact() const;
  void abandon_lost();

 private:
  Adapter();
  Result<Ok, port::SystemError> start(std::unique_ptr<BringUp> bring_up);

  std::unique_ptr<observe::CounterMemory> counters_;  // the engines count in it
  std::vector<std::unique_ptr<engine::Engine>> engines_;
  MemoryTable memory_;
  MulticastGroups groups_;
  std::unique_ptr<BringUp> bring_up_;
  std::unique_ptr<Ports> ports_;
  std::atomic<size_t> turn_{0};
};

}  // namespace weft::verbs

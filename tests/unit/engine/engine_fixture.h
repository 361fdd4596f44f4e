// A real engine with its helper thread. Waits are for events; the long limits are for machines that
// are busy with other things.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/engine.h"

namespace weft::engine {

using namespace std::chrono_literals;

// Counts what it hears, for another thread to wait for.
class Listener final : public EventHandler {
 public:
  struct Heard {
    int ready = 0;
    int deadline = 0;
    int doorbell = 0;
    int idle = 0;
    int gathered = 0;
    int retired = 0;
    int deleted = 0;
  };
  struct Diary {
    std::mutex lock;
    std::condition_variable news;
    Heard heard;
    template <class F>
    void note(F&& f) {
      {
        const std::lock_guard guard{lock};
        f(heard);
      }
      news.notify_all();
    }
    template <class F>
    bool await(F&& f) {
      std::unique_lock guard{lock};
      return news.wait_for(guard, 20s, [&] { return f(heard); });
    }
    Heard now() {
      const std::lock_guard guard{lock};
      return heard;
    }
  };
  explicit Listener(Diary& diary) : diary_(diary) {}
  ~Listener() override {
    diary_.note([](Heard& h) { ++h.deleted; });
  }
  void on_ready(Token& token, bool readable, bool) override {
    char byte;
    // A socket that is not read stays readable.
    if (readable && fd >= 0 && !keep_bytes) {
      while (::recv(fd, &byte, 1, MSG_DONTWAIT) == 1) {
      }
    }
    if (ask_again) token.runtime().again(token, *this);
    diary_.note([](Heard& h) { ++h.ready; });
  }
  void on_deadline(Token&) override {
    diary_.note([](Heard& h) { ++h.deadline; });
  }
  void on_doorbell(Token& token) override {
    if (remove_on_bell) token.runtime().remove(token, *this);
    if (other != nullptr) {
      other->other = nullptr;
      token.runtime().remove(token, *std::exchange(other, nullptr));
    }
    diary_.note([](Heard& h) { ++h.doorbell; });
  }
  void on_gathered(Token&) override {
    diary_.note([](Heard& h) { ++h.gathered; });
  }
  void on_idle(Token&) override {
    diary_.note([](Heard& h) { ++h.idle; });
  }
  void on_memory_retired(Token&) override {
    diary_.note([](Heard& h) { ++h.retired; });
  }
  void abandon_in_child() override {}

  int fd = -1;
  bool keep_bytes = false;
  bool ask_again = false;
  bool remove_on_bell = false;
  Listener* other = nullptr;  // removed on the bell

 private:
  Diary& diary_;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() {
    auto e = Engine::create(0);
    EXPECT_TRUE(e.ok());
    if (e.ok()) engine = std::move(*e);
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  }
  ~EngineTest() override {
    engine.reset();
    ::close(sockets[0]);
    ::close(sockets[1]);
  }
  Listener& add(bool watch_socket) {
    auto l = std::make_unique<Listener>(diary);
    Listener& handler = *l;
    handler.fd = watch_socket ? sockets[0] : -1;
    Hold h = engine->hold();
    engine->add(h.token(), std::move(l), handler.fd, watch_socket, false);
    return handler;
  }
  void write_byte() { ASSERT_EQ(::send(sockets[1], "x", 1, 0), 1); }

  using Heard = Listener::Heard;
  Listener::Diary diary;
  std::unique_ptr<Engine> engine;
  int sockets[2] = {-1, -1};
};

}  // namespace weft::engine

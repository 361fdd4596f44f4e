// Who waits for a connection, and what each of them is told: threads that sleep in a call, by the
// mirror's becoming readable or writable; poll(2), select(2) and epoll by the same; those who wait
// for urgent data, by EPOLLPRI and SIGURG. Completions are taken by the loop as long as one of them
// relies on it (Session::want). Where the program has both ends of the connection, who waits at the
// other one is told by the call that sends.
//
// With the session's lock, but for what is said to be for any thread, which takes it itself.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "sdp/loop/loop.h"
#include "sdp/rdma/session.h"
#include "sdp/sockets/epoll_set.h"
#include "sdp/sockets/epolled.h"
#include "sdp/sockets/in_place.h"
#include "sdp/sockets/look.h"
#include "sdp/sockets/once.h"
#include "sdp/sockets/program_end.h"
#include "sdp/sockets/readiness.h"
#include "sdp/sockets/urgent_shown.h"

namespace weft::sdp {

class Waiting {
 public:
  // `inner` is the library's end of the mirror. `on_error` is called with the lock, on any thread,
  // when the session has an error: somebody is to call show_error() on the loop's thread.
  Waiting(Loop& loop, Session& session, const ProgramEnd& end, File inner,
          std::function<void()> on_error);
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  Readiness& mirror() { return mirror_; }
  // The loop's thread: nothing is shown by the mirror any more.
  void close_mirror();
  // What the last looks of calls on the connection were worth.
  LookTime& look_time() { return look_time_; }

  // Something has come, or may go.
  void on_news();
  // The same before the caller goes elsewhere, where the library still has the connection.
  void keep_going();

  // A thread begins to sleep in a call; `takes`: in one that takes what comes.
  void begin_sleep(bool takes);
  void end_sleep(bool takes);

  // From now on the mirror shows whether it is ready, for somebody may wait for it by poll(2).
  void watch();
  bool watched() const { return watched_; }
  // Any thread: the program waits for `fd` by poll(2) or the like, or also for the peer's end in
  // front of data.
  void about_to_wait(int fd, bool for_end = false);
  // Any thread: it waits for this connection and for others, and looks before it sleeps (recent.h).
  void looked_at();
  // Any thread. Takes completions; true if the mirror shows news.
  bool look_for_news();

  void hide_room(int fd);
  void drop_tokens(int fd);
  // The loop's thread, without the lock.
  void show_error();
  // A call has told of the error: the mirror does not tell it again, and shows the end at once.
  void on_error_told(int fd);

  void show_urgent();
  // Any thread: the program may have chosen who gets the signals of `fd` (F_SETOWN, O_ASYNC).
  void take_owner(int fd);
  // Any thread: a call of epoll_ctl(2) that succeeded.
  void registered(int epoll, int operation, int fd, const epoll_event* event);
  // Any thread: one that is made, see Epolled.
  std::optional<int> control(EpollSet* set, int operation, int fd, const epoll_event& event);
  void control_ended();
  // Any thread, of the set: see Epolled.
  bool collect(uint64_t age, EpollSet& set, epoll_event& event);
  bool set_right(EpollSet& set, epoll_event& event);
  void tell_kernel(EpollSet& set);
  // Others than one epoll wait for it: the kernel is told of all from now on.
  void leave_epoll() { epolled_.make_plain(); }
  // Any thread: one of them is about to, by poll(2) or select(2), or by another descriptor.
  void about_to_wait_elsewhere();
  // Any thread: one is about to ask poll(2) or select(2) for urgent data as well. True: it is
  // there.
  bool urgent_waits_for_poll();
  // Nobody is shown urgent data any more. Any thread.
  void close_urgent() { urgent_.close(); }

  // The other end of the connection is this process's, too.
  void is_peer_of(std::weak_ptr<Waiting> other) { peer_here_ = std::move(other); }
  // A program that talks to itself finds at once what it has sent, as with TCP. Lets go of the
  // lock.
  void show_to_peer_here(SessionLock& lock);

 private:
  void show_and_want();
  void show_state();

  Loop& loop_;
  Session& session_;
  const ProgramEnd& end_;
  const std::function<void()> on_error_;
  Readiness mirror_;  // closed once it shows an error
  Epolled epolled_{session_, end_, mirror_};
  LookTime look_time_;
  std::atomic<bool> error_{false};  // the session has one, which the loop is to show
  Once error_shown_;
  std::atomic<bool> watched_{false};       // somebody may wait for it by poll(2)
  std::atomic<bool> asks_for_end_{false};  // somebody of those, for the end in front of data
  std::atomic<bool> looked_at_{false};     // by a thread of those
  std::atomic<bool> elsewhere_{false};     // by others than one epoll
  bool signals_ = false;                   // somebody may wait for it by signals
  int sleepers_ = 0;                       // threads that sleep in a call
  int takers_ = 0;                         // of those, in one that takes what comes
  UrgentShown urgent_;
  std::atomic<bool> asks_for_urgent_{false};  // somebody has, by poll(2) or select(2)
  std::weak_ptr<Waiting> peer_here_;
};

}  // namespace weft::sdp

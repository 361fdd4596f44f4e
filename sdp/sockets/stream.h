// What a program sees of a connection: calls on its descriptor, which work on the session without
// the kernel (design/27, "Direct"), until somebody who cannot do so has the descriptor, too: then
// the kernel's calls work on the mirror, and a relay moves the bytes.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "sdp/loop/loop.h"
#include "sdp/rdma/fabric.h"
#include "sdp/sockets/in_place.h"
#include "sdp/sockets/mirror_calls.h"
#include "sdp/sockets/offers.h"
#include "sdp/sockets/readiness.h"
#include "sdp/sockets/relay.h"
#include "sdp/sockets/urgent_shown.h"
#include "sdp/sockets/way_chooser.h"
#include "sdp/sockets/zero_copy.h"

namespace weft::sdp {

// Above 400 lines with its source: a call that begins in one way may end in another.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // `inner` is the library's end of the mirror, `cookie` that of its other end. `ended` is called
  // on the loop's thread when the program has no descriptor any more; the shadow stays until then.
  Stream(Loop& loop, Fabric& fabric, std::shared_ptr<Session> session, File inner,
         const File& shadow, uint64_t cookie, std::function<void()> ended);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  // The loop's thread, once.
  void start();

  // The other end of the connection is this process's, too.
  void is_peer_of(const std::shared_ptr<Stream>& other);
  // The program has it, which the peer waits for (spec/sdp 3.4).
  void greet();

  // Calls of the program on `fd`, a descriptor of the mirror's other end. Bytes, or -1 with errno.
  // Nothing: the call is the kernel's to answer. `flags` are those of recv(2) and send(2).
  std::optional<ssize_t> receive(int fd, std::span<const iovec> to, int flags);
  std::optional<ssize_t> send(int fd, std::span<const iovec> from, int flags);
  std::optional<ssize_t> send_file(int fd, int file, off_t* offset, size_t count);
  // Before the kernel does the same to the mirror, which wakes those who wait for it. False with
  // errno: that is what the call comes to.
  bool shutdown(int fd, int how);
  // SO_SNDBUF and SO_RCVBUF are those of the shadow.
  void take_buffer_sizes();
  // SO_ZEROCOPY, of the shadow as well.
  void take_zero_copy();
  // The oldest report of MSG_ZEROCOPY, and where poll(2) sees that there is one.
  std::optional<ZeroCopy::Report> take_report();
  int reports_at() const { return zero_copy_.shown_at(); }
  // SO_OOBINLINE; the second one is that of the shadow.
  void set_urgent_in_line(int fd, bool in_line);
  void take_urgent_in_line();
  // SIOCATMARK. Nothing: the kernel knows.
  std::optional<bool> at_mark();
  // The program may have chosen who gets the signals of `fd` (F_SETOWN, O_ASYNC).
  void take_owner(int fd);
  // SO_ERROR, which is told once.
  std::optional<int> take_error(int fd);
  // What TCP_INFO has of a TCP connection in this state: TCP_ESTABLISHED and so on.
  int tcp_state();
  // SDP_ZCOPY_THRESH.
  void set_threshold(ZcopyThreshold threshold);
  ZcopyThreshold threshold();
  // Bytes that receive() would find; of FIONREAD.
  std::optional<int> available();

  // The program waits for `fd` by poll(2) or the like: from now on the mirror shows whether it is
  // ready.
  void about_to_wait(int fd);
  bool watched() const { return watched_; }
  // A call of epoll_ctl(2) that succeeded.
  void registered(int epoll, int operation, int fd, const epoll_event* event);
  // A thread is about to ask poll(2) or select(2) for urgent data as well. True: it is there.
  bool urgent_waits_for_poll();
  // What such a call has to say of it, once there was urgent data. Nothing: the kernel knows.
  struct Polled {
    bool readable = false;
    bool urgent = false;
  };
  std::optional<Polled> polled(int fd);
  // The calling thread waits for it and for others, and looks before it sleeps (recent.h).
  void looked_at();
  // Takes completions; true if the mirror shows news.
  bool look_for_news();

  // The program has closed its last descriptor of it, that the library knows of.
  void on_closed();
  // From now on the kernel's calls work on it, for whoever has it.
  void relay_from_now(int fd);

 private:
  using Lock = SessionLock;
  void on_news();
  void watch();
  void on_inner(uint32_t events);
  void show_state();
  bool is_over() const;
  void show_to_peer_here(Lock& lock);
  void show_error();
  int descriptor(int fd) const;
  void hide_room(int fd);
  void drop_tokens(int fd);
  bool blocks(int fd, int flags) const;
  void put_byte_into_inner(int fd);
  void on_error_told(int fd);
  void show_and_want();
  void keep_going();
  // `ran`: since the call looked at first.
  bool wait_for_data(Lock& lock, int fd, int flags, const Handlers::Ran& ran);
  bool wait_for_room(Lock& lock, int fd, const Handlers::Ran& ran, SleepForRoom& sleep);
  std::optional<ssize_t> wait_to_receive(Lock& lock, int fd, int flags, bool has_some);
  size_t receive_offered(Lock& lock, MutableBytes to);
  size_t receive_to_offer(Lock& lock, int fd, int flags, MutableBytes to);
  void wait_for_all(Lock& lock, int fd, int flags, size_t wanted);
  bool may_take(int flags) const;
  std::optional<ssize_t> receive_urgent(int fd, std::span<const iovec> to, int flags);
  bool leave_out_urgent(Lock& lock, const Handlers::Ran& ran);
  void show_urgent();
  void put_urgent_in_line(int fd);
  ssize_t peek(std::span<const iovec> to);
  std::optional<ssize_t> send_relayed(int fd, std::span<const iovec> from, int flags);
  void note_zero_copy(int flags, bool copied);
  void start_relay();
  void end();

  Loop& loop_;
  Fabric& fabric_;
  const std::shared_ptr<Session> session_;
  const int shadow_;
  const uint64_t cookie_;
  std::function<void()> ended_;
  std::unique_ptr<Relay> relay_;
  std::atomic<bool> relayed_{false};
  WayChooser way_{ZcopyThreshold::of_process()};
  Offers offers_{OfferThreshold::of_process()};
  LookTime look_time_;
  std::atomic<bool> looked_at_{false};  // by a thread of those
  // With the session's lock.
  Readiness mirror_;                  // closed once it shows an error
  std::atomic<bool> watched_{false};  // somebody may wait for it by poll(2)
  int waiting_ = 0;                   // threads that sleep in a call
  int takers_ = 0;                    // of those, in one that takes what comes
  UrgentShown urgent_;
  std::atomic<bool> asks_for_urgent_{false};  // somebody has, by poll(2) or select(2)
  bool signals_ = false;                      // somebody may wait for it by signals
  ZeroCopy zero_copy_;
  std::weak_ptr<Stream> peer_here_;
  bool shut_ = false;  // by the program, for reading
  bool shut_for_writing_ = false;
  bool ending_ = false;
};

}  // namespace weft::sdp

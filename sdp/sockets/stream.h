// What a program sees of a connection: calls on its descriptor, which work on the session without
// the kernel (design/27, "Direct"), until somebody who cannot do so has the descriptor, too: then
// the kernel's calls work on the mirror, and a relay moves the bytes. This ties the parts together,
// and has the beginning and the end of them: receiving.h and sending.h move data, urgent_data.h has
// what is urgent of it, waiting.h tells those who wait, program_end.h knows the program's
// descriptors.
//
// Any thread, without the session's lock, unless it is said.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "sdp/loop/loop.h"
#include "sdp/rdma/fabric.h"
#include "sdp/sockets/program_end.h"
#include "sdp/sockets/receiving.h"
#include "sdp/sockets/relay.h"
#include "sdp/sockets/sending.h"
#include "sdp/sockets/urgent_data.h"
#include "sdp/sockets/waiting.h"

namespace weft::sdp {

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // `inner` is the library's end of the mirror, `cookie` that of its other end. `ended` is called
  // on the loop's thread when the program has no descriptor any more; the shadow stays until then.
  static std::shared_ptr<Stream> make(Loop& loop, Fabric& fabric, std::shared_ptr<Session> session,
                                      File inner, const File& shadow, uint64_t cookie,
                                      std::function<void()> ended);
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
  std::optional<ssize_t> send(int fd, std::span<const iovec> from, int flags) {
    return sending_.send(fd, from, flags);
  }
  // Before the kernel does the same to the mirror, which wakes those who wait for it. False with
  // errno: that is what the call comes to.
  bool shutdown(int fd, int how);
  // It ends at once, for its peer by a reset.
  void reset();
  // SO_SNDBUF and SO_RCVBUF are those of the shadow.
  void take_buffer_sizes();
  // SO_KEEPALIVE and what belongs to it are those of the shadow, too. Needs memory.
  void take_keepalive();
  // SO_ERROR, which is told once.
  std::optional<int> take_error(int fd);
  // A call that has received something leaves the error that it met then to the next one.
  void leave_error(int error);
  // What TCP_INFO has of a TCP connection in this state: TCP_ESTABLISHED and so on.
  int tcp_state();

  // Other calls of the program, each at the part that it is about.
  Receiving& receiving() { return receiving_; }
  Sending& sending() { return sending_; }
  UrgentData& urgent() { return urgent_; }
  Waiting& waiting() { return waiting_; }

  // The program has closed its last descriptor of it, that the library knows of. Waits as long as
  // SO_LINGER says.
  void on_closed();
  // The loop's thread: no process has a descriptor of it, as far as is known.
  bool ends() const;
  // The kernel's calls work on it.
  bool relayed() const { return end_.relayed(); }
  // From now on they do, for whoever has it.
  void relay_from_now(int fd);

 private:
  Stream(Loop& loop, Fabric& fabric, std::shared_ptr<Session> session, File inner,
         const File& shadow, uint64_t cookie, std::function<void()> ended);
  void on_inner(uint32_t events);
  bool is_over() const;
  void linger(std::chrono::seconds most);
  void start_relay();
  void end();

  Loop& loop_;
  Fabric& fabric_;
  const std::shared_ptr<Session> session_;
  const int shadow_;
  // What the loop is to do once, which is not to fail for want of memory then.
  Loop::Ready ended_;
  Loop::Ready show_error_;
  Loop::Ready begin_relay_;
  Loop::Ready end_soon_;
  std::unique_ptr<Relay> relay_;
  ProgramEnd end_;
  Waiting waiting_;
  UrgentData urgent_;
  Receiving receiving_;
  Sending sending_;
};

}  // namespace weft::sdp

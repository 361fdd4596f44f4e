#include "sdp/preload/error_queue.h"

#include <linux/errqueue.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/guarded.h"
#include "sdp/sockets/library.h"
#include "sdp/sockets/real.h"

namespace weft::sdp {
namespace {

// As the kernel has them on a socket of one family: who is to blame is nobody.
struct Report4 {
  sock_extended_err error{};
  sockaddr_in offender{};
};
struct Report6 {
  sock_extended_err error{};
  sockaddr_in6 offender{};
};

bool is_ipv6(int fd) {
  Library* library = Library::existing();
  const auto names = library != nullptr ? library->names(fd) : std::nullopt;
  int family = AF_INET;
  socklen_t size = sizeof family;
  if (names) (void)real().getsockopt(names->shadow, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return family == AF_INET6;
}

// As put_cmsg() of the kernel: what does not fit is cut off. False: the memory is not there.
bool put_control(msghdr& message, int level, int type, const void* data, size_t size) {
  message.msg_flags = MSG_ERRQUEUE;
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(Report6))]{};
  const size_t room = message.msg_control == nullptr ? 0 : message.msg_controllen;
  const size_t whole = CMSG_LEN(size);
  if (room < whole) message.msg_flags |= MSG_CTRUNC;
  if (room < sizeof(cmsghdr)) {
    message.msg_controllen = 0;
    return true;
  }
  cmsghdr header{};
  header.cmsg_len = std::min(whole, room);
  header.cmsg_level = level;
  header.cmsg_type = type;
  std::memcpy(control, &header, sizeof header);
  std::memcpy(control + CMSG_LEN(0), data, size);
  const size_t copied = std::min(CMSG_SPACE(size), room);
  message.msg_controllen = copied;
  return copy_guarded(message.msg_control, control, copied);
}

}  // namespace

ssize_t receive_report(Stream& stream, int fd, msghdr* message) {
  const auto report = stream.sending().take_report();
  if (!report) {
    errno = EAGAIN;
    return -1;
  }
  sock_extended_err error{};
  error.ee_origin = SO_EE_ORIGIN_ZEROCOPY;
  error.ee_code = report->copied ? SO_EE_CODE_ZEROCOPY_COPIED : 0;
  error.ee_info = report->first;
  error.ee_data = report->last;
  message->msg_namelen = 0;
  bool good = false;
  if (is_ipv6(fd)) {
    const Report6 told{.error = error};
    good = put_control(*message, SOL_IPV6, IPV6_RECVERR, &told, sizeof told);
  } else {
    const Report4 told{.error = error};
    good = put_control(*message, SOL_IP, IP_RECVERR, &told, sizeof told);
  }
  if (good) return 0;
  errno = EFAULT;
  return -1;
}

}  // namespace weft::sdp

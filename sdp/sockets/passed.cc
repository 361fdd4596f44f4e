#include "sdp/sockets/passed.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace weft::sdp {
namespace {

union Passed {
  cmsghdr header;
  std::array<char, CMSG_SPACE(kMostPassed * sizeof(int))> bytes;
};

}  // namespace

bool pass(int socket, Bytes message, std::array<int, kMostPassed> files) {
  iovec bytes{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  Passed passed{};
  const auto end = std::find_if(files.begin(), files.end(), [](int fd) { return fd < 0; });
  const size_t size = static_cast<size_t>(end - files.begin()) * sizeof(int);
  if (size > 0) {
    header.msg_control = passed.bytes.data();
    header.msg_controllen = CMSG_SPACE(size);
    passed.header = {.cmsg_len = CMSG_LEN(size), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    std::memcpy(CMSG_DATA(&passed.header), files.data(), size);
  }
  return ::sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
}

ssize_t take_passed(int socket, MutableBytes message, std::array<File, kMostPassed>& files) {
  iovec bytes{message.data(), message.size()};
  Passed passed{};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = passed.bytes.data();
  header.msg_controllen = passed.bytes.size();
  const ssize_t got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  const cmsghdr* one = got >= 0 ? CMSG_FIRSTHDR(&header) : nullptr;
  if (one == nullptr || one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) return got;
  const size_t count = std::min((one->cmsg_len - CMSG_LEN(0)) / sizeof(int), kMostPassed);
  for (size_t i = 0; i < count; ++i) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(one) + i * sizeof fd, sizeof fd);
    files[i].reset(fd);
  }
  return got;
}

}  // namespace weft::sdp

// What the barest program gets out of a TCP connection that carries messages in FPDUs, as RC does:
// blocking calls, FPDUs whose places both sides know beforehand, many of them a sendmsg(2), their
// CRC taken where the data lies.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "bench/region.h"
#include "bench/tcp_socket.h"
#include "bench/work.h"
#include "kit/clock.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

constexpr uint64_t kMostPayload = 61'440;  // of an FPDU; weft's own choice (design/16)
constexpr size_t kHeader = 16;             // length field and tagged DDP header
constexpr size_t kTrailer = 4;
constexpr size_t kBatch = 16;  // FPDUs of a sendmsg(2)
constexpr size_t kPieces = 3;  // of an FPDU: header, payload, trailer

struct Frame {
  std::array<std::byte, kHeader> header{};
  std::array<std::byte, kTrailer> trailer{};
};

uint32_t crc_of(const Frame& frame, Bytes payload) {
  Crc32c crc;
  crc.update(frame.header);
  crc.update(payload);
  return crc.value();
}

// Goes on behind the first `n` bytes.
std::span<iovec> behind(std::span<iovec> pieces, size_t n) {
  while (!pieces.empty() && n >= pieces.front().iov_len) {
    n -= pieces.front().iov_len;
    pieces = pieces.subspan(1);
  }
  if (n > 0) {
    iovec& piece = pieces.front();
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + n;
    piece.iov_len -= n;
  }
  return pieces;
}

class TcpFpdus final : public Work {
 public:
  explicit TcpFpdus(const Order& order)
      : order_(order), region_(order.spec.size), cursor_(region_) {
    if (order.role == Role::initiator) region_.fill();
  }

  void connect(const Channel& peer) override {
    fd_ = connect_tcp(order_, peer);
    congestion_ = congestion_of(fd_.get());
  }
  void clear() override {
    if (order_.role == Role::target) region_.clear();
  }

  Done initiate(const Phase& phase) override;
  void serve(const Phase& phase) override;

  bool intact(uint64_t first, uint64_t count) const override {
    return order_.role == Role::initiator || region_.holds(first, count);
  }
  std::string congestion() const override { return congestion_; }

 private:
  void send_message();
  void flush();
  bool receive_message();
  bool receive_fpdu(std::byte* place, uint64_t size);

  const Order order_;
  Region region_;
  Cursor cursor_;
  port::Fd fd_;
  std::string congestion_;
  std::array<Frame, kBatch> frames_;
  std::array<iovec, kBatch * kPieces> pieces_;
  size_t gathered_ = 0;  // FPDUs
};

Done TcpFpdus::initiate(const Phase& phase) {
  const int64_t start = kit::now_ns();
  const int64_t end = start + phase.duration_ns;
  uint64_t messages = 0;
  while (phase.warm_up ? messages < phase.messages : kit::now_ns() < end) {
    send_message();
    ++messages;
  }
  flush();
  if (!phase.warm_up) {
    // As with a completion, the time ends when all is at the peer.
    ::shutdown(fd_.get(), SHUT_WR);
    std::byte nothing{};
    (void)receive_some(fd_.get(), &nothing, 1, Wait::event);
  }
  return {.messages = messages, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
}

void TcpFpdus::send_message() {
  std::byte* const message = region_.data() + cursor_.offset();
  for (uint64_t at = 0; at < order_.spec.size; at += kMostPayload) {
    const uint64_t size = std::min(kMostPayload, order_.spec.size - at);
    Frame& frame = frames_[gathered_];
    const std::span<iovec> pieces = std::span{pieces_}.subspan(gathered_ * kPieces, kPieces);
    store_be<uint16_t>(frame.header.data(), static_cast<uint16_t>(kHeader - 2 + size));
    if (order_.spec.crc) store_le32(frame.trailer.data(), crc_of(frame, {message + at, size}));
    pieces[0] = {frame.header.data(), kHeader};
    pieces[1] = {message + at, size};
    pieces[2] = {frame.trailer.data(), kTrailer};
    if (++gathered_ == kBatch) flush();
  }
  cursor_.advance();
}

void TcpFpdus::flush() {
  std::span<iovec> left = std::span{pieces_}.first(gathered_ * kPieces);
  gathered_ = 0;
  while (!left.empty()) {
    msghdr header{};
    header.msg_iov = left.data();
    header.msg_iovlen = left.size();
    const ssize_t sent = ::sendmsg(fd_.get(), &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) throw kit::system_failure("sendmsg");
    left = behind(left, static_cast<size_t>(sent));
  }
}

void TcpFpdus::serve(const Phase& phase) {
  for (uint64_t n = 0; !phase.warm_up || n < phase.messages; ++n) {
    if (!receive_message()) break;
  }
  if (!phase.warm_up) fd_.reset();
}

// False at the end of the stream.
bool TcpFpdus::receive_message() {
  std::byte* const message = region_.data() + cursor_.offset();
  for (uint64_t at = 0; at < order_.spec.size; at += kMostPayload) {
    if (!receive_fpdu(message + at, std::min(kMostPayload, order_.spec.size - at))) return false;
  }
  cursor_.advance();
  return true;
}

bool TcpFpdus::receive_fpdu(std::byte* place, uint64_t size) {
  Frame frame;
  std::array<iovec, kPieces> pieces{
      {{frame.header.data(), kHeader}, {place, size}, {frame.trailer.data(), kTrailer}}};
  for (std::span<iovec> left = pieces; !left.empty();) {
    msghdr header{};
    header.msg_iov = left.data();
    header.msg_iovlen = left.size();
    const ssize_t received = ::recvmsg(fd_.get(), &header, MSG_WAITALL);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) throw kit::system_failure("recvmsg");
    if (received == 0) return false;
    left = behind(left, static_cast<size_t>(received));
  }
  if (order_.spec.crc && crc_of(frame, {place, size}) != load_le32(frame.trailer.data())) {
    throw kit::Failure{"an FPDU has a wrong CRC"};
  }
  return true;
}

}  // namespace

std::unique_ptr<Work> make_tcp_fpdus(const Order& order) {
  return std::make_unique<TcpFpdus>(order);
}

}  // namespace weft::bench

// The chunk test over a plain TCP socket: a send(2) for each piece, a note behind them, a note
// back.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <span>

#include "bench/chunks.h"
#include "bench/tcp_socket.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

std::byte* bytes_of(Note& note) {
  return reinterpret_cast<std::byte*>(&note);
}
const std::byte* bytes_of(const Note& note) {
  return reinterpret_cast<const std::byte*>(&note);
}

// Fills the places, none of which is empty; with one system call where that is enough.
void receive_into(int fd, std::span<iovec> places) {
  while (!places.empty()) {
    msghdr header{};
    header.msg_iov = places.data();
    header.msg_iovlen = places.size();
    const ssize_t n = ::recvmsg(fd, &header, MSG_WAITALL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw kit::system_failure("recvmsg");
    if (n == 0) throw kit::Failure{"the peer closed the connection"};
    for (auto left = static_cast<size_t>(n); left > 0;) {
      iovec& place = places.front();
      const size_t here = std::min(left, place.iov_len);
      place.iov_base = static_cast<std::byte*>(place.iov_base) + here;
      place.iov_len -= here;
      left -= here;
      if (place.iov_len == 0) places = places.subspan(1);
    }
  }
}

class TcpChunks final : public Work {
 public:
  explicit TcpChunks(const Order& order)
      : order_(order), region_(order.spec.size, kChunkBuffers), proof_(region_) {
    if (order.role == Role::initiator) region_.fill();
  }

  void connect(const Channel& peer) override {
    fd_ = connect_tcp(order_, peer);
    congestion_ = congestion_of(fd_.get());
  }
  void clear() override {
    if (order_.role == Role::target) region_.clear();
  }
  Done initiate(const Phase& phase) override {
    return send_chunks(
        phase, next_, [this](uint64_t chunk, bool last) { fill(chunk, last); },
        [this](uint64_t chunk) { await_answer(chunk); });
  }
  void serve(const Phase& phase) override {
    take_chunks(
        phase, next_, proof_, [this](uint64_t chunk) { return await_note(chunk); },
        [this](const Note& note) { send_all(fd_.get(), bytes_of(note), sizeof note); });
  }
  bool intact(uint64_t first, uint64_t count) const override {
    return order_.role == Role::initiator || proof_.intact(first, count);
  }
  std::string congestion() const override { return congestion_; }

 private:
  std::byte* buffer(uint64_t chunk) const {
    return region_.data() + chunk % kChunkBuffers * region_.slot_size();
  }
  // The kernel may join a piece with what follows: the note does, at once.
  void fill(uint64_t chunk, bool last) {
    for (uint64_t at = 0; at < order_.spec.size; at += order_.spec.piece) {
      send_all(fd_.get(), buffer(chunk) + at, std::min(order_.spec.piece, order_.spec.size - at),
               MSG_MORE);
    }
    const Note note{.chunk = chunk, .last = last ? 1U : 0U};
    send_all(fd_.get(), bytes_of(note), sizeof note);
  }
  void await_answer(uint64_t chunk) {
    Note note;
    std::array<iovec, 1> place{{{bytes_of(note), sizeof note}}};
    receive_into(fd_.get(), place);
    expect_chunk(note, chunk);
  }
  Note await_note(uint64_t chunk) {
    Note note;
    std::array<iovec, 2> places{{{buffer(chunk), order_.spec.size}, {bytes_of(note), sizeof note}}};
    receive_into(fd_.get(), places);
    return note;
  }

  const Order order_;
  Region region_;
  ChunkProof proof_;
  uint64_t next_ = 0;
  port::Fd fd_;
  std::string congestion_;
};

}  // namespace

std::unique_ptr<Work> make_tcp_chunks(const Order& order) {
  return std::make_unique<TcpChunks>(order);
}

}  // namespace weft::bench

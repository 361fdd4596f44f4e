// Two threads that send large pieces on one connection, or receive them. Prints the same by TCP and
// by SDP.
//
//   sdp_two_threads ADDRESS

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "tests/sdp/ends.h"

namespace {

constexpr size_t kPiece = 256 << 10;
constexpr int kPieces = 200;
constexpr unsigned kOwn = 127;  // values of a thread's own, prime to the sizes

using Counts = std::array<size_t, 256>;

// The first one's bytes are below 128, the other one's are not, so that they can be told from each
// other wherever one call meets the other.
void send_own(int fd, unsigned thread) {
  std::vector<char> bytes(kPiece);
  size_t next = 0;
  for (int piece = 0; piece < kPieces; ++piece) {
    for (char& byte : bytes) byte = static_cast<char>(next++ % kOwn + 128 * thread);
    must(send(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(kPiece), "send");
  }
}

void senders(const char* address) {
  const Ends ends = connection(address);
  std::thread first{send_own, ends.client, 0};
  std::thread second{send_own, ends.client, 1};
  std::vector<unsigned char> bytes(100'000);
  std::array<size_t, 2> received{};
  size_t wrong = 0;
  while (received[0] + received[1] < 2 * kPieces * kPiece) {
    const ssize_t n = recv(ends.server, bytes.data(), bytes.size(), 0);
    must(n > 0, "recv");
    for (ssize_t i = 0; i < n; ++i) {
      const unsigned byte = bytes[static_cast<size_t>(i)];
      size_t& count = received[byte / 128];
      if (byte % 128 != count++ % kOwn) ++wrong;
    }
  }
  first.join();
  second.join();
  std::printf("senders: %zu and %zu bytes, wrong: %zu\n", received[0], received[1], wrong);
}

unsigned char byte_at(size_t i) {
  return static_cast<unsigned char>(i * 2654435761U >> 13);
}

// Each piece is one of the stream, wherever it comes from.
void receive_some(int fd, Counts& counts) {
  std::vector<unsigned char> bytes(kPiece);
  for (ssize_t n = 0; (n = recv(fd, bytes.data(), bytes.size(), 0)) > 0;) {
    for (ssize_t i = 0; i < n; ++i) ++counts[bytes[static_cast<size_t>(i)]];
  }
}

void receivers(const char* address) {
  const Ends ends = connection(address);
  std::array<Counts, 2> counts{};
  std::thread first{receive_some, ends.server, std::ref(counts[0])};
  std::thread second{receive_some, ends.server, std::ref(counts[1])};
  std::vector<char> bytes(kPiece);
  Counts sent{};
  size_t next = 0;
  for (int piece = 0; piece < kPieces; ++piece) {
    for (char& byte : bytes) {
      const unsigned char value = byte_at(next++);
      ++sent[value];
      byte = static_cast<char>(value);
    }
    must(send(ends.client, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(kPiece), "send");
  }
  (void)shutdown(ends.client, SHUT_WR);
  first.join();
  second.join();
  for (size_t value = 0; value < sent.size(); ++value) {
    sent[value] -= counts[0][value] + counts[1][value];
  }
  std::printf("receivers: %s\n", sent == Counts{} ? "each byte once" : "not what was sent");
}

}  // namespace

int main(int arguments, char** argument) {
  if (arguments != 2) return 2;
  senders(argument[1]);
  receivers(argument[1]);
  return 0;
}

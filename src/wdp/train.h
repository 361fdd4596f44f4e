// What goes to the kernel in one sendmsg: one datagram, or a train of them for UDP_SEGMENT, all of
// one size but the last, which may be shorter (spec/wdp 2.7). Headers and small payloads stand in a
// staging area, large payloads are referred to.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/io_vec.h"
#include "wdp/endpoint.h"
#include "wire/wdp_common.h"

namespace weft::wdp {

// Belongs to one session or queue pair at a time while it has bytes in it. Memory that is referred
// to must stay as it is until the train is empty again, or detached.
class Train {
 public:
  static constexpr size_t kMostDatagrams = 64;
  // Above these the kernel cuts the train up in software (measured, spec/wdp 2.7).
  static constexpr size_t kMostBytes = 65493;
  static constexpr size_t kMostBytesIpv6 = 65473;
  // Payloads below are copied beside their header: cheaper than one more piece for the kernel.
  static constexpr size_t kCopyBelow = 4096;

  Train();

  // Neither bytes, nor a loss that is to be told of.
  bool empty() const { return datagrams_ == 0 && !lost_; }
  size_t datagrams() const { return datagrams_; }
  size_t bytes() const { return bytes_; }
  // Of each datagram but the last: the size for UDP_SEGMENT.
  size_t segment_size() const { return segment_; }
  const Path& path() const { return path_; }
  std::span<const IoVec> pieces() const { return pieces_; }
  // Of the datagrams that are complete: is memory referred to that is not its own?
  bool refers() const { return detached_.empty() && bytes_ > used_; }

  // At most so many bytes besides the first datagram, until it is cleared.
  void limit(size_t bytes) { most_ = bytes; }
  // May a datagram of so many bytes follow on this path? The first one may have any size.
  bool takes(size_t size, const Path& path) const;
  // Begins it; takes() said yes. Exactly so many bytes are to be staged and referred to, right
  // before or after.
  void begin(size_t size, const Path& path);
  std::byte* stage(size_t n);
  // Takes back the last `n` bytes, which stage() gave out, and which do not belong to a datagram
  // that was begun.
  void unstage(size_t n);
  void refer(const void* p, size_t n);
  // The path may not carry all of them whole: IP may cut them up (else DF is set).
  void allow_fragments() { fragments_ = true; }
  bool fragments() const { return fragments_; }
  // Nothing may follow any more.
  void close() { closed_ = true; }

  void clear();
  // Copies what it still refers to, so that the memory's owner may have it back. A train that waits
  // for the socket does this when a region is deregistered or a work request flushed. False, and
  // lost(), where memory is gone already: the train ends before the datagram that needs it.
  bool detach();
  bool lost() const { return lost_; }

  // Calls f(std::span<const IoVec>) for each datagram: for whoever carries them without a socket.
  template <class F>
  void each_datagram(F&& f) const {
    std::vector<IoVec> one;
    size_t i = 0;
    size_t skip = 0;
    for (size_t left = bytes_; left > 0;) {
      one.clear();
      for (size_t n = left < segment_ ? left : segment_; n > 0;) {
        const IoVec& v = pieces_[i];
        const size_t now = v.iov_len - skip < n ? v.iov_len - skip : n;
        one.push_back({static_cast<std::byte*>(v.iov_base) + skip, now});
        skip += now;
        n -= now;
        left -= now;
        if (skip == v.iov_len) {
          ++i;
          skip = 0;
        }
      }
      f(std::span<const IoVec>{one});
    }
  }

 private:
  void end_at(size_t bytes);

  static constexpr size_t kStaging = wire::kMaxUdpPayload;

  std::unique_ptr<std::byte[]> staging_;
  size_t used_ = 0;
  std::vector<IoVec> pieces_;
  std::vector<std::byte> detached_;
  Path path_;
  size_t datagrams_ = 0;
  size_t segment_ = 0;
  size_t bytes_ = 0;
  size_t most_ = SIZE_MAX;
  bool closed_ = false;
  bool fragments_ = false;
  bool lost_ = false;
};

}  // namespace weft::wdp

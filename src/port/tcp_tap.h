// Between a TcpStream and the capture of the process: records what passes. A stream has one only
// where the option trace is set.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/io_vec.h"
#include "port/address.h"
#include "trace/tcp_flow.h"

namespace weft::port {

class Capture;

// Where there is no memory to record with nothing more is recorded.
class TcpTap {
 public:
  // Nothing when this process records nothing.
  static std::unique_ptr<TcpTap> of_process();
  explicit TcpTap(Capture& capture) : capture_(capture) {}
  TcpTap(const TcpTap&) = delete;
  TcpTap& operator=(const TcpTap&) = delete;
  // The connection is closed.
  ~TcpTap();

  // This end connects; else it was accepted.
  void connects() { active_ = true; }
  // Before the first of the calls below: the connection's two ends; not valid where it is gone.
  bool knows_ends() const { return met_; }
  void meet(int64_t at, const Address& local, const Address& peer);

  static int64_t now();
  // `bytes` of `pieces` went through, or the errno that came instead.
  void moved(int64_t at, trace::Direction direction, std::span<const IoVec> pieces, size_t bytes);
  void failed(int64_t at, int error);
  // The peer's FIN, our own, and a RST of ours.
  void peer_finished(int64_t at);
  void finished(int64_t at);
  void reset(int64_t at);

 private:
  template <class F>
  void record(F&& f);
  void forget();

  Capture& capture_;
  std::optional<trace::TcpFlow> flow_;  // none: not recorded
  bool met_ = false;
  bool active_ = false;
  bool with_itself_ = false;
};

}  // namespace weft::port

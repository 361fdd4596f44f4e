// The capture file of a process (option trace): every connection and datagram socket writes its
// packets there as they pass. Each packet is in the file, for its readers, before the call
// that moved its bytes returns; so it is there when the process is killed the moment after.
#pragma once

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "port/fd.h"
#include "trace/packet.h"

namespace weft::port {

// `pattern` with the number of a process in each place of %p.
std::string capture_name(const std::string& pattern, int pid);

class Capture final : public trace::PacketSink {
 public:
  struct Settings {
    std::string pattern;      // the file's name, see capture_name()
    size_t keep = 0;          // bytes of each MPA frame or datagram; 0: everything
    uint64_t most = 1 << 30;  // bytes of the file
  };
  // Makes no file yet: that happens with the first packet, or not at all.
  explicit Capture(Settings settings);

  // That of this process, nullptr when the option is not set. A child of fork(2) has its own. Never
  // destroyed. Any thread.
  static Capture* of_process();

  // Runs `f`, which records what has happened. Where it finds no memory the trace ends, instead of
  // what is recorded: false. Any thread.
  template <class F>
  bool record(F&& f) {
    try {
      f();
      return true;
    } catch (const std::bad_alloc&) {
      give_up(ENOMEM);
      return false;
    }
  }

  // Any thread. What cannot be written is given up, with a sentence for the user. Nothing is done
  // for connections that a child of fork(2) has from its parent. Throws std::bad_alloc.
  void packet(const trace::Packet& packet) override;

  // A connection is to be recorded; false when its other end is a connection of this process that
  // is recorded already, where each byte would be in the file twice. Any thread.
  bool claim(const trace::Endpoint& local, const trace::Endpoint& peer);
  void release(const trace::Endpoint& local, const trace::Endpoint& peer);

  // Datagrams are recorded as they leave `local`. What comes from such a place was recorded when it
  // left, by this process. Any thread.
  void sends_from(const trace::Endpoint& local);
  bool has_sent_from(const trace::Endpoint& source);

  size_t keep() const { return settings_.keep; }

 private:
  bool inherited() const;
  bool ready();
  bool open();
  bool write(const trace::Packet& packet);
  int write_pieces(size_t bytes);
  void give_up(int error);
  void end_with(int error);
  void stop();

  const Settings settings_;
  const uint64_t most_;  // bytes of the file, and no more than the process may write to one
  const int pid_;
  std::mutex lock_;  // what follows
  Fd file_;
  std::string name_;
  uint64_t size_ = 0;  // of the file; whole blocks
  bool stopped_ = false;
  std::vector<IoVec> pieces_;
  std::set<std::pair<trace::Endpoint, trace::Endpoint>> recorded_;
  std::set<trace::Endpoint> sources_;
};

}  // namespace weft::port

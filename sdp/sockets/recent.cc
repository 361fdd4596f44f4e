#include "sdp/sockets/recent.h"

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "sdp/sockets/look.h"
#include "sdp/sockets/stream.h"

namespace weft::sdp {
namespace {

using Clock = std::chrono::steady_clock;

// A server with more clients looks at none of them for long.
constexpr size_t kMost = 16;
// How often a thread that looks asks for what else it waits for.
constexpr std::chrono::microseconds kOthers{10};
constexpr std::chrono::microseconds kInterrupted{200};

// Of one thread.
class Streams {
 public:
  Streams() = default;
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams() {
    for (const auto& stream : streams_) leave(stream);
  }

  void note(Stream& stream) {
    for (const auto& known : streams_) {
      if (known.lock().get() == &stream) return;
    }
    auto& place = streams_[next_++ % kMost];
    leave(place);
    place = stream.weak_from_this();
    stream.looked_at(true);
  }
  std::vector<std::shared_ptr<Stream>> all() const {
    std::vector<std::shared_ptr<Stream>> found;
    for (const auto& known : streams_) {
      if (auto stream = known.lock()) found.push_back(std::move(stream));
    }
    return found;
  }
  bool any() const { return next_ > 0; }
  void forget() {
    streams_ = {};
    next_ = 0;
  }

  LookTime look_time;

 private:
  static void leave(const std::weak_ptr<Stream>& known) {
    if (const auto stream = known.lock()) stream->looked_at(false);
  }

  std::array<std::weak_ptr<Stream>, kMost> streams_;
  size_t next_ = 0;
};

Streams& mine() {
  thread_local Streams streams;
  return streams;
}

}  // namespace

void Recent::note(Stream& stream) {
  mine().note(stream);
}

bool Recent::any() {
  return mine().any();
}

bool Recent::look(const std::function<bool()>& other_news) {
  LookTime& look_time = mine().look_time;
  const auto time = look_time.next();
  if (time.count() == 0) return false;
  const auto streams = mine().all();
  if (streams.empty()) return false;
  auto now = Clock::now();
  auto others = now + kOthers;
  for (const auto until = now + time; now < until;) {
    bool news = false;
    for (const auto& stream : streams) news = stream->look_for_news() || news;
    const auto before = std::exchange(now, Clock::now());
    const bool interrupted = now - before > kInterrupted;
    if (!news && now >= others) {
      news = other_news();
      others = now + kOthers;
    }
    if (news || interrupted) {
      look_time.result(news && !interrupted);
      return news;
    }
  }
  look_time.result(false);
  return false;
}

void Recent::forget_in_child() {
  mine().forget();
}

void Recent::about_to_sleep() {
  for (const auto& stream : mine().all()) stream->about_to_sleep();
}

}  // namespace weft::sdp

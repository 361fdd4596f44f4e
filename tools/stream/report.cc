#include "stream/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "cli/output.h"
#include "cli/stop.h"
#include "kit/failure.h"
#include "kit/json_text.h"
#include "kit/or_null.h"
#include "kit/printable.h"
#include "measure/own_memory.h"
#include "measure/report.h"
#include "port/fd.h"
#include "stream/events.h"
#include "stream/live_view.h"

namespace weft::stream {
namespace {

constexpr size_t kMostWaiting = 1000;  // lines

// The numbers among the facts, those of a group with its name before theirs.
std::map<std::string, nlohmann::json> numbers_of(const nlohmann::json& facts) {
  std::map<std::string, nlohmann::json> numbers;
  for (const auto& [name, value] : facts.items()) {
    if (value.is_number()) numbers[name] = value;
    if (!value.is_object()) continue;
    for (const auto& [part, number] : numbers_of(value)) {
      numbers[fmt::format("{}_{}", name, part)] = number;
    }
  }
  return numbers;
}

std::string line_of(const nlohmann::json& json) {
  return kit::text_of(json) + '\n';
}

// What may fall as well as rise.
bool is_gauge(const std::string& name) {
  return name == "fill" || name == "open" || name == "senders" || name.ends_with("_s") ||
         name.ends_with("_seconds") || name.ends_with("_share") || name.starts_with("late_");
}

std::vector<measure::EnergyChoice> choice_of(const ReportOptions& options) {
  if (!options.energy.empty()) return options.energy;
  return {measure::EnergyChoice::first_quick};
}

std::optional<double> known(const measure::Measured<double>& value) {
  return value ? std::optional{*value} : std::nullopt;
}

// Throws nothing: if one output takes no more, the others still get their account.
void put(FILE* to, const std::string& text) {
  if (to == stdout) return cli::write_output(text);
  (void)!std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

// What was counted of all streams together, and of the side, but for zeros: ", received 10".
std::string counts_text(const Snapshot& now) {
  std::string text;
  if (!now.streams.empty()) {
    for (const auto& [name, value] : now.streams.front().items()) {
      if (!value.is_number_unsigned() || name == "bytes") continue;
      if (const uint64_t sum = sum_of(now, name.c_str()); sum > 0) {
        text += fmt::format(", {} {}", name, sum);
      }
    }
  }
  for (const auto& [name, value] : numbers_of(now.facts)) {
    if (value.is_number_unsigned() && value != 0) {
      text += fmt::format(", {} {}", name, value.dump());
    }
  }
  return text;
}

}  // namespace

void write_atomically(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  // A new file: in a folder where others write, too, one of them may have left a link there.
  (void)::unlink(fresh.c_str());
  port::Fd fd{::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)};
  FILE* file = fd.valid() ? ::fdopen(fd.get(), "w") : nullptr;
  if (file == nullptr) throw kit::system_failure(fresh);
  (void)fd.release();  // the stream's
  const bool written = std::fputs(text.c_str(), file) >= 0;
  if (std::fclose(file) != 0 || !written) throw kit::system_failure(fresh);
  if (std::rename(fresh.c_str(), path.c_str()) != 0) throw kit::system_failure(path);
}

Report::Report(ReportOptions options)
    : options_(std::move(options)), energy_(choice_of(options_), options_.roots) {
  energy_.begin();
  cli::set_last_words([this] { say_latest(); });
  writer_ = std::thread{[this] { write_lines(); }};
}

// NOLINTNEXTLINE(bugprone-exception-escape): the thread can be joined, and the lock taken
Report::~Report() {
  cli::set_last_words({});
  stop();
}

void Report::stop() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  more_.notify_one();
  if (writer_.joinable()) writer_.join();
}

void Report::enqueue(std::function<void()> work) {
  {
    const std::lock_guard lock{mutex_};
    if (queue_.size() >= kMostWaiting) {
      ++dropped_;
      return;
    }
    queue_.push_back(std::move(work));
  }
  more_.notify_one();
}

void Report::write_lines() {
  std::unique_lock lock{mutex_};
  for (;;) {
    more_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

void Report::show(const Snapshot& now) {
  {
    const std::lock_guard lock{mutex_};
    latest_ = now;
    if (!queue_.empty()) return;
  }
  enqueue([this, now] { show_now(now); });
}

void Report::tell(const nlohmann::json& event) {
  enqueue([this, event] { tell_now(event); });
}

void Report::show_last(const Snapshot& now) {
  {
    const std::lock_guard lock{mutex_};
    latest_ = now;
  }
  stop();
  show_last_now(now);
  const std::lock_guard lock{mutex_};
  latest_.reset();
}

// The last words of a side that is cut off: what it counted when it last looked.
void Report::say_latest() {
  const std::lock_guard lock{mutex_};
  if (!latest_) return;
  nlohmann::json json = latest_->facts;
  json["side"] = latest_->side;
  json["seconds"] = latest_->seconds;
  json["bytes"] = latest_->bytes;
  json["streams"] = latest_->streams;
  json["cut_off"] = true;
  put(options_.json ? stdout : stderr,
      options_.json ? line_of(json)
                    : fmt::format("{}: cut off by a signal; counted in the first {:.1f} s: {}",
                                  options_.who, latest_->seconds, line_of(json)));
}

// A full disk is no reason to lose packets.
void Report::keep_for_prometheus(const Snapshot& now) {
  if (options_.prometheus.empty()) return;
  try {
    write_prometheus(now);
  } catch (const kit::Failure& failure) {
    if (!std::exchange(warned_, true))
      put(stderr, fmt::format("{}: {}\n", options_.who, failure.what()));
  }
}

void Report::erase() {
  if (lines_ == 0) return;
  // The terminal's echo of Ctrl-C leaves the cursor behind it.
  put(stderr, fmt::format("\r\x1b[{}A\x1b[J", lines_));
  lines_ = 0;
}

nlohmann::json Report::as_json(const Snapshot& now) const {
  const double took = now.seconds - before_.seconds;
  nlohmann::json json = now.facts;
  json["side"] = now.side;
  json["seconds"] = now.seconds;
  json["bytes"] = now.bytes;
  json["gbps"] = gbps(now.bytes - before_.bytes, took);
  json["cpu_s"] = now.cpu_s;
  json["cpu"] = took > 0 ? (now.cpu_s - before_.cpu_s) / took : 0;
  json["resident"] = measure::resident_bytes();
  const auto watts = energy_.watts();
  json["watts"] = kit::or_null(watts);
  json["streams"] = now.streams;
  return json;
}

nlohmann::json Report::energy_json(double gigabits) const {
  const auto best = measure::best_of(energy_.results());
  if (!best) return measure::as_json(best.error());
  return {{"source", best->source},
          {"of", best->of},
          {"joules", *best->joules},
          {"watts", *best->watts},
          {"gbps_per_w", gigabits / *best->joules}};
}

// Of the machine, over the whole run. Why there is no figure is said only if --energy asked for
// one.
std::string Report::energy_text() const {
  const auto best = measure::best_of(energy_.results());
  if (best) return fmt::format("; {:.1f} W", *best->watts);
  if (options_.energy.empty()) return "";
  return fmt::format("; power unmeasured: {}: {}", best.error().reason, best.error().remedy);
}

// CPU of this side, power of the machine.
std::string Report::load_text(const Snapshot& now, double took) const {
  const double cpu = took > 0 ? (now.cpu_s - before_.cpu_s) / took * 100 : 0.0;
  const auto watts = energy_.watts();
  std::string text = fmt::format("CPU {:.0f} %  ", cpu);
  if (watts) text += fmt::format("{:.1f} W", *watts);
  return text;
}

// Of each stream in CPU and power: as its bytes have in all bytes that passed since the snapshot
// before.
void Report::add_shares(Snapshot& now, const std::optional<double>& watts) const {
  const double took = now.seconds - before_.seconds;
  const double cpu = took > 0 ? (now.cpu_s - before_.cpu_s) / took : 0;
  const auto all = static_cast<double>(now.bytes - std::min(before_.bytes, now.bytes));
  for (size_t i = 0; i < now.streams.size(); ++i) {
    const uint64_t bytes = now.bytes_of(i);
    const auto passed = static_cast<double>(bytes - std::min(before_.bytes_of(i), bytes));
    const double share = all > 0 ? passed / all : 0;
    now.streams[i]["cpu_share"] = share * cpu;
    now.streams[i]["watts_share"] =
        watts ? nlohmann::json(share * *watts) : nlohmann::json(nullptr);
  }
}

void Report::show_now(Snapshot now) {
  energy_.sample();
  add_shares(now, known(energy_.watts()));
  if (options_.json) {
    put(stdout, line_of(as_json(now)));
  }
  if (options_.live) draw(now);
  keep_for_prometheus(now);
  before_ = std::move(now);
}

void Report::tell_now(const nlohmann::json& event) {
  if (options_.json) {
    put(stdout, line_of(event));
    return;
  }
  erase();
  put(stderr, fmt::format("{}: {}\n", options_.who, kit::printable(sentence_of(event))));
}

void Report::draw(const Snapshot& now) {
  erase();
  const double took = now.seconds - before_.seconds;
  const std::string text = live_view(now, before_, load_text(now, took), terminal_size());
  put(stderr, text);
  lines_ = static_cast<unsigned>(std::count(text.begin(), text.end(), '\n'));
}

void Report::write_prometheus(const Snapshot& now) const {
  const std::string prefix = "weft_stream_" + now.side + "_";
  std::string text =
      fmt::format("# TYPE {0}cpu_seconds counter\n{0}cpu_seconds {1:.3f}\n", prefix, now.cpu_s);
  if (const auto watts = energy_.watts()) {
    text += fmt::format("# TYPE {0}watts gauge\n{0}watts {1:.3f}\n", prefix, *watts);
  }
  const auto type = [&prefix](const std::string& name) {
    return fmt::format("# TYPE {}{} {}\n", prefix, name, is_gauge(name) ? "gauge" : "counter");
  };
  for (const auto& [name, value] : numbers_of(now.facts)) {
    text += type(name) + fmt::format("{}{} {}\n", prefix, name, value.dump());
  }
  if (!now.streams.empty()) {
    for (const auto& [name, first] : now.streams.front().items()) {
      if (!first.is_number()) continue;
      text += type(name);
      for (size_t i = 0; i < now.streams.size(); ++i) {
        text += fmt::format("{}{}{{stream=\"{}\"}} {}\n", prefix, name, i,
                            now.streams[i].at(name).dump());
      }
    }
  }
  write_atomically(options_.prometheus, text);
}

void Report::show_last_now(Snapshot now) {
  erase();
  energy_.sample();
  before_ = {};
  // Of this thread alone by now: the writer has ended.
  now.facts["events_dropped"] = dropped_;
  const auto best = measure::best_of(energy_.results());
  add_shares(now, best ? known(best->watts) : std::nullopt);
  keep_for_prometheus(now);
  // The table stays. Its rates are those of the whole run.
  if (options_.live) draw(now);
  lines_ = 0;
  nlohmann::json json = as_json(now);
  const double gb = static_cast<double>(now.bytes) * 1e-9;
  json["final"] = true;
  // Of the time in which packets passed, not of that in which one side waited for the other.
  const double busy = now.busy_seconds > 0 ? now.busy_seconds : now.seconds;
  const double cpu_s = now.cpu_s - now.idle_cpu_s;
  json["busy_seconds"] = busy;
  json["gbps"] = gbps(now.bytes, busy);
  json["energy"] = energy_json(8 * gb);
  json["cpu_s_per_gb"] = gb > 0 ? nlohmann::json(cpu_s / gb) : nlohmann::json(nullptr);
  if (options_.json) {
    put(stdout, line_of(json));
    return;
  }
  std::string text = fmt::format("weft stream {}: {:.3f} GB in {:.1f} s, {:.3f} Gb/s", now.side, gb,
                                 busy, json["gbps"].get<double>());
  if (gb > 0) text += fmt::format(", {:.3f} CPU s/GB", cpu_s / gb);
  if (const std::string late = lateness_text(now); !late.empty()) text += ", " + late;
  put(stderr, text + counts_text(now) + energy_text() + "\n");
}

}  // namespace weft::stream

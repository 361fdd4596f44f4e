#include "measure/process_tree.h"

#include <algorithm>

namespace weft::measure {
namespace {

constexpr char kZombie = 'Z';

void add(ThreadUsage& sum, const ThreadUsage& one) {
  sum.threads += one.threads;
  sum.cpu_s += one.cpu_s;
  sum.user_s += one.user_s;
  sum.system_s += one.system_s;
  sum.voluntary += one.voluntary;
  sum.involuntary += one.involuntary;
}

}  // namespace

ProcessTree::ProcessTree(ProcessFiles files, pid_t self, double ticks, size_t most_threads)
    : files_(std::move(files)), self_(self), ticks_(ticks), most_threads_(most_threads) {
  for (const pid_t child : files_.children(self_)) foreign_.insert(child);
}

void ProcessTree::find_below(pid_t top, std::map<pid_t, StatLine>& found) const {
  std::vector<pid_t> open{top};
  while (!open.empty()) {
    const pid_t pid = open.back();
    open.pop_back();
    if (found.contains(pid)) continue;
    const auto line = files_.stat(pid);
    if (!line) continue;
    found[pid] = *line;
    for (const pid_t child : files_.children(pid)) open.push_back(child);
  }
}

void ProcessTree::find_processes() {
  std::map<pid_t, StatLine> found;
  if (root_ != 0) find_below(root_, found);
  for (const pid_t child : files_.children(self_)) {
    if (!foreign_.contains(child)) find_below(child, found);
  }
  // One that was there stays, as long as it is the same one: the kernel's lists of children may
  // miss some while they change.
  for (const auto& [pid, before] : processes_) {
    const auto line = files_.stat(pid);
    if (line && line->start == before.start) find_below(pid, found);
  }
  processes_ = std::move(found);
}

void ProcessTree::look() {
  find_processes();
  alive_.clear();
  ended_orphans_.clear();
  cpu_s_ = 0;
  sum_bytes_ = 0;
  for (const auto& [pid, line] : processes_) {
    cpu_s_ += seconds(line.user + line.system + line.children_user + line.children_system);
    if (pid != root_ && line.parent == self_ && line.state == kZombie)
      ended_orphans_.push_back(pid);
    look_at(pid, line);
  }
  peak_sum_bytes_ = std::max(peak_sum_bytes_, sum_bytes_);
  fold();
}

void ProcessTree::look_at(pid_t pid, const StatLine& process) {
  for (const pid_t thread : files_.threads(pid)) look_at_thread(pid, thread, process.name);
}

void ProcessTree::look_at_thread(pid_t pid, pid_t thread, const std::string& process) {
  const auto line = files_.stat(pid, thread);
  if (!line) return;
  const StatusLines status = files_.status(pid, thread);
  // They are the process's, whichever thread is asked.
  if (thread == pid) {
    peak_bytes_ = std::max(peak_bytes_, status.peak_bytes.value_or(0));
    sum_bytes_ += status.resident_bytes.value_or(0);
  }
  const Key key{.pid = pid, .thread = thread, .start = line->start};
  alive_.insert(key);
  const double user = seconds(line->user);
  const double system = seconds(line->system);
  threads_[key] = {.pid = pid,
                   .thread = thread,
                   .process = process,
                   .name = line->name,
                   .threads = 1,
                   .cpu_s = std::max(files_.exact_cpu_s(pid, thread).value_or(0), user + system),
                   .user_s = user,
                   .system_s = system,
                   .voluntary = status.voluntary,
                   .involuntary = status.involuntary};
}

void ProcessTree::fold() {
  if (threads_.size() <= most_threads_) return;
  std::erase_if(threads_, [this](const auto& entry) {
    if (alive_.contains(entry.first)) return false;
    const ThreadUsage& one = entry.second;
    const auto [at, is_new] =
        folded_.try_emplace({one.process, one.name},
                            ThreadUsage{.process = one.process, .name = one.name, .threads = 0});
    add(at->second, one);
    return true;
  });
}

std::vector<ThreadUsage> ProcessTree::threads() const {
  std::vector<ThreadUsage> all;
  for (const auto& [key, thread] : threads_) all.push_back(thread);
  for (const auto& [name, sum] : folded_) all.push_back(sum);
  std::ranges::stable_sort(all, std::greater{}, &ThreadUsage::cpu_s);
  return all;
}

std::pair<ProcessUsage, std::vector<std::string>> ProcessTree::survivors() {
  root_ = 0;
  look();
  ProcessUsage usage;
  std::vector<std::string> names;
  // `self` waits for its own. Those of a process that lives on may wait for it for long.
  const auto is_own_zombie = [this](const StatLine& line) {
    return line.state == kZombie && line.parent == self_;
  };
  for (const auto& [pid, line] : processes_) {
    if (is_own_zombie(line)) continue;
    usage.user_s += seconds(line.user + line.children_user);
    usage.system_s += seconds(line.system + line.children_system);
    if (line.state != kZombie) names.push_back(line.name);
  }
  for (const Key& key : alive_) {
    if (is_own_zombie(processes_.at(key.pid))) continue;
    usage.voluntary += threads_.at(key).voluntary;
    usage.involuntary += threads_.at(key).involuntary;
  }
  return {usage, names};
}

}  // namespace weft::measure

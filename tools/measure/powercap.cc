#include "measure/powercap.h"

#include <fmt/format.h>

#include <cerrno>
#include <string_view>

#include "kit/kernel_files.h"
#include "measure/energy_counter.h"
#include "measure/files.h"

namespace weft::measure {
namespace {

// "intel-rapl" is what the driver is called for AMD's processors, too. The zones of intel-rapl-mmio
// are the same packages once more, by another way to the same registers.
constexpr const char* kControl = "intel-rapl:";

Part part_of(const std::string& name) {
  if (name.starts_with("package")) return Part::package;
  if (name.starts_with("dram")) return Part::dram;
  if (name.starts_with("core")) return Part::core;
  if (name.starts_with("uncore")) return Part::uncore;
  if (name.starts_with("psys")) return Part::platform;
  return Part::other;
}

Unmeasured because_of(const FileError& error) {
  if (error.number == EACCES || error.number == EPERM) {
    return {error.what,
            "since Linux 5.10 root alone may read it (its steps tell secrets of other processes): "
            "run as root, or let your group: chgrp GROUP FILE; chmod g+r FILE"};
  }
  return {error.what, "measure by another source (--energy perf, ipmi or battery)"};
}

struct Zone {
  std::string name;
  Part part;
  std::string file;
  EnergyCounter counter;

  Measured<uint64_t> read() const {
    const auto value = read_number(file);
    if (!value) return fail(because_of(value.error()));
    return static_cast<uint64_t>(*value);
  }
};

class Powercap final : public EnergySource {
 public:
  explicit Powercap(std::vector<Zone> zones) : zones_(std::move(zones)) {}

  const char* name() const override { return "powercap"; }
  void sample(const Clock& clock) override {
    for (Zone& zone : zones_) {
      const auto reading = zone.read();
      zone.counter.add(clock(), reading);
    }
  }
  void reset() override {
    for (Zone& zone : zones_) zone.counter.reset();
  }
  std::vector<DomainEnergy> domains() const override {
    return of_each([](const Zone& zone) { return zone.counter.joules(); });
  }
  double seconds() const override { return zones_.front().counter.seconds(); }
  Measured<double> watts() const override {
    return total_of(of_each([](const Zone& zone) { return zone.counter.watts(); })).value;
  }

 private:
  std::vector<DomainEnergy> of_each(auto&& figure) const {
    std::vector<DomainEnergy> domains;
    for (const Zone& zone : zones_) domains.push_back({zone.name, zone.part, figure(zone)});
    return domains;
  }

  std::vector<Zone> zones_;
};

// "dram of package-0": below its package alone it would say nothing of which one it is.
std::string full_name(const std::string& root, const std::string& folder, const std::string& name) {
  const size_t colon = folder.rfind(':');
  if (colon < std::string_view{kControl}.size()) return name;
  const auto parent = read_text(root + "/" + folder.substr(0, colon) + "/name");
  return parent ? fmt::format("{} of {}", name, *parent) : name;
}

Unmeasured no_zones(const std::string& folder, const std::string& proc) {
  const auto cpus = read_text(proc + "/cpuinfo");
  const bool guest = cpus && cpus->find(" hypervisor") != std::string::npos;
  return {fmt::format("{} has no zone intel-rapl:N{}", folder,
                      guest ? " (this is a guest; few hypervisors give it RAPL)" : ""),
          guest ? "measure on the host, or by a meter at the plug"
                : "modprobe intel_rapl_msr (Intel since Sandy Bridge, AMD since Zen)"};
}

}  // namespace

OpenSource open_powercap(const std::string& sysfs, const std::string& proc) {
  const std::string root = sysfs + "/class/powercap";
  std::vector<Zone> zones;
  for (const std::string& folder : kit::names_in(root)) {
    if (!folder.starts_with(kControl)) continue;
    const std::string zone = fmt::format("{}/{}", root, folder);
    const auto name = read_text(zone + "/name");
    const auto range = read_number(zone + "/max_energy_range_uj");
    if (!name || !range || *range <= 0) continue;  // a zone to limit power with, not to measure
    zones.push_back({.name = full_name(root, folder, *name),
                     .part = part_of(*name),
                     .file = zone + "/energy_uj",
                     .counter = EnergyCounter{static_cast<uint64_t>(*range), 1e-6}});
  }
  Unmeasured why = no_zones(root, proc);
  for (const Zone& zone : zones) {
    if (zone.part != Part::package) continue;
    const auto reading = zone.read();
    if (reading) return std::unique_ptr<EnergySource>(new Powercap(std::move(zones)));
    why = reading.error();
  }
  return fail(why);
}

}  // namespace weft::measure

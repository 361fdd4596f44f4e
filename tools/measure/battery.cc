#include "measure/battery.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "kit/kernel_files.h"
#include "measure/files.h"
#include "measure/power_integral.h"

namespace weft::measure {
namespace {

constexpr const char* kUnplug = "unplug the machine's power supply while measuring";

// Some drivers count what flows out as negative.
std::optional<double> size_of(const std::string& file) {
  const auto value = read_number(file);
  if (!value) return std::nullopt;
  return std::abs(static_cast<double>(*value));
}

Measured<double> watts_of(const std::string& battery) {
  if (const auto microwatts = size_of(battery + "/power_now")) return *microwatts * 1e-6;
  const auto microamperes = size_of(battery + "/current_now");
  const auto microvolts = size_of(battery + "/voltage_now");
  if (microamperes && microvolts) return *microamperes * 1e-6 * (*microvolts * 1e-6);
  return fail(Unmeasured{battery + " has neither power_now nor current_now and voltage_now",
                         "measure by another source"});
}

class Battery final : public EnergySource {
 public:
  explicit Battery(std::string sysfs) : sysfs_(std::move(sysfs)) {}

  const char* name() const override { return "battery"; }
  void sample(const Clock& clock) override {
    const auto watts = battery_watts(sysfs_);
    integral_.add(clock(), watts);
  }
  void reset() override { integral_.reset(); }
  std::vector<DomainEnergy> domains() const override {
    return {{"battery", Part::machine, integral_.joules()}};
  }
  double seconds() const override { return integral_.seconds(); }
  Measured<double> watts() const override { return integral_.watts(); }

 private:
  std::string sysfs_;
  PowerIntegral integral_;
};

}  // namespace

Measured<double> battery_watts(const std::string& sysfs) {
  const std::string root = sysfs + "/class/power_supply";
  double sum = 0;
  bool discharging = false;
  std::string seen;
  for (const std::string& name : kit::names_in(root)) {
    const std::string battery = fmt::format("{}/{}", root, name);
    const auto type = read_text(battery + "/type");
    const auto scope = read_text(battery + "/scope");
    // "Device": that of a mouse or the like.
    if (!type || *type != "Battery" || (scope && *scope == "Device")) continue;
    // Once: a battery may be taken out between two reads.
    const auto read = read_text(battery + "/status");
    const std::string status = read ? *read : "";
    if (status == "Charging") {
      return fail(Unmeasured{fmt::format("{} is being charged", name), kUnplug});
    }
    seen += fmt::format("{}{} is '{}'", seen.empty() ? "" : ", ", name, status);
    if (status != "Discharging") continue;  // a second one that has its turn later
    auto watts = watts_of(battery);
    if (!watts) return watts;
    discharging = true;
    sum += *watts;
  }
  if (discharging) return sum;
  if (!seen.empty()) return fail(Unmeasured{seen + ", none is discharging", kUnplug});
  return fail(Unmeasured{root + " has no battery", "measure by another source, or at the plug"});
}

OpenSource open_battery(const std::string& sysfs) {
  const auto watts = battery_watts(sysfs);
  if (!watts) return fail(watts.error());
  return std::unique_ptr<EnergySource>(new Battery(sysfs));
}

}  // namespace weft::measure

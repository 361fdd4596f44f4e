#include <algorithm>

#include "measure/report.h"

namespace weft::measure {
namespace {

constexpr double kGiga = 1e9;

Measured<double> gigabytes(const Report& report) {
  if (!report.bytes) return fail(report.bytes.error());
  if (*report.bytes > 0) return static_cast<double>(*report.bytes) / kGiga;
  return fail(Unmeasured{"no byte was moved", "see whether the command did what it should"});
}

}  // namespace

Measured<double> gigabits_per_s(const Report& report) {
  auto moved = gigabytes(report);
  if (!moved) return moved;
  return *moved * 8 / report.seconds;
}

Measured<double> efficiency(const Report& report, const Measured<double>& watts) {
  auto rate = gigabits_per_s(report);
  if (!rate) return rate;
  if (!watts) return watts;
  return *rate / *watts;
}

Measured<double> cpu_s_per_gb(const Report& report) {
  auto moved = gigabytes(report);
  if (!moved) return moved;
  return report.usage.cpu_s() / *moved;
}

Measured<double> machine_cpu_s_per_gb(const Report& report) {
  auto moved = gigabytes(report);
  if (!moved) return moved;
  if (!report.machine) return fail(report.machine.error());
  return report.machine->busy_s() / *moved;
}

double unseen_cpu_s(const Report& report) {
  double seen = 0;
  for (const ThreadUsage& thread : report.threads) seen += thread.cpu_s;
  return std::max(0.0, report.usage.cpu_s() - seen);
}

}  // namespace weft::measure

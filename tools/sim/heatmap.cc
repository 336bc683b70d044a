// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "tools/sim/trace.h"

namespace ccom::simtool {
namespace {

constexpr int kColumns = 160;
constexpr double kCell = 5, kRow = 9, kLabel = 190, kHead = 58;

// The wires to show, ascending.
std::vector<uint32_t> busiest(const SimReport& report, size_t most) {
  std::vector<uint32_t> wires(report.wires.size());
  std::iota(wires.begin(), wires.end(), 0);
  std::erase_if(wires, [&](uint32_t wire) { return report.wires[wire].messages == 0; });
  std::ranges::stable_sort(wires, std::greater<>{}, [&](uint32_t wire) { return report.wires[wire].busy_ns; });
  if (wires.size() > most) wires.resize(most);
  std::ranges::sort(wires);
  return wires;
}

// Share of each stretch of time that each shown wire was busy, row after row.
std::vector<double> shares(const SimReport& report, const std::vector<uint32_t>& rows) {
  std::vector<double> share(rows.size() * kColumns);
  const double stretch = report.time_ns * 1e3 / kColumns;
  for (const Interval& interval : report.intervals) {
    const auto row = std::ranges::lower_bound(rows, interval.wire);
    if (row == rows.end() || *row != interval.wire || stretch <= 0) continue;
    const auto start = static_cast<double>(interval.start), end = static_cast<double>(interval.end);
    for (int c = static_cast<int>(start / stretch); c < kColumns && c * stretch < end; ++c) {
      const double busy = std::min(end, (c + 1) * stretch) - std::max(start, c * stretch);
      share[static_cast<size_t>(row - rows.begin()) * kColumns + static_cast<size_t>(c)] += busy / stretch;
    }
  }
  return share;
}

// "1.50 ms"
std::string time_text(double us) {
  const bool is_long = us >= 1000;
  return printed("%.3g %s", is_long ? us / 1000 : us, is_long ? "ms" : "us");
}

// Times above the columns, and a thin line down from each.
void append_axis(std::string& svg, double time_us, double bottom) {
  constexpr int kTicks = 8;
  for (int tick = 0; tick <= kTicks; ++tick) {
    const double x = kLabel + kColumns * kCell * tick / kTicks;
    svg +=
        printed("<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#bbb\" stroke-width=\"0.5\"/>\n", x, kHead - 6, x, bottom);
    svg += printed("<text x=\"%.1f\" y=\"%.1f\" font-size=\"9\" text-anchor=\"%s\">%s</text>\n", x, kHead - 9,
                   tick == kTicks ? "end" : "middle", time_text(time_us * tick / kTicks).c_str());
  }
}

}  // namespace

std::string heat_map(const Topology& topology, const SimReport& report, const std::string& title, size_t most_rows) {
  const std::vector<uint32_t> rows = busiest(report, most_rows);
  const std::vector<double> share = shares(report, rows);
  const Wires wires(topology);
  std::string svg;
  svg +=
      printed("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\">\n",
              kLabel + kColumns * kCell + 10, kHead + static_cast<double>(rows.size()) * kRow + 10);
  svg += "<text x=\"4\" y=\"16\" font-size=\"13\" font-weight=\"bold\">" + title + "</text>\n";
  svg += printed(
      "<text x=\"4\" y=\"32\" font-size=\"11\">the busiest %zu of %zu wires, time from left to right; the darker, the "
      "longer a wire was busy</text>\n",
      rows.size(), report.wires.size());
  append_axis(svg, report.time_ns / 1e3, kHead + static_cast<double>(rows.size()) * kRow);
  for (size_t row = 0; row < rows.size(); ++row) {
    const double y = kHead + static_cast<double>(row) * kRow;
    svg += printed("<text x=\"4\" y=\"%.1f\" font-size=\"7\">%s</text>\n", y + kRow - 2,
                   wires.name(rows[row]).substr(0, 60).c_str());
    for (int c = 0; c < kColumns; ++c) {
      const double busy = std::min(1.0, share[row * kColumns + static_cast<size_t>(c)]);
      if (busy < 0.005) continue;
      svg += printed("<rect x=\"%.0f\" y=\"%.1f\" width=\"%.0f\" height=\"%.1f\" fill=\"#1f4e9c\" opacity=\"%.2f\"/>\n",
                     kLabel + c * kCell, y, kCell, kRow - 1, busy);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace ccom::simtool

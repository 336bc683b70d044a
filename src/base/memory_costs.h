// SPDX-License-Identifier: Apache-2.0
//
// What work in memory that ranks of a host share takes, in nanoseconds: model input, like the speeds of links. Part of
// the topology (topology/topology.h); what it prices: algorithms/node_cost.h.
#pragma once

namespace ccom {

// Defaults: bandwidths of an Intel Xeon of the 4th to 5th generation (two of its cores, bench/README.md); latencies
// between cores in the range of Ramos and Hoefler, Modeling communication in cache-coherent SMP systems, HPDC'13.
struct MemoryCosts {
  // A line that another core has written; every further one that is fetched at the same time, a core having about ten
  // misses under way; of another memory domain.
  double line_ns = 60, further_line_ns = 6;
  double remote_line_ns = 140, remote_further_line_ns = 14;
  double domain_line_ns = 6;  // every line of another domain, for all cores of a domain together
  double reader_ns = 10;      // every further core that wants the same line
  double barrier_ns = 25;     // a rank's own work at a barrier: to publish and to notice
  double call_ns = 120;       // once in a call: checks, words of the call
  double switch_ns = 3700;    // until those who share a core have had their turns: with a rank more on each

  // A byte of a rank's own memory, loaded or stored: in its second-level cache, in the last-level cache, beyond; stored
  // past the caches.
  double cached_load_ns = 0.007, cached_store_ns = 0.018;
  double far_load_ns = 0.034, far_store_ns = 0.085;
  double memory_load_ns = 0.08, memory_store_ns = 0.085;
  double streamed_store_ns = 0.03;
  // A byte that another core has just stored, or loaded and is about to load again: what the first cache of that
  // core holds of a piece, and what comes after, which the processor fetches ahead.
  double shared_load_ns = 0.11, shared_store_ns = 0.085;
  double long_shared_load_ns = 0.038, long_shared_store_ns = 0.045;
  double remote_factor = 1.5;      // what a byte of another memory domain takes, times that of the own
  double reduced_byte_ns = 0.004;  // an operand's byte, beyond loading it
  // A copy by the kernel (process_vm_readv): a call, a byte beyond loading and storing it, and of that the share that
  // every further rank adds which reads the same process at a time: they contend for its page tables. Source:
  // Chakraborty et al., Contention-aware kernel-assisted MPI collectives for multi-/many-core systems, CLUSTER'17.
  double read_call_ns = 500, read_byte_ns = 0.04, read_contention = 0.25;
  // All cores of a domain together: 100 GB/s of memory, 30 GB/s to and from all others (a socket's links, halved).
  double domain_byte_ns = 0.01, domain_remote_byte_ns = 1.0 / 30;
  friend bool operator==(const MemoryCosts&, const MemoryCosts&) = default;
};

}  // namespace ccom

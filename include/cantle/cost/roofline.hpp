// SPDX-License-Identifier: BSL-1.0
#pragma once
// The time of one op on one device: the slower of arithmetic and memory traffic, and never less than a kernel launch.
//     time = max(flops / (0.70 * peak), bytes / (0.70 * memory bandwidth), 7 us);   0 for views, sources, sinks and other free ops
// This is the reference's compute model (shared/facts/hardware.md) with its efficiencies, floor and float32 products at the tf32 rate. Two
// things differ: bandwidths are SI (the reference's are 2^40-based, 10 % above), and an embedding reads only its rows (op_work.hpp).
// Cross-entropy and layer norm are bound by memory like any op without flops; what an op keeps to itself is not counted.
#include <cantle/base/error.hpp>
#include <cantle/base/stable_hash.hpp>
#include <cantle/cost/op_work.hpp>
#include <cantle/mesh/cluster.hpp>

#include <algorithm>

namespace cantle {

struct roofline_options {
    double compute_efficiency = 0.70;  ///< of peak arithmetic (shared/facts/hardware.md)
    double memory_efficiency = 0.70;   ///< of memory bandwidth (the same)
    causal_count causal = causal_count::full;
};

class roofline {
public:
    /// Throws bad_cost where a rate or an efficiency is not above 0.
    explicit roofline(gpu_spec const& gpu, roofline_options options = {}) : gpu_(gpu), options_(options) {
        for (double v : {gpu.bf16_flops_per_second, gpu.tf32_flops_per_second, gpu.fp32_flops_per_second, gpu.memory_bytes_per_second,
                         options.compute_efficiency, options.memory_efficiency})
            if (!(v > 0))
                throw error(error_code::bad_cost, "GPU " + gpu.name, "a rate or an efficiency is not above 0",
                            "fill in all rates of gpu_spec");
        us_per_byte_ = 1e6 / (options.memory_efficiency * gpu.memory_bytes_per_second);
    }

    /// Microseconds of an op whose metas are local to a device. Throws bad_graph where an argument that the count needs is missing.
    double compute(op_query const& local) const {
        auto const row = find_work(local.name());
        if (row.kind == work_kind::free) return 0.0;
        double const memory = std::max(count_bytes(local, row) * us_per_byte_, gpu_.launch_floor_us);
        double const work = count_flops(local, row, options_.causal);
        if (work == 0) return memory;
        return std::max(1e6 * work / (options_.compute_efficiency * peak(work_type(local, row))), memory);
    }

    /// Floating point operations per second of a matrix product of that type. fp8 is taken at the bf16 rate, float64 and integers at that
    /// of fp32: hardware.md has no figures for them.
    double peak(dtype t) const {
        switch (t) {
            case dtype::bfloat16: case dtype::float16: case dtype::float8_e4m3fn: case dtype::float8_e5m2:
                return gpu_.bf16_flops_per_second;
            case dtype::float32: case dtype::complex64: return gpu_.tf32_flops_per_second;
            default: return gpu_.fp32_flops_per_second;
        }
    }
    void feed(stable_hasher& h) const {
        h.add("roofline 1");
        gpu_.feed(h);
        h.add(options_.compute_efficiency).add(options_.memory_efficiency).add(options_.causal);
    }

private:
    gpu_spec gpu_;
    roofline_options options_;
    double us_per_byte_ = 0;
};

}  // namespace cantle

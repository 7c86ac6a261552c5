// SPDX-License-Identifier: BSL-1.0
#include <adapters/highs/highs_library.hpp>
#include <adapters/highs/highs_solver.hpp>
#include <cantle/mrf/integer_program.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

namespace cantle::highs {
namespace {

/// One instance of HiGHS.
class session {
public:
    session() : library_(highs_library::get()), highs_(library_.create()) { library_.set_bool(highs_, "output_flag", 0); }
    ~session() { library_.destroy(highs_); }
    session(session const&) = delete;
    session& operator=(session const&) = delete;

    void set(char const* option, double value) { library_.set_double(highs_, option, value); }
    void set(char const* option, std::int32_t value) { library_.set_int(highs_, option, value); }

    bool pass(mrf::integer_program const& p) {
        auto const columns = static_cast<HighsInt>(p.cost.size());
        std::vector<double> const low(p.cost.size(), 0.0), high(p.cost.size(), 1.0);
        std::vector<HighsInt> whole(p.cost.size(), kHighsVarTypeContinuous);
        std::fill_n(whole.begin(), p.binaries, kHighsVarTypeInteger);
        return library_.pass_mip(highs_, columns, static_cast<HighsInt>(p.right_side.size()), static_cast<HighsInt>(p.row.size()),
                                 kHighsMatrixFormatColwise, kHighsObjSenseMinimize, 0.0, p.cost.data(), low.data(), high.data(),
                                 p.right_side.data(), p.right_side.data(), p.start.data(), p.row.data(), p.value.data(),
                                 whole.data()) != kHighsStatusError;
    }

    /// Returns the model status.
    HighsInt run(control const& limits) {
        library_.set_callback(highs_, &session::called, const_cast<control*>(&limits));
        for (auto what : {kHighsCallbackMipImprovingSolution, kHighsCallbackMipInterrupt, kHighsCallbackSimplexInterrupt})
            library_.start_callback(highs_, static_cast<int>(what));
        library_.run(highs_);
        return library_.model_status(highs_);
    }

    double bound() const {
        double bound = -mrf::forbidden;
        library_.double_info(highs_, "mip_dual_bound", &bound);
        return bound;
    }
    /// Values of all columns; empty when no solution is known. `rows`: of the program.
    std::vector<double> columns(std::size_t count, std::size_t rows) const {
        HighsInt status = 0;
        library_.int_info(highs_, "primal_solution_status", &status);
        constexpr HighsInt feasible = 2;
        if (status != feasible) return {};
        std::vector<double> column(count), column_dual(count), row(rows), row_dual(rows);
        library_.solution(highs_, column.data(), column_dual.data(), row.data(), row_dual.data());
        return column;
    }

private:
    highs_library const& library_;
    void* highs_;

    static void called(int what, char const*, HighsCallbackDataOut const* out, HighsCallbackDataIn* in, void* data) {
        auto const& limits = *static_cast<control const*>(data);
        if (what == kHighsCallbackMipImprovingSolution)
            limits.report({"highs", static_cast<std::size_t>(std::max<std::int64_t>(out->mip_node_count, 0)), 0,
                           out->objective_function_value, out->mip_dual_bound});
        else if (in) in->user_interrupt = limits.stop.stop_requested();
    }
};

}  // namespace

mrf::solve_result solve(mrf::factor_graph const& g, highs_options const& options, control const& limits) {
    mrf::solve_result result;
    result.stats.variables = g.variable_count();
    result.stats.edges = g.edge_count();
    if (g.variable_count() == 0) {
        result.energy = result.lower_bound = 0;
        result.status = solve_status::optimal;
        return result;
    }
    auto const size = mrf::size_of(g);
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<HighsInt>::max());
    if (size.columns > most || size.rows > most || size.entries > most)
        throw error(error_code::out_of_memory, "--solver highs",
                    "its 0-1 program would have " + std::to_string(size.columns) + " columns and " + std::to_string(size.entries) +
                        " entries, more than 2^31",
                    "use the solver cantle");
    session highs;
    highs.set("mip_rel_gap", options.relative_gap);
    highs.set("mip_abs_gap", 0.0);
    highs.set("threads", options.threads);
    if (!highs.pass(mrf::integer_program_of(g))) {
        result.status = solve_status::stalled;
        return result;
    }
    if (limits.deadline) {
        std::chrono::duration<double> const left = *limits.deadline - std::chrono::steady_clock::now();
        highs.set("time_limit", std::max(left.count(), 0.0));
    }
    auto const status = highs.run(limits);
    if (status == kHighsModelStatusInfeasible) {
        result.lower_bound = mrf::forbidden;
        result.status = solve_status::infeasible;
        return result;
    }
    result.lower_bound = highs.bound();
    if (auto const columns = highs.columns(size.columns, size.rows); !columns.empty()) {
        result.labels = mrf::labels_of(g, columns);
        result.energy = mrf::energy(g, result.labels);
        if (result.energy == mrf::forbidden) result.labels.clear();  // whole within its tolerance only, and not after rounding
    }
    constexpr double tolerance = 1e-9;  // of double-precision linear programming
    if (status == kHighsModelStatusOptimal && !result.labels.empty())
        result.status = result.relative_gap() <= std::min(tolerance, options.relative_gap + tolerance) ? solve_status::optimal
                                                                                                       : solve_status::within_gap;
    else if (status == kHighsModelStatusTimeLimit || status == kHighsModelStatusInterrupt) result.status = solve_status::stopped;
    else result.status = solve_status::stalled;
    return result;
}

}  // namespace cantle::highs

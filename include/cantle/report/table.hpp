// SPDX-License-Identifier: BSL-1.0
#pragma once
// The report of a plan as text for people. Layouts read as in the plan: one placement per mesh axis, S<dim> cut along that dim, R whole
// on every rank, P partial sums; "A -> B" where the tensor is moved on the way.
#include <cantle/report/collectives.hpp>
#include <cantle/report/figures.hpp>
#include <cantle/report/patterns.hpp>
#include <cantle/report/projections.hpp>
#include <cantle/report/run_report.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {

class report_writer {
public:
    explicit report_writer(run_report const& r) : run_(r), plan_(*r.plan) {
        if (r.graph) view_.emplace(plan_, *r.graph);
    }

    std::string write() {
        write_head();
        write_objective();
        write_run();
        write_demands();
        write_budgets();
        if (view_) write_projections();
        write_collectives();
        write_memory();
        return std::move(out_);
    }

private:
    run_report const& run_;
    sharding_plan const& plan_;
    std::optional<plan_view> view_;
    std::string out_;

    void line(std::string const& s) { out_ += visible_text(s) + "\n"; }
    void section(std::string const& title) { out_ += "\n" + title + "\n"; }

    void write_head() {
        std::string head = "plan";
        if (run_.graph) {
            auto const& o = run_.graph->origin;
            head += " of " + (o.model.empty() ? std::string("a graph without origin") : o.model);
            std::string more;
            auto const add = [&more](std::string const& s) { more += (more.empty() ? "" : ", ") + s; };
            if (o.batch) add("batch " + count_text(o.batch));
            if (o.sequence) add("sequence " + count_text(o.sequence));
            if (!o.precision.empty()) add(o.precision);
            if (!o.recipe.empty()) add("recipe " + o.recipe);
            if (!more.empty()) head += " (" + more + ")";
        }
        line(head + ": " + count_text(plan_.nodes.size()) + " vertices, " + count_text(plan_.relays.size()) + " relays");
        std::string mesh = "mesh " + plan_.mesh.text() + ": " + count_text(plan_.mesh.device_count()) + " GPUs";
        if (run_.machine)
            mesh += " of cluster " + run_.machine->name + " (" + run_.machine->gpu.name + ", " + count_text(run_.machine->gpus_per_node) +
                    " per node)";
        line(mesh);
        if (run_.machine)
            for (std::size_t a = 0; a < plan_.mesh.dims(); ++a) {
                auto const g = geometry_of(plan_.mesh, 1u << a, run_.machine->gpus_per_node);
                line("  " + plan_.mesh.name(a) + ": groups of " + count_text(g.size) +
                     (g.nodes == 1 ? ", inside a node"
                                   : " across " + count_text(g.nodes) + " nodes, " + count_text(g.per_node) + " per node"));
            }
    }

    void write_objective() {
        section("objective (microseconds of one step: computation and collectives added up, nothing overlapped)");
        auto const& c = plan_.cost;
        text_table t({"part", ">us", ">share"});
        auto const row = [&](std::string const& name, double us) {
            t.add({name, microseconds_text(us), plan_.objective > 0 ? percent_text(us / plan_.objective) : ""});
        };
        row("forward compute", c.forward_compute);
        row("backward compute", c.backward_compute);
        for (std::size_t k = 0; k < c.moves.size(); ++k)
            if (static_cast<collective_kind>(k) != collective_kind::slice)
                row(std::string(to_string(static_cast<collective_kind>(k))), c.moves[k]);
        row("collectives inside ops", c.inner);
        row("tie-break", c.tie_break);
        row("objective", plan_.objective);
        row("bound", plan_.bound);
        out_ += t.text();
        line("  gap " + percent_text(plan_.gap()) + ", status " + std::string(to_string(plan_.status)) + ": " + status_words());
        line("  the bound is of the problem: " + plan_.bounded_problem);
        if (run_.statistics && run_.statistics->polish.ran) {
            auto const& p = run_.statistics->polish;
            line("  clustered it was " + microseconds_text(p.clustered_objective) + " (bound " + microseconds_text(p.clustered_bound) +
                 " of that problem, " + std::string(to_string(p.clustered_status)) + ")");
        }
    }
    std::string status_words() const {
        switch (plan_.status) {
            case solve_status::optimal: return "no plan of this problem costs less";
            case solve_status::within_gap: return "the wanted gap is reached; a smaller one goes on";
            case solve_status::sweep_limit: return "the sweep limit ended the search; more sweeps go on";
            case solve_status::stalled:
                return "the bound no longer rises and exact elimination would take too much work; more sweeps do not help, pins that leave "
                       "fewer choices do";
            case solve_status::stopped: return "the clock ended the search; another run may differ";
            case solve_status::infeasible: return "no plan satisfies all constraints";
        }
        return {};
    }

    void write_run() {
        if (run_.seconds.empty() && !run_.statistics) return;
        section("run");
        if (!run_.seconds.empty()) {
            std::string s = "  seconds: ";
            for (auto const& [stage, seconds] : run_.seconds) s += stage + " " + fixed_text(seconds, 3) + ", ";
            line(s + "total " + fixed_text(run_.total_seconds(), 3));
        }
        if (run_.peak_bytes) line("  peak memory " + bytes_text(run_.peak_bytes));
        if (auto const* st = run_.statistics) {
            auto const reduced = [](mrf::solve_stats const& r) {
                return "after reductions " + count_text(r.variables) + " decisions, " + count_text(r.edges) + " edges; " +
                       count_text(r.sweeps) + " sweeps" + (r.exact_elimination ? ", ended by exact elimination" : "");
            };
            line("  " + count_text(st->op_classes) + " kinds of op with " + count_text(st->strategies) + " strategies; " +
                 count_text(st->tensor_classes) + " kinds of tensor with " + count_text(st->lattice_states) + " layouts");
            line("  " + count_text(st->groups) + " decisions (" + count_text(st->copies) + " vertices copy one), " +
                 count_text(st->group_edges) + " edges, " + count_text(st->labels) + " labels; " + reduced(st->solver));
            if (st->screening.ran)
                line("  screened first: " + count_text(st->screening.labels) + " labels, " + count_text(st->screening.labels_left) +
                     " left after " + count_text(st->screening.sweeps) + " sweeps and " + count_text(st->screening.small_problems) +
                     " small problems");
            if (st->polish.ran)
                line("  polished: " + count_text(st->polish.groups) + " decisions, " + count_text(st->polish.group_edges) + " edges; " +
                     reduced(st->polish.solver));
        }
    }

    void write_demands() {
        section("constraints");
        for (auto const& c : plan_.constraints) line("  " + c);
        if (run_.options.empty()) return;
        section("options");
        for (auto const& o : run_.options) line("  " + o.name + ": " + o.value + (o.is_default ? " (default)" : ""));
    }

    void write_budgets() {
        if (plan_.budgets.empty()) return;
        section("budgets (per GPU; a larger limit saves about this much, until the plan changes)");
        text_table t({"budget", ">limit", ">use", ">share", "a larger limit saves"});
        for (auto const& b : plan_.budgets) {
            auto const amount = [&b](double x) { return b.in_bytes ? bytes_text(static_cast<std::int64_t>(x)) : fixed_text(x, 6); };
            std::string saves = "nothing";
            if (b.multiplier > 0)
                saves = b.in_bytes ? microseconds_text(1e9 * b.multiplier) + " us per GB" : fixed_text(b.multiplier, 6) + " us per unit";
            t.add({b.name, amount(b.limit), amount(b.use), b.limit > 0 ? percent_text(b.use / b.limit) : "", saves});
        }
        out_ += t.text();
    }

    void write_projections() {
        auto const roles = find_projections(*view_);
        if (roles.empty()) return;
        text_table forward({"weight", ">copies", "x", "weight: stored -> kept -> used", "y"});
        text_table backward({"weight", ">copies", "grad y", "weight", "grad x", "| grad y", "x", "grad weight -> stored"});
        std::vector<std::string> headers{"weight", ">copies"};
        for (std::size_t a = 0; a < plan_.mesh.dims(); ++a) headers.push_back(plan_.mesh.name(a));
        text_table names(headers);
        std::vector<std::vector<std::pair<axis_pattern, std::string>>> details(plan_.mesh.dims());  // pattern -> one role that shows it
        bool has_backward = false;
        for (auto const& role : roles)
            for (auto const& [p, n] : role.variants) {
                auto const& l = p.layouts;
                std::string const copies = role.variants.size() == 1 ? count_text(n) : count_text(n) + " of " + count_text(role.count());
                auto const chain = [this](std::initializer_list<plan_layout> layouts) { return view_->text(layouts); };
                forward.add(
                    {role.name, copies, chain({l.x_from, l.x_kept, l.x}), chain({l.stored, l.weight_kept, l.used}), chain({l.y, l.y_to})});
                std::vector<std::string> b{role.name, copies, "", "", "", "|"};
                if (auto const& to = l.to_input)
                    b = {role.name, copies, chain({to->grad_y}), chain({to->weight}), chain({to->grad_x, to->grad_x_to}), "|"};
                if (auto const& to = l.to_weight) {
                    b[5] += " " + chain({to->grad_y});
                    b.push_back(chain({to->x}));
                    b.push_back(chain({to->grad_weight, to->stored}));
                }
                has_backward = has_backward || l.to_input || l.to_weight;
                backward.add(b);
                std::vector<std::string> cells{role.name, copies};
                for (std::size_t a = 0; a < plan_.mesh.dims(); ++a) {
                    auto const pattern = pattern_on(*view_, p, a);
                    cells.push_back(pattern.name);
                    bool known = false;
                    for (auto const& d : details[a]) known = known || d.first == pattern;
                    if (!known) details[a].emplace_back(pattern, role.name);
                }
                names.add(cells);
            }
        section("projections, forward: y = x weight (one placement per axis: S<dim> cut, R whole, P partial sums; -> is a move)");
        out_ += forward.text();
        if (has_backward) {
            section("projections, backward: grad x = grad y weight | grad weight = grad y x");
            out_ += backward.text();
        }
        section("patterns (read off the layouts above, axis by axis)");
        out_ += names.text();
        for (std::size_t a = 0; a < plan_.mesh.dims(); ++a) {
            if (plan_.mesh.size(a) == 1) continue;
            std::string s;
            for (auto const& [name, n] : count_patterns(*view_, roles, a)) s += (s.empty() ? "" : ", ") + count_text(n) + " " + name;
            line("  " + plan_.mesh.name(a) + ": " + s);
            for (auto const& [pattern, role] : details[a]) line("    " + pattern.name + " (" + role + "): " + pattern.detail);
        }
    }

    void write_collectives() {
        text_table t({"kind", "axes", "what", ">count", ">bytes per GPU", ">us"});
        std::size_t slices = 0;
        for (auto const& r : sum_collectives(plan_, view_ ? &*view_ : nullptr)) {
            if (r.kind == collective_kind::slice) {
                slices += r.count;
                continue;
            }
            t.add({std::string(to_string(r.kind)), axes_text(plan_.mesh, r.axes), r.what ? std::string(to_string(*r.what)) : "",
                   count_text(r.count), bytes_text(r.bytes), microseconds_text(r.cost)});
        }
        section("collectives (bytes: gathered buffer of an all_gather, input of a reduce_scatter, buffer of the others)");
        if (t.empty()) line("  none");
        else out_ += t.text();
        if (slices) line("  and " + count_text(slices) + " local slices, which cost nothing");
    }

    void write_memory() {
        auto const& m = plan_.memory;
        section("parameters");
        std::string s = "  " + bytes_text(m.parameters_global) + " in all, " + bytes_text(m.parameters_local) + " on each GPU";
        if (m.parameters_local > 0)
            s += " (1/" + fixed_text(static_cast<double>(m.parameters_global) / static_cast<double>(m.parameters_local), 2) + ")";
        line(s);
    }
};

}  // namespace detail

/// The report as text, lines of any width, ending in a newline.
inline std::string report_text(run_report const& run) { return detail::report_writer(run).write(); }

}  // namespace cantle

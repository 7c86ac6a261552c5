// SPDX-License-Identifier: BSL-1.0
// Under autograd every collective takes a scalar from the one before and gives one to the next: the chain. Its end is an output of the
// gradient's computation and its start a wanted input, so that autograd runs the backward of every collective, in exactly the reverse
// order, on every rank - also on a rank that does not use what it received.
#include <adapters/libtorch/region_ranks.hpp>

#include <cantle/base/error.hpp>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace cantle::libtorch {
namespace {

using at::Tensor;
using detail::region_call;
using detail::region_move;

/// [.. n a ..] -> [n][.. a ..], contiguous.
Tensor cut(Tensor const& t, std::int64_t dim, std::int64_t n) {
    return t.unflatten(dim, {n, t.size(dim) / n}).movedim(dim, 0).contiguous();
}
/// [n][.. a ..] -> [.. n a ..]
Tensor join(Tensor const& t, std::int64_t dim) { return t.movedim(0, dim).flatten(dim, dim + 1); }

Tensor run_move(region_call const& call, region_move const& m, Tensor const& t) {
    auto const n = m.group.members;
    transfer x;
    x.kind = m.kind;
    x.axes = m.group.axes;
    x.reduce = m.reduce;
    x.members = n;
    x.member = m.group.member;
    bool const cuts = m.kind == collective_kind::reduce_scatter || m.kind == collective_kind::all_to_all;
    bool const joins = m.kind == collective_kind::all_gather || m.kind == collective_kind::all_to_all;
    if (m.kind == collective_kind::permute) {
        x.send_to = ((x.member + m.by) % n + n) % n;
        x.receive_from = ((x.member - m.by) % n + n) % n;
    }
    auto const buffer = cuts ? cut(t, m.cut_dim, n) : t.contiguous();
    x.before = buffer.sizes().vec();
    x.after = x.before;
    if (m.kind == collective_kind::all_gather) x.after.insert(x.after.begin(), n);
    if (m.kind == collective_kind::reduce_scatter) x.after.erase(x.after.begin());
    x.pack = cantle::detail::same(x.before);
    x.unpack = cantle::detail::same(x.after);
    auto const got = call.run.others->run(x, buffer);
    return joins ? join(got, m.join_dim) : got;
}

region_move transposed(region_move m) {
    if (m.kind == collective_kind::all_gather) m.kind = collective_kind::reduce_scatter;
    else if (m.kind == collective_kind::reduce_scatter) {
        m.kind = collective_kind::all_gather;
        m.reduce = reduction::sum;
    }
    std::swap(m.cut_dim, m.join_dim);
    m.by = -m.by;
    return m;
}

/// What a node of autograd's graph keeps.
struct kept_move : torch::CustomClassHolder {
    std::shared_ptr<region_call> call;
    region_move move;
};

struct chained_move : torch::autograd::Function<chained_move> {
    static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, Tensor const& t, Tensor const& chain,
                                                  c10::intrusive_ptr<kept_move> const& kept) {
        context->saved_data["move"] = c10::IValue::make_capsule(kept);
        return {run_move(*kept->call, kept->move, t), chain.clone()};
    }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list grads) {
        auto const capsule = context->saved_data["move"].toCapsule();
        auto const& kept = static_cast<kept_move const&>(*capsule);
        try {
            auto const& m = kept.move;
            auto g = run_move(*kept.call, transposed(m), grads[0]);
            if (m.kind == collective_kind::reduce_scatter && m.reduce == reduction::avg) g = g / m.group.members;
            return {g, grads[1], Tensor()};
        } catch (...) {  // the engine passes on standard exceptions only; the caller of the backward takes this one
            kept.call->failure = std::current_exception();
            throw std::runtime_error(kept.call->subject() + ": a collective of the backward failed");
        }
    }
};

}  // namespace

void region_ranks::refuse(std::string const& problem, std::string const& remedy) const {
    throw error(error_code::bad_region, call_->subject(), problem, remedy);
}

bool region_ranks::has(std::string const& axis) const {
    auto const& all = mesh().axes();
    return std::any_of(all.begin(), all.end(), [&](mesh_axis const& a) { return a.name == axis; });
}

detail::region_group region_ranks::group(region_axes const& axes) const {
    detail::region_group g;
    for (auto name : axes.names) {
        bool const optional = !name.empty() && name.back() == '?';
        if (optional) name.pop_back();
        if (optional && !has(name)) continue;
        auto const axis = static_cast<std::uint8_t>(mesh().find(name).value);
        if (std::find(g.axes.begin(), g.axes.end(), axis) != g.axes.end())
            refuse("a group names axis '" + name + "' twice", "name every axis once");
        if (mesh().size(axis) == 1) continue;
        g.axes.push_back(axis);
        g.members *= mesh().size(axis);
    }
    g.member = member_of(mesh(), g.axes, rank());
    return g;
}

Tensor region_ranks::moved(Tensor const& t, region_move const& m) const {
    if (m.group.members == 1) return t;
    bool const listened = at::GradMode::is_enabled() && t.is_floating_point();
    if (!call_->chain.defined()) {
        if (listened && t.requires_grad())
            refuse("autograd listens to a collective outside of 'local'", "differentiate through 'local', or call it on detached tensors");
        return run_move(*call_, m, t);
    }
    if (!listened) return run_move(*call_, m, t);
    if (m.reduce == reduction::max || m.reduce == reduction::min)
        refuse("autograd listens to a " + std::string(to_string(m.reduce)) + ", which has no gradient here",
               "call it under at::NoGradGuard, or give 'local_backward'");
    for (auto a : m.group.axes)
        if (!(call_->sum_axes >> a & 1u))
            refuse("it communicates on axis '" + mesh().name(a) + "', on which all its tensors and their gradients are replicated",
                   "declare input_gradients '" + mesh().name(a) + "=P', or give 'local_backward'");
    auto kept = c10::make_intrusive<kept_move>();
    kept->call = call_;
    kept->move = m;
    auto const made = chained_move::apply(t, call_->chain, std::move(kept));
    call_->chain = made[1];
    return made[0];
}

std::int64_t region_ranks::dim_of(Tensor const& t, std::int64_t dim, std::int64_t parts) const {
    auto const d = dim < 0 ? dim + t.dim() : dim;
    if (d < 0 || d >= t.dim())
        refuse("a collective names dim " + std::to_string(dim) + " of " + c10::str(t.sizes()), "name one that it has");
    if (t.size(d) % parts != 0)
        refuse("a group of " + std::to_string(parts) + " cuts dim " + std::to_string(d) + " of " + c10::str(t.sizes()) + " unevenly",
               "pad it, or use exchange()");
    return d;
}

Tensor region_ranks::all_gather(Tensor const& t, std::int64_t dim, region_axes const& axes) const {
    auto const d = dim_of(t, dim, 1);
    return moved(t, {collective_kind::all_gather, d, d, 0, reduction::sum, group(axes)});
}
Tensor region_ranks::reduce_scatter(Tensor const& t, std::int64_t dim, region_axes const& axes, reduction kind) const {
    auto g = group(axes);
    auto const d = dim_of(t, dim, g.members);
    return moved(t, {collective_kind::reduce_scatter, d, d, 0, kind, std::move(g)});
}
Tensor region_ranks::all_reduce(Tensor const& t, region_axes const& axes, reduction kind) const {
    return moved(t, {collective_kind::all_reduce, 0, 0, 0, kind, group(axes)});
}
Tensor region_ranks::all_to_all(Tensor const& t, std::int64_t cut_dim, std::int64_t join_dim, region_axes const& axes) const {
    auto g = group(axes);
    auto const from = dim_of(t, cut_dim, g.members), to = dim_of(t, join_dim, 1);
    return moved(t, {collective_kind::all_to_all, from, to, 0, reduction::sum, std::move(g)});
}
Tensor region_ranks::shift(Tensor const& t, region_axes const& axes, std::int64_t by) const {
    return moved(t, {collective_kind::permute, 0, 0, by, reduction::sum, group(axes)});
}

row_exchange region_ranks::exchange(Tensor const& counts, region_axes const& axes) const {
    auto const g = group(axes);
    if (counts.scalar_type() != at::kLong || counts.dim() < 1 || counts.dim() > 2 || counts.size(0) != g.members)
        refuse("an exchange gets counts " + std::string(c10::toString(counts.scalar_type())) + " " + c10::str(counts.sizes()),
               "give int64 [" + std::to_string(g.members) + "] or [" + std::to_string(g.members) + ", kinds]");
    auto const mine = counts.dim() == 1 ? counts.unsqueeze(1) : counts;
    return row_exchange(*this, g, all_gather(mine.unsqueeze(0), 0, axes).cpu());
}

row_exchange::row_exchange(region_ranks ranks, detail::region_group group, Tensor const& all)
    : ranks_(std::move(ranks)), group_(std::move(group)), received_(all.select(1, group_.member).contiguous()),
      out_(all.select(0, group_.member).sum(-1)), in_(received_.sum(-1)) {
    if (all.numel() > 0) largest_ = std::max<std::int64_t>(1, all.sum(-1).max().item<std::int64_t>());  // an empty message is one row
}

namespace {
/// Where the rows of members with so many each stand in a tensor with `largest` places per member.
Tensor places(Tensor const& counts, std::int64_t largest) {
    auto const first = at::arange(counts.size(0)) * largest - (counts.cumsum(0) - counts);
    auto const moved = first.repeat_interleave(counts);
    return moved + at::arange(moved.size(0));
}
}  // namespace

Tensor row_exchange::send(Tensor const& rows, Tensor const& mine, Tensor const& theirs) const {
    auto const n = mine.sum().item<std::int64_t>();
    if (rows.dim() < 1 || rows.size(0) != n)
        ranks_.refuse("an exchange of " + std::to_string(n) + " rows gets " + c10::str(rows.sizes()), "give as many rows as were counted");
    if (group_.members == 1) return rows;
    auto sizes = rows.sizes().vec();
    sizes[0] = group_.members * largest_;
    auto const padded = at::zeros(sizes, rows.options()).index_copy(0, places(mine, largest_).to(rows.device()), rows);
    auto const got = ranks_.moved(padded, {collective_kind::all_to_all, 0, 0, 0, reduction::sum, group_});
    return got.index_select(0, places(theirs, largest_).to(rows.device()));
}
Tensor row_exchange::there(Tensor const& rows) const { return send(rows, out_, in_); }
Tensor row_exchange::back(Tensor const& rows) const { return send(rows, in_, out_); }

}  // namespace cantle::libtorch

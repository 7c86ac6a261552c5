// SPDX-License-Identifier: BSL-1.0
#pragma once
// One layer of a plan as a self-contained SVG: forward on the left, backward on the right. Cards are ops, colours are layouts, dark pills
// are collectives on the edges. The same plan gives the same bytes.
#include <cantle/report/layer_picture.hpp>
#include <cantle/report/layered_drawing.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cantle {

namespace detail {

class svg_writer {
public:
    svg_writer(sharding_plan const& plan, training_graph const& graph) : plan_(plan), graph_(graph), view_(plan, graph) {}

    std::string write() {
        auto const prefix = representative_layer(graph_);
        for (auto which : {phase::forward, phase::backward}) {
            column c;
            c.title = which == phase::forward ? "forward" : "backward";
            c.picture = picture_of_layer(view_, prefix, which);
            if (c.picture.nodes.empty()) continue;
            for (auto const& n : c.picture.nodes) c.drawing.boxes.push_back(box_of(n));
            for (auto const& e : c.picture.edges) c.drawing.edges.push_back({e.from, e.to, {}});
            place_in_rows(c.drawing, 22, 34);
            columns_.push_back(std::move(c));
        }
        for (auto const& c : columns_) {
            for (auto const& n : c.picture.nodes) {
                if (n.layout) use(*n.layout);
                for (auto const& l : n.lines)
                    if (l.swatch) use(*l.swatch);
            }
            for (auto const& e : c.picture.edges) use(e.layout);
        }
        double width = 0, height = 0;
        for (auto const& c : columns_) {
            width += c.drawing.width + (width > 0 ? column_space : 0);
            height = std::max(height, c.drawing.height);
        }
        page_width_ = std::max(width, 900.0) + 2 * margin;
        double const top = write_head(prefix);
        double x = margin + std::max(0.0, 900.0 - width) / 2;
        for (auto const& c : columns_) {
            text(x, top, 15, "sans b", "#111827", c.title);
            line(x, top + 9, x + c.drawing.width, top + 9, "#d1d5db");
            write_column(c, x, top + 28);
            x += c.drawing.width + column_space;
        }
        double const page_height = top + 28 + height + margin;
        auto const w = number(page_width_), h = number(page_height);
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w + " " + h + "\">\n" +
               style() + markers() + "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + out_ + "</svg>\n";
    }

private:
    struct column {
        std::string title;
        layer_picture picture;
        layered_drawing drawing;
    };
    struct colour { std::string_view light, strong; };
    static constexpr double margin = 36, column_space = 90, pad = 10, line_height = 15, swatch = 9;

    sharding_plan const& plan_;
    training_graph const& graph_;
    plan_view view_;
    std::vector<column> columns_;
    std::vector<plan_layout> used_;           // in order of appearance
    std::map<plan_layout, std::size_t> place_;
    std::string out_;
    double page_width_ = 0;

    void use(plan_layout l) {
        if (place_.try_emplace(l, used_.size()).second) used_.push_back(l);
    }
    /// Colours told apart with most eyes: light fill, strong line. Replicate everywhere is grey. More layouts than colours start again.
    colour colour_of(plan_layout l) const {
        static constexpr std::array<colour, 14> palette{{{"#dbeafe", "#2563eb"}, {"#ffedd5", "#ea580c"}, {"#d1fae5", "#059669"},
                                                         {"#ede9fe", "#7c3aed"}, {"#fef3c7", "#b45309"}, {"#fce7f3", "#db2777"},
                                                         {"#cffafe", "#0891b2"}, {"#ecfccb", "#65a30d"}, {"#fee2e2", "#dc2626"},
                                                         {"#e0e7ff", "#3730a3"}, {"#f5d0fe", "#a21caf"}, {"#ccfbf1", "#0f766e"},
                                                         {"#fde68a", "#92400e"}, {"#e7e5e4", "#57534e"}}};
        if (plan_.at(l).is_replicated()) return {"#f3f4f6", "#6b7280"};
        std::size_t rank = 0;  // replicated layouts take no colour
        for (auto u : used_) {
            if (u == l) break;
            rank += !plan_.at(u).is_replicated();
        }
        return palette[rank % palette.size()];
    }
    static std::string_view colour_of(collective_kind k) {
        constexpr std::string_view colours[] = {"#9ca3af", "#1e40af", "#6d28d9", "#b91c1c", "#9a3412", "#166534"};
        return colours[static_cast<std::size_t>(k)];
    }

    static std::string number(double v) {
        auto s = fixed_text(v, 1);
        if (s.size() > 2 && s.compare(s.size() - 2, 2, ".0") == 0) s.resize(s.size() - 2);
        return s;
    }
    static std::string escaped(std::string_view s) {
        std::string out;
        for (char c : s) {
            if (c == '&') out += "&amp;";
            else if (c == '<') out += "&lt;";
            else if (c == '>') out += "&gt;";
            else if (static_cast<unsigned char>(c) < 0x20) out += ' ';
            else out += c;
        }
        return out;
    }
    /// Monospaced text is measured exactly (0.602 em), other text from above.
    static double width_of(std::string_view s, double size, bool mono) {
        return static_cast<double>(s.size()) * size * (mono ? 0.602 : 0.62);
    }
    static std::string shortened(std::string const& s, double size, double room) {
        auto const most = static_cast<std::size_t>(std::max(1.0, room / (0.62 * size)));
        return s.size() <= most ? s : s.substr(0, most > 3 ? most - 3 : 0) + "...";
    }

    static std::string style() {
        return "<style>\n.sans{font-family:'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif}\n.mono{font-family:'DejaVu Sans "
               "Mono',Menlo,Consolas,'Liberation Mono',monospace}\n"
               ".b{font-weight:bold}\n.r{text-anchor:end}\n.m{text-anchor:middle}\n</style>\n";
    }
    std::string markers() const {
        std::string s = "<defs>\n";
        for (auto l : used_)
            s += "<marker id=\"a" + std::to_string(place_.at(l)) +
                 "\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" "
                 "orient=\"auto\"><path d=\"M0 .8 7.5 4 0 7.2z\" fill=\"" +
                 std::string(colour_of(l).strong) + "\"/></marker>\n";
        return s + "</defs>\n";
    }
    void text(double x, double y, double size, std::string_view css, std::string_view fill, std::string_view s) {
        out_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" font-size=\"" + number(size) + "\" class=\"" + std::string(css) +
                "\" fill=\"" + std::string(fill) + "\" xml:space=\"preserve\">" + escaped(s) + "</text>\n";
    }
    void line(double x1, double y1, double x2, double y2, std::string_view stroke) {
        out_ += "<path d=\"M" + number(x1) + " " + number(y1) + "L" + number(x2) + " " + number(y2) + "\" stroke=\"" + std::string(stroke) +
                "\" fill=\"none\"/>\n";
    }
    void rect(double x, double y, double w, double h, double radius, std::string_view fill, std::string_view stroke,
              std::string_view more = "") {
        out_ += "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(w) + "\" height=\"" + number(h) + "\" rx=\"" +
                number(radius) + "\" fill=\"" + std::string(fill) + "\" stroke=\"" + std::string(stroke) + "\"" + std::string(more) +
                "/>\n";
    }
    void swatch_at(double x, double y, plan_layout l) { rect(x, y, swatch, swatch, 2, colour_of(l).light, colour_of(l).strong); }

    drawn_box box_of(picture_node const& n) const {
        drawn_box b;
        for (auto const& l : n.lines) b.width = std::max(b.width, width_of(l.text, 10, true) + swatch + 6);
        if (n.what == picture_node::kind::move) {
            b.width = b.width - swatch - 6 + 2 * pad;
            b.height = static_cast<double>(n.lines.size()) * line_height + 6;
            return b;
        }
        b.width = std::max(b.width + 4, width_of(n.title, 12, false) + (n.aside.empty() ? 0.0 : width_of(n.aside, 10, true) + 14));
        b.width = std::max(b.width, std::min(width_of(n.subtitle, 10, false), 260.0)) + 2 * pad + 4;
        b.height = 10 + 16 + (n.subtitle.empty() ? 0 : 14) + 4;
        std::uint32_t block = 0;
        for (auto const& l : n.lines) {
            b.height += line_height + (l.block != block ? 7 : 0);
            block = l.block;
        }
        b.height += block ? 11 : 7;
        return b;
    }

    double write_head(std::string const& prefix) {
        auto const& o = graph_.origin;
        std::string title = o.model.empty() ? "plan" : o.model;
        title += prefix.empty() ? "" : ", " + prefix;
        title += " on mesh " + plan_.mesh.text();
        text(margin, margin + 14, 21, "sans b", "#111827", title);
        std::string sub;
        if (o.batch) sub += "batch " + count_text(o.batch) + (o.sequence ? " x sequence " + count_text(o.sequence) : "") + ", ";
        if (!o.precision.empty()) sub += o.precision + ", ";
        sub += "whole step " + microseconds_text(plan_.objective) + " us, bound " + microseconds_text(plan_.bound) + " us (gap " +
               percent_text(plan_.gap()) + ")";
        text(margin, margin + 36, 12, "sans", "#4b5563", sub);

        double x = margin, y = margin + 64;
        auto const flow = [&](double width) {
            if (x + width > page_width_ - margin && x > margin + 74) {
                x = margin + 74;
                y += 20;
            }
        };
        text(x, y, 11, "sans b", "#374151", "layouts");
        x += 74;
        for (auto l : used_) {
            auto const name = view_.text(l), meaning = meaning_of(plan_.at(l));
            double const width = 16 + width_of(name, 11, true) + 8 + width_of(meaning, 10, false) + 26;
            flow(width);
            rect(x, y - 9, 11, 11, 2, colour_of(l).light, colour_of(l).strong);
            text(x + 17, y, 11, "mono b", "#111827", name);
            text(x + 17 + width_of(name, 11, true) + 8, y, 10, "sans", "#6b7280", meaning);
            x += width;
        }
        auto const kinds = kinds_used();
        if (kinds.empty()) return y + 42;
        x = margin;
        y += 24;
        text(x, y, 11, "sans b", "#374151", "moves");
        x += 74;
        for (auto k : kinds) {
            auto const name = std::string(to_string(k)) + (k == collective_kind::slice ? " (local, free)" : "");
            double const width = width_of(name, 10, true) + 2 * pad;
            flow(width + 12);
            pill(x, y - 13, width, 18, k);
            text(x + pad, y, 10, "mono", k == collective_kind::slice ? "#4b5563" : "#ffffff", name);
            x += width + 12;
        }
        flow(620);
        text(x + 6, y, 10, "sans", "#6b7280",
             "with axes, message bytes of one GPU, and predicted microseconds; a card's time is its computation");
        return y + 42;
    }
    /// "dim 0 over dp, then tp; partial sums over tp".
    std::string meaning_of(layout const& l) const {
        std::string s;
        for (std::size_t i = 0; i < l.digits().size(); ++i) {
            auto const& d = l.digits()[i];
            bool const starts = i == 0 || l.digits()[i - 1].dim != d.dim;
            if (starts) s += (s.empty() ? "dim " : "; dim ") + std::to_string(d.dim) + " over ";
            else s += ", then ";
            s += d.is_cut() ? plan_.mesh.name(static_cast<std::size_t>(d.axis)) : "inside blocks of 1/" + std::to_string(d.extent);
        }
        std::string partial;
        for (std::size_t a = 0; a < plan_.mesh.dims(); ++a)
            if (l.on(a).is_partial()) partial += (partial.empty() ? "partial over " : ", ") + plan_.mesh.name(a);
        if (!partial.empty()) s += (s.empty() ? "" : "; ") + partial;
        return s.empty() ? "whole on every GPU" : s;
    }
    std::vector<collective_kind> kinds_used() const {
        std::vector<collective_kind> kinds;
        for (std::uint8_t k = 0; k <= static_cast<std::uint8_t>(collective_kind::permute); ++k) {
            auto const kind = static_cast<collective_kind>(k);
            bool any = false;
            for (auto const& c : columns_)
                for (auto const& n : c.picture.nodes)
                    for (auto const& l : n.lines) any = any || first_word(l.text) == to_string(kind);
            if (any) kinds.push_back(kind);
        }
        return kinds;
    }
    static std::string_view first_word(std::string_view s) { return s.substr(0, s.find(' ')); }
    static collective_kind kind_of(std::string_view step) {
        for (std::uint8_t k = 1; k <= static_cast<std::uint8_t>(collective_kind::permute); ++k)
            if (step.find(to_string(static_cast<collective_kind>(k))) != std::string_view::npos) return static_cast<collective_kind>(k);
        return collective_kind::slice;
    }
    void pill(double x, double y, double w, double h, collective_kind k) {
        if (k == collective_kind::slice) rect(x, y, w, h, 9, "#ffffff", "#9ca3af", " stroke-dasharray=\"3 2\"");
        else rect(x, y, w, h, 9, colour_of(k), colour_of(k));
    }

    void write_column(column const& c, double left, double top) {
        auto const& d = c.drawing;
        for (std::size_t e = 0; e < d.edges.size(); ++e) write_edge(c, e, left, top);
        for (std::size_t i = 0; i < d.boxes.size(); ++i) {
            auto const& b = d.boxes[i];
            auto const& n = c.picture.nodes[i];
            if (n.what == picture_node::kind::move) write_move(n, b, left + b.x, top + b.y);
            else write_card(n, b, left + b.x, top + b.y);
        }
    }
    void write_edge(column const& c, std::size_t e, double left, double top) {
        auto const& d = c.drawing;
        auto const& edge = d.edges[e];
        auto const& from = d.boxes[edge.from];
        auto const& to = d.boxes[edge.to];
        auto const l = c.picture.edges[e].layout;
        double x = left + from.x + from.width / 2;
        std::string path = "M" + number(x) + " " + number(top + from.y + from.height);
        double y = top + d.rows[from.row].second;
        path += "V" + number(y);
        auto const curve_to = [&](double nx, double ny) {
            double const half = (y + ny) / 2;
            path += "C" + number(x) + " " + number(half) + " " + number(nx) + " " + number(half) + " " + number(nx) + " " + number(ny);
            x = nx;
            y = ny;
        };
        for (auto const& p : edge.passages) {
            curve_to(left + p.x, top + p.top);
            y = top + p.bottom;
            path += "V" + number(y);
        }
        curve_to(left + to.x + to.width / 2, top + d.rows[to.row].first);
        if (to.y > d.rows[to.row].first) path += "V" + number(top + to.y);
        out_ += "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + std::string(colour_of(l).strong) +
                "\" stroke-width=\"1.8\" marker-end=\"url(#a" + std::to_string(place_.at(l)) + ")\"/>\n";
    }
    void write_move(picture_node const& n, drawn_box const& b, double x, double y) {
        auto kind = collective_kind::slice;
        for (auto const& l : n.lines)
            if (kind == collective_kind::slice) kind = kind_of(l.text);
        pill(x, y, b.width, b.height, kind);
        double at = y + 14;
        for (auto const& l : n.lines) {
            text(x + b.width / 2, at, 10, "mono m", kind == collective_kind::slice ? "#4b5563" : "#ffffff", l.text);
            at += line_height;
        }
    }
    void write_card(picture_node const& n, drawn_box const& b, double x, double y) {
        bool const terminal = n.what == picture_node::kind::terminal;
        auto const c = n.layout ? colour_of(*n.layout) : colour{"#f3f4f6", "#6b7280"};
        rect(x, y, b.width, b.height, terminal ? 14 : 6, terminal ? c.light : "#ffffff", c.strong,
             terminal ? " stroke-dasharray=\"4 3\"" : " stroke-width=\"1.4\"");
        double at = y + 18;
        if (!terminal) {
            double const band = 10 + 16 + (n.subtitle.empty() ? 0 : 14) + 2;
            out_ += "<path d=\"M" + number(x + .7) + " " + number(y + band) + "V" + number(y + 6) + "q0 -5.3 5.3 -5.3H" +
                    number(x + b.width - 6) + "q5.3 0 5.3 5.3V" + number(y + band) + "z\" fill=\"" + std::string(c.light) + "\"/>\n";
        }
        double const aside = n.aside.empty() ? 0 : width_of(n.aside, 10, true) + 10;
        text(x + pad, at, 12, "sans b", "#111827", shortened(n.title, 12, b.width - 2 * pad - aside));
        if (!n.aside.empty()) text(x + b.width - pad, at, 10, "mono r", "#374151", n.aside);
        if (!n.subtitle.empty()) {
            at += 14;
            text(x + pad, at, 10, "sans", "#4b5563", shortened(n.subtitle, 10, b.width - 2 * pad));
        }
        at += 8;
        std::uint32_t block = 0;
        for (std::size_t i = 0; i < n.lines.size(); ++i) {
            auto const& l = n.lines[i];
            if (l.block != block) at += 7;
            if (l.block && l.block != block) {
                std::size_t count = 0;
                for (std::size_t j = i; j < n.lines.size() && n.lines[j].block == l.block; ++j) ++count;
                rect(x + pad - 4, at - 0.5, b.width - 2 * pad + 8, static_cast<double>(count) * line_height + 4, 4, "#f8fafc", "#e5e7eb");
            }
            block = l.block;
            at += line_height;
            if (l.swatch) {
                swatch_at(x + pad, at - 8, *l.swatch);
                text(x + pad + swatch + 6, at, 10, "mono", "#111827", l.text);
            } else {
                auto const k = kind_of(l.text);
                out_ += "<path d=\"M" + number(x + pad + 1) + " " + number(at - 7) + "h7l-3.5 7z\" fill=\"" + std::string(colour_of(k)) +
                        "\"/>\n";
                text(x + pad + swatch + 6, at, 10, "mono b", k == collective_kind::slice ? "#6b7280" : colour_of(k), l.text);
            }
        }
    }
};

}  // namespace detail

/// The picture of one layer (representative_layer) as SVG text. Precondition: the plan is one of this graph.
inline std::string layer_svg(sharding_plan const& plan, training_graph const& graph) { return detail::svg_writer(plan, graph).write(); }

}  // namespace cantle

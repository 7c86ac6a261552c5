// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_attention_samples(sample_list& s) {
    struct shape_of {
        std::int64_t batch, heads, key_heads, queries, keys, width;
        shape mask;
        bool causal;
    };
    for (auto const& c : {shape_of{2, 12, 12, 4, 4, 8, {}, true},              // GPT
                          shape_of{12, 24, 12, 3, 5, 4, {}, false},            // grouped queries
                          shape_of{4, 12, 12, 4, 6, 4, {4, 12, 4, 6}, false},  // a bias per head, as in T5
                          shape_of{3, 4, 4, 4, 6, 4, {3, 1, 4, 6}, false},     // a mask per sample, as in BERT
                          shape_of{2, 24, 12, 4, 4, 8, {4, 4}, false}, shape_of{2, 12, 1, 12, 6, 4, {}, false},     // one key head
                          shape_of{2, 12, 1, 6, 6, 4, {}, true}, shape_of{2, 3, 3, 12, 4, 4, {1, 1, 1, 4}, false},  // padding of keys
                          shape_of{1, 2, 2, 1, 12, 4, {}, false},                                                   // one query
                          shape_of{3, 2, 2, 12, 12, 4, {1, 2, 12, 12}, false}}) {
        auto const q = eighths({c.batch, c.heads, c.queries, c.width}) / 32, k = eighths({c.batch, c.key_heads, c.keys, c.width}) / 32,
                   v = eighths({c.batch, c.key_heads, c.keys, c.width});
        at::Tensor mask;
        if (!c.mask.empty()) mask = eighths(c.mask) / 16;
        bool const grouped = c.heads != c.key_heads;
        auto const masked = [&mask](sample& made) -> sample& {
            return mask.defined() ? made.arg("attn_mask", mask) : made.arg("attn_mask", none);
        };
        for (bool own : {true, false}) {  // cantle's op and the CPU kernel of ATen: the same arguments in another order
            auto forward = sample(own ? "cantle::sdpa" : "aten::_scaled_dot_product_flash_attention_for_cpu");
            forward.arg("query", q).arg("key", k).arg("value", v);
            if (own) masked(forward);
            forward.arg("dropout_p", 0.0).arg("is_causal", c.causal);
            if (!own) masked(forward);
            forward.arg("scale", none);
            if (own) forward.arg("enable_gqa", grouped);
            auto const out = call_op(forward.made.operation, forward.made.operands);
            s.push_back(forward);
            auto backward = sample(own ? "cantle::sdpa_backward" : "aten::_scaled_dot_product_flash_attention_for_cpu_backward");
            backward.arg("grad_out", eighths(out[0].sizes().vec())).arg("query", q).arg("key", k).arg("value", v);
            backward.arg("out", out[0]).arg("logsumexp", out[1]);
            if (own) masked(backward);
            backward.arg("dropout_p", 0.0).arg("is_causal", c.causal);
            if (!own) masked(backward);
            backward.arg("scale", none);
            if (own) backward.arg("enable_gqa", grouped);
            s.push_back(backward);
        }
    }
}

std::vector<std::string> ops_without_cpu_kernel() {
    std::vector<std::string> names{"aten::_fused_rms_norm_backward", "prims::iota"};  // the latter exists in Python only
    for (std::string kernel : {"flash_attention", "efficient_attention", "cudnn_attention", "fused_attention_overrideable"})
        for (auto direction : {"", "_backward"}) names.push_back("aten::_scaled_dot_product_" + kernel + direction);
    return names;
}

}  // namespace cantle::libtorch

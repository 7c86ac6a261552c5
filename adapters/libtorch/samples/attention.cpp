// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_attention_samples(sample_list& s) {
    struct shape_of {
        std::int64_t batch, heads, key_heads, queries, keys, width, mask_rank;
        bool causal;
    };
    for (auto const& c :
         {shape_of{2, 12, 12, 4, 4, 8, 0, true}, shape_of{12, 24, 12, 3, 5, 4, 0, false}, shape_of{4, 12, 12, 4, 6, 4, 4, false},
          shape_of{3, 4, 4, 4, 6, 4, 3, false}, shape_of{2, 24, 12, 4, 4, 8, 2, false}}) {
        auto const q = eighths({c.batch, c.heads, c.queries, c.width}) / 32, k = eighths({c.batch, c.key_heads, c.keys, c.width}) / 32,
                   v = eighths({c.batch, c.key_heads, c.keys, c.width});
        auto forward = sample("cantle::sdpa").arg("query", q).arg("key", k).arg("value", v);
        at::Tensor mask;
        if (c.mask_rank == 4) mask = eighths({c.batch, c.heads, c.queries, c.keys}) / 16;
        if (c.mask_rank == 3) mask = eighths({c.batch, 1, c.queries, c.keys}) / 16;
        if (c.mask_rank == 2) mask = eighths({c.queries, c.keys}) / 16;
        mask.defined() ? forward.arg("attn_mask", mask) : forward.arg("attn_mask", none);
        bool const grouped = c.heads != c.key_heads;
        forward.arg("dropout_p", 0.0).arg("is_causal", c.causal).arg("scale", none).arg("enable_gqa", grouped);
        auto const out = call_op(forward.made.operation, forward.made.operands);
        s.push_back(forward);
        auto backward = sample("cantle::sdpa_backward")
                            .arg("grad_out", eighths(out[0].sizes().vec()))
                            .arg("query", q)
                            .arg("key", k)
                            .arg("value", v)
                            .arg("out", out[0])
                            .arg("logsumexp", out[1]);
        mask.defined() ? backward.arg("attn_mask", mask) : backward.arg("attn_mask", none);
        s.push_back(backward.arg("dropout_p", 0.0).arg("is_causal", c.causal).arg("scale", none).arg("enable_gqa", grouped));
    }
}

}  // namespace cantle::libtorch

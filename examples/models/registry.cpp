// SPDX-License-Identifier: BSL-1.0
#include <examples/models/bert.hpp>
#include <examples/models/decoder.hpp>
#include <examples/models/deepseek.hpp>
#include <examples/models/gpt2.hpp>
#include <examples/models/llama3.hpp>
#include <examples/models/mlp.hpp>
#include <examples/models/model.hpp>
#include <examples/models/t5.hpp>

#include <cantle/base/error.hpp>

#include <algorithm>

namespace cantle_models {
namespace {

using tensors = std::vector<at::Tensor>;

std::int64_t size_of(sizes const& config, std::string_view key) {
    for (auto const& [name, value] : config)
        if (name == key) return value;
    return 0;
}

[[noreturn]] void bad_size(std::string const& model, std::string const& problem, std::string const& remedy) {
    throw cantle::error(cantle::error_code::bad_option, "model " + model, problem, remedy);
}

void check_heads(std::string const& name, std::int64_t dim, std::int64_t heads, std::int64_t kv_heads) {
    if (dim % heads != 0 || heads % kv_heads != 0)
        bad_size(name,
                 "dim " + std::to_string(dim) + ", heads " + std::to_string(heads) + " and kv_heads " + std::to_string(kv_heads) +
                     " do not divide",
                 "let heads divide dim, and kv_heads divide heads");
}

/// Cross-entropy as everyone writes it, in float32 whatever the type of the logits.
at::Tensor cross_entropy(at::Tensor const& logits, at::Tensor const& target) {
    return torch::nn::functional::cross_entropy(logits.to(torch::kFloat).flatten(0, -2), target.flatten());
}

torch::TensorOptions options_of(torch::nn::Module const& module) { return module.parameters().front().options().requires_grad(false); }

at::Tensor random_ids(std::int64_t below, at::IntArrayRef shape, torch::nn::Module const& module) {
    return torch::randint(below, shape, options_of(module).dtype(torch::kLong));
}

template <class Module>
model with_tokens(std::string name, sizes config, Module module) {
    auto const vocab = size_of(config, "vocab");
    model m{std::move(name), std::move(config), module.ptr(), {}, cross_entropy, {}};
    m.forward = [module](tensors const& in) mutable { return module->forward(in[0]); };
    m.example = [module, vocab](std::int64_t b, std::int64_t s) {
        auto const tokens = random_ids(vocab, {b, s}, *module);
        return batch{{{"tokens", tokens}}, random_ids(vocab, {b, s}, *module)};
    };
    return m;
}

model make_llama3(std::string name, sizes config, std::int64_t sequence) {
    auto const at = [&](char const* key) { return size_of(config, key); };
    check_heads(name, at("dim"), at("heads"), at("kv_heads"));
    llama3 const module(llama3_config{at("dim"), at("layers"), at("heads"), at("kv_heads"), at("ffn"), at("vocab"), sequence});
    return with_tokens(std::move(name), std::move(config), module);
}

/// Qwen3, hybrid and context-parallel decoders: what a model is not given by its sizes is off.
model make_decoder(std::string name, sizes config, std::int64_t sequence) {
    auto const at = [&](char const* key) { return size_of(config, key); };
    if (at("heads") % at("kv_heads") != 0)
        bad_size(name, "kv_heads " + std::to_string(at("kv_heads")) + " does not divide heads " + std::to_string(at("heads")),
                 "let kv_heads divide heads");
    decoder_config c{at("dim"), at("layers"), at("heads"), at("kv_heads"), at("head_dim"), at("ffn"), at("vocab"), sequence};
    c.head_norm = name.starts_with("qwen3");
    c.ring = name.find("-cp") != std::string::npos;
    c.window = at("window");
    c.full_every = std::max<std::int64_t>(at("full_every"), 1);
    if (!c.head_norm) c.theta = 500000.0;
    decoder const module(c);
    return with_tokens(std::move(name), std::move(config), module);
}

model make_deepseek(std::string name, sizes config, std::int64_t sequence) {
    auto const at = [&](char const* key) { return size_of(config, key); };
    if (at("top") > at("experts"))
        bad_size(name, "top " + std::to_string(at("top")) + " is more than its " + std::to_string(at("experts")) + " experts",
                 "let top be at most experts");
    if (at("value_dim") > at("nope_dim") + at("rope_dim"))
        bad_size(name, "value_dim is more than nope_dim + rope_dim", "let values be no wider than keys");
    deepseek const module(deepseek_config{at("dim"), at("layers"), at("heads"), at("kv_rank"), at("nope_dim"), at("rope_dim"),
                                          at("value_dim"), at("dense_layers"), at("ffn"), at("experts"), at("top"), at("expert_ffn"),
                                          at("shared"), at("vocab"), sequence});
    return with_tokens(std::move(name), std::move(config), module);
}

model make_gpt2(std::string name, sizes config, std::int64_t) {
    auto const at = [&](char const* key) { return size_of(config, key); };
    check_heads(name, at("dim"), at("heads"), at("heads"));
    gpt2 const module(
        gpt2_config{at("dim"), at("layers"), at("heads"), at("vocab"), at("positions"), static_cast<double>(at("dropout")) / 100.0});
    return with_tokens(std::move(name), std::move(config), module);
}

model make_bert(std::string name, sizes config, std::int64_t) {
    auto const at = [&](char const* key) { return size_of(config, key); };
    check_heads(name, at("dim"), at("heads"), at("heads"));
    bert module(bert_config{at("dim"), at("layers"), at("heads"), at("ffn"), at("vocab"), at("positions"), at("types"),
                            static_cast<double>(at("dropout")) / 100.0});
    auto const vocab = at("vocab"), types = at("types");
    model m{std::move(name), std::move(config), module.ptr(), {}, cross_entropy, {}};
    m.forward = [module](tensors const& in) mutable { return module->forward(in[0], in[1]); };
    m.example = [module, vocab, types](std::int64_t b, std::int64_t s) {
        return batch{{{"tokens", random_ids(vocab, {b, s}, *module)}, {"token_types", random_ids(types, {b, s}, *module)}},
                     random_ids(vocab, {b, s}, *module)};
    };
    return m;
}

model make_t5(std::string name, sizes config, std::int64_t sequence) {
    auto const at = [&](char const* key) { return size_of(config, key); };
    if (at("buckets") % 4 != 0 || at("max_distance") <= at("buckets") / 2)
        bad_size(name, "buckets and max_distance do not fit", "let buckets be a multiple of 4, and max_distance more than half of them");
    t5 module(t5_config{at("dim"), at("layers"), at("heads"), at("head_dim"), at("ffn"), at("vocab"), at("buckets"), at("max_distance"),
                        sequence});
    auto const vocab = at("vocab");
    model m{std::move(name), std::move(config), module.ptr(), {}, cross_entropy, {}};
    m.forward = [module](tensors const& in) mutable { return module->forward(in[0], in[1]); };
    m.example = [module, vocab](std::int64_t b, std::int64_t s) {
        return batch{{{"tokens", random_ids(vocab, {b, s}, *module)}, {"decoder_tokens", random_ids(vocab, {b, s}, *module)}},
                     random_ids(vocab, {b, s}, *module)};
    };
    return m;
}

model make_mlp(std::string name, sizes config, std::int64_t) {
    auto const at = [&](char const* key) { return size_of(config, key); };
    mlp module(mlp_config{at("dim"), at("hidden"), at("layers"), at("classes")});
    auto const dim = at("dim"), classes = at("classes");
    model m{std::move(name), std::move(config), module.ptr(), {}, cross_entropy, {}};
    m.forward = [module](tensors const& in) mutable { return module->forward(in[0]); };
    m.example = [module, dim, classes](std::int64_t b, std::int64_t) {
        return batch{{{"x", torch::randn({b, dim}, options_of(*module))}}, random_ids(classes, {b}, *module)};
    };
    return m;
}

struct row {
    model_info info;
    model (*make)(std::string, sizes, std::int64_t);
};

sizes llama_sizes(std::int64_t dim, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocab) {
    return {{"dim", dim}, {"layers", layers}, {"heads", heads}, {"kv_heads", kv_heads}, {"ffn", ffn}, {"vocab", vocab}};
}
sizes decoder_sizes(std::int64_t dim, std::int64_t layers, std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim,
                    std::int64_t ffn, std::int64_t vocab) {
    auto s = llama_sizes(dim, layers, heads, kv_heads, ffn, vocab);
    s.emplace_back("head_dim", head_dim);
    return s;
}
sizes with_window(sizes s, std::int64_t window, std::int64_t full_every) {
    s.emplace_back("window", window);
    s.emplace_back("full_every", full_every);
    return s;
}
sizes t5_sizes(std::int64_t dim, std::int64_t layers, std::int64_t heads, std::int64_t ffn) {
    return {{"dim", dim}, {"layers", layers}, {"heads", heads}, {"head_dim", 64}, {"ffn", ffn}, {"vocab", 32128}, {"buckets", 32},
            {"max_distance", 128}};
}
sizes gpt2_sizes(std::int64_t dim, std::int64_t layers, std::int64_t heads) {
    return {{"dim", dim}, {"layers", layers}, {"heads", heads}, {"vocab", 50257}, {"positions", 1024}, {"dropout", 0}};
}

std::vector<row> const& rows() {
    static std::vector<row> const all = {
        {{"llama3-8b", "LLaMA 3 8B", llama_sizes(4096, 32, 32, 8, 14336, 128256)}, make_llama3},
        {{"llama3-70b", "LLaMA 3 70B", llama_sizes(8192, 80, 64, 8, 28672, 128256)}, make_llama3},
        {{"llama3-tiny", "LLaMA 3 small enough to run on a laptop", llama_sizes(64, 2, 4, 2, 128, 256)}, make_llama3},
        {{"llama3-8b-cp", "LLaMA 3 8B, attention a context-parallel region (axes cp, tp)",
          decoder_sizes(4096, 32, 32, 8, 128, 14336, 128256)},
         make_decoder},
        {{"llama3-cp-tiny", "the same, small", decoder_sizes(64, 2, 4, 2, 16, 128, 256)}, make_decoder},
        {{"qwen3-32b", "Qwen3 32B", decoder_sizes(5120, 64, 64, 8, 128, 25600, 151936)}, make_decoder},
        {{"qwen3-tiny", "Qwen3, small", decoder_sizes(48, 2, 4, 2, 16, 96, 256)}, make_decoder},
        {{"hybrid-30b", "a decoder of 30B, three of four layers with a sliding window",
          with_window(decoder_sizes(6144, 48, 48, 8, 128, 16384, 128256), 1024, 4)},
         make_decoder},
        {{"hybrid-tiny", "the same, small", with_window(decoder_sizes(64, 4, 4, 2, 16, 128, 256), 4, 4)}, make_decoder},
        {{"deepseek-16b",
          "a DeepSeek-V3-like mixture of experts of 16B, routed experts a region (axis ep)",
          {{"dim", 2048}, {"layers", 27}, {"heads", 16}, {"kv_rank", 512}, {"nope_dim", 128}, {"rope_dim", 64}, {"value_dim", 128},
           {"dense_layers", 1}, {"ffn", 10944}, {"experts", 64}, {"top", 6}, {"expert_ffn", 1408}, {"shared", 2}, {"vocab", 102400}}},
         make_deepseek},
        {{"deepseek-tiny",
          "the same, small",
          {{"dim", 64}, {"layers", 2}, {"heads", 4}, {"kv_rank", 16}, {"nope_dim", 16}, {"rope_dim", 8}, {"value_dim", 16},
           {"dense_layers", 1}, {"ffn", 128}, {"experts", 8}, {"top", 2}, {"expert_ffn", 32}, {"shared", 2}, {"vocab", 256}}},
         make_deepseek},
        {{"gpt2", "GPT-2 (dropout in percent)", gpt2_sizes(768, 12, 12)}, make_gpt2},
        {{"gpt2-medium", "GPT-2 medium", gpt2_sizes(1024, 24, 16)}, make_gpt2},
        {{"gpt2-xl", "GPT-2 XL", gpt2_sizes(1600, 48, 25)}, make_gpt2},
        {{"bert-base",
          "BERT base with its masked-language-model head (dropout in percent)",
          {{"dim", 768}, {"layers", 12}, {"heads", 12}, {"ffn", 3072}, {"vocab", 30522}, {"positions", 512}, {"types", 2},
           {"dropout", 0}}},
         make_bert},
        {{"t5-small", "T5 small, layers of each of its two stacks", t5_sizes(512, 6, 8, 2048)}, make_t5},
        {{"t5-base", "T5 base", t5_sizes(768, 12, 12, 3072)}, make_t5},
        {{"mlp", "a multi-layer perceptron; it has no sequence", {{"dim", 1024}, {"hidden", 4096}, {"layers", 4}, {"classes", 1024}}},
         make_mlp},
    };
    return all;
}

}  // namespace

std::vector<model_info> const& list_models() {
    static std::vector<model_info> const all = [] {
        std::vector<model_info> infos;
        for (auto const& r : rows()) infos.push_back(r.info);
        return infos;
    }();
    return all;
}

model make_model(std::string_view name, sizes const& overrides, std::int64_t sequence) {
    auto const& all = rows();
    auto const it = std::find_if(all.begin(), all.end(), [&](row const& r) { return r.info.name == name; });
    if (it == all.end()) {
        std::string known;
        for (auto const& r : all) known += (known.empty() ? "" : ", ") + r.info.name;
        throw cantle::error(cantle::error_code::unknown_model, "model '" + std::string(name) + "'", "there is no model of that name",
                            "use one of " + known);
    }
    auto config = it->info.defaults;
    for (auto const& [key, value] : overrides) {
        auto const size = std::find_if(config.begin(), config.end(), [&key = key](auto const& s) { return s.first == key; });
        if (size == config.end()) {
            std::string keys;
            for (auto const& s : config) keys += (keys.empty() ? "" : ", ") + s.first;
            bad_size(it->info.name, "it has no size '" + key + "'", "its sizes are " + keys);
        }
        if (value < 1 && !(key == "dropout" && value == 0))
            bad_size(it->info.name, key + " is " + std::to_string(value), "give a size of at least 1");
        size->second = value;
    }
    auto const positions = std::find_if(config.begin(), config.end(), [](auto const& s) { return s.first == "positions"; });
    if (positions != config.end() && positions->second < sequence) {
        for (auto const& [key, value] : overrides)
            if (key == "positions")
                bad_size(it->info.name, "positions is " + std::to_string(value) + ", fewer than the " + std::to_string(sequence) +
                             " of --seq",
                         "give at least as many, or leave positions out");
        positions->second = sequence;
    }
    return it->make(it->info.name, std::move(config), sequence);
}

void cast(torch::nn::Module& module, at::ScalarType type) {
    torch::NoGradGuard const no_grad;
    auto const one = [type](at::Tensor& t) {
        if (t.is_floating_point() && t.scalar_type() != type) t.set_data(t.to(type));
    };
    for (auto& p : module.parameters()) one(p);
    for (auto& b : module.buffers()) one(b);
}

}  // namespace cantle_models

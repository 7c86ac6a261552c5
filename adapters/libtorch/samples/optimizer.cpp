// SPDX-License-Identifier: BSL-1.0
// Ops on lists of tensors: parameters of several ranks, some of which no axis divides.
#include <adapters/libtorch/samples/samples.hpp>

#include <limits>

namespace cantle::libtorch {
namespace {
std::vector<std::vector<shape>> const lists{{{12, 8}, {12}}, {{12, 4, 2}, {}, {5}}, {{24}}, {{4, 12}, {8, 4}, {1, 12}}, {{3, 5}, {2, 12}}};
std::vector<at::Tensor> tensors(std::vector<shape> const& shapes, bool positive = false) {
    std::vector<at::Tensor> made;
    for (auto const& x : shapes) made.push_back(eighths(x, positive));
    return made;
}
}  // namespace

void add_optimizer_samples(sample_list& s) {
    for (auto const& x : lists) {
        std::vector<double> numbers(x.size(), 0.5);
        numbers[0] = 2;
        auto const self = [&](std::string const& name, bool positive = false) {
            return sample("aten::_foreach_" + name).arg("self", tensors(x, positive));
        };
        for (std::string name : {"add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max"}) {
            for (double c : {0.5, -2.0}) s.push_back(self(name + ".Scalar").arg("scalar", c));
            s.push_back(self(name + ".List").arg("other", tensors(x)));
            s.push_back(self(name + ".ScalarList").arg("scalars", numbers));
        }
        for (std::string name : {"add", "mul", "div"})
            for (double c : {0.25, -4.0}) s.push_back(self(name + ".Tensor").arg("other", scalar(c)));
        auto mixed = numbers;
        mixed[0] = -1;
        s.push_back(self("mul.ScalarList").arg("scalars", mixed));
        for (std::string name : {"addcmul", "addcdiv"}) {
            s.push_back(self(name + ".Scalar").arg("tensor1", tensors(x)).arg("tensor2", tensors(x)).arg("value", -0.5));
            s.push_back(self(name + ".ScalarList").arg("tensor1", tensors(x)).arg("tensor2", tensors(x)).arg("scalars", numbers));
        }
        s.push_back(self("lerp.Scalar").arg("tensors1", tensors(x)).arg("weight", 0.25));
        s.push_back(self("lerp.ScalarList").arg("tensors1", tensors(x)).arg("weight", numbers));
        s.push_back(self("lerp.List").arg("tensors1", tensors(x)).arg("weights", tensors(x)));
        for (double c : {2.0, 3.0}) s.push_back(self("pow.Scalar").arg("exponent", c));
        s.push_back(self("pow.ScalarList", true).arg("exponent", numbers));
        for (auto name : {"sqrt", "rsqrt"}) s.push_back(self(name, true));
        for (auto name : {"neg", "exp", "sign", "abs", "reciprocal", "zero"}) s.push_back(self(name));
        s.push_back(self("copy").arg("src", tensors(x)).arg("non_blocking", false));
        for (double order : {2.0, 1.0, std::numeric_limits<double>::infinity()})
            s.push_back(self("norm.Scalar").arg("ord", order).arg("dtype", none));

        std::vector<at::Tensor> const steps(x.size(), at::full({}, 3, at::kFloat));
        for (auto name : {"aten::_fused_adam", "aten::_fused_adamw"})
            for (bool amsgrad : {false, true})
                s.push_back(sample(name)
                                .arg("self", tensors(x))
                                .arg("grads", tensors(x))
                                .arg("exp_avgs", tensors(x))
                                .arg("exp_avg_sqs", tensors(x, true))
                                .arg("max_exp_avg_sqs", amsgrad ? tensors(x, true) : std::vector<at::Tensor>{})
                                .arg("state_steps", steps)
                                .arg("lr", 0.125)
                                .arg("beta1", 0.5)
                                .arg("beta2", 0.75)
                                .arg("weight_decay", 0.25)
                                .arg("eps", 0.125)
                                .arg("amsgrad", amsgrad)
                                .arg("maximize", false));
        s.push_back(sample("aten::_fused_sgd")
                        .arg("self", tensors(x))
                        .arg("grads", tensors(x))
                        .arg("momentum_buffer_list", tensors(x))
                        .arg("weight_decay", 0.25)
                        .arg("momentum", 0.5)
                        .arg("lr", 0.125)
                        .arg("dampening", 0.25)
                        .arg("nesterov", false)
                        .arg("maximize", false)
                        .arg("is_first_step", false));
    }
}

}  // namespace cantle::libtorch

// SPDX-License-Identifier: BSL-1.0
#include <adapters/libtorch/samples/samples.hpp>

namespace cantle::libtorch {

void add_factory_samples(sample_list& s) {
    for (shape const& x : {shape{12, 4}, shape{24}}) {
        auto const options = [](sample& made) -> sample& {
            return made.arg("dtype", dtype::float64).arg("layout", none).arg("device", symbol{"device", "device"}).arg("pin_memory", none);
        };
        auto const push = [&](sample made) { s.push_back(options(made)); };
        push(sample("aten::full").arg("size", x).arg("fill_value", 0.375));
        push(sample("aten::zeros").arg("size", x));
        push(sample("aten::ones").arg("size", x));
        push(sample("aten::empty.memory_format").arg("size", x).no_values());
        push(sample("aten::new_zeros").arg("self", eighths({3})).arg("size", x));
        push(sample("aten::new_ones").arg("self", eighths({3})).arg("size", x));
        push(sample("aten::new_full").arg("self", eighths({3})).arg("size", x).arg("fill_value", 2.5));
        push(sample("aten::scalar_tensor").arg("s", static_cast<int>(x[0])));
        push(sample("aten::arange").arg("end", argument_value(x[0])));
        push(sample("aten::arange.start").arg("start", 3).arg("end", argument_value(x[0])));
        push(sample("aten::arange.start_step").arg("start", 3).arg("end", argument_value(x[0])).arg("step", 2));
    }
}

}  // namespace cantle::libtorch

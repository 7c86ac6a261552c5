// SPDX-License-Identifier: BSL-1.0
// Gloo's own headers are not in the wheel, while ProcessGroupGloo.hpp includes them: Debian's serve, since only pointers to their types
// cross the boundary. Their library is not linked; libtorch_cpu has its own.
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#include <adapters/libtorch/gloo_ranks.hpp>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace cantle::libtorch {

std::unique_ptr<communicator> gloo_communicator(c10::intrusive_ptr<c10d::Store> store, device_mesh const& mesh, std::int64_t rank,
                                                std::vector<std::vector<std::uint8_t>> const& groups, gloo_options const& options) {
    auto const make = [options](c10::intrusive_ptr<c10d::Store> own, int member, int members) -> c10d_communicator::backend {
        auto o = c10d::ProcessGroupGloo::Options::create(options.timeout);
        o->devices.push_back(options.host.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                                                  : c10d::ProcessGroupGloo::createDeviceForHostname(options.host));
        own->setTimeout(options.timeout);
        return c10::make_intrusive<c10d::ProcessGroupGloo>(std::move(own), member, members, std::move(o));
    };
    return std::make_unique<c10d_communicator>(std::move(store), mesh, rank, true, make, groups);
}

}  // namespace cantle::libtorch

// SPDX-License-Identifier: BSL-1.0
// expect: a potential needs: double operator()(cantle::mrf::label row, cantle::mrf::label col) const;
#include <cantle/mrf/trws_search.hpp>

#include <boost/graph/adjacency_list.hpp>

struct forgot_const {
    std::size_t rows() const { return 2; }
    std::size_t cols() const { return 2; }
    double operator()(cantle::mrf::label, cantle::mrf::label) { return 1; }
};
struct pixel {
    std::vector<double> costs;
};
struct coupling {
    forgot_const potential;
};

int main() {
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, pixel, coupling> g;
    cantle::mrf::trws_search(g, get(&pixel::costs, g), get(&coupling::potential, g));
}

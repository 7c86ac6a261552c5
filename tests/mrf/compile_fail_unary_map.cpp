// SPDX-License-Identifier: BSL-1.0
// expect: a problem needs get(unary, vertex): the costs of its labels, a contiguous range of double
#include <cantle/mrf/trws_search.hpp>

#include <boost/graph/adjacency_list.hpp>

struct pixel {
    double cost;  // one number where a list is wanted
};
struct coupling {
    cantle::mrf::equality_potential potential{2};
};

int main() {
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, pixel, coupling> g;
    cantle::mrf::trws_search(g, get(&pixel::cost, g), get(&coupling::potential, g));
}

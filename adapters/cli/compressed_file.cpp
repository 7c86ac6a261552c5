// SPDX-License-Identifier: BSL-1.0
#include <adapters/cli/compressed_file.hpp>

#include <cantle/base/atomic_file.hpp>
#include <cantle/base/error.hpp>

#include <lzma.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace cantle::cli {
namespace {

constexpr std::string_view xz_magic("\xFD" "7zXZ\0", 6);

struct decoder {
    lzma_stream stream = LZMA_STREAM_INIT;
    decoder() {
        if (lzma_stream_decoder(&stream, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK)
            throw error(error_code::out_of_memory, "the xz decoder", "it cannot start", "give the process more memory");
    }
    decoder(decoder const&) = delete;
    decoder& operator=(decoder const&) = delete;
    ~decoder() { lzma_end(&stream); }
};

std::string decompressed(std::string const& packed, std::string const& name) {
    decoder d;
    d.stream.next_in = reinterpret_cast<std::uint8_t const*>(packed.data());
    d.stream.avail_in = packed.size();
    std::string text;
    std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
    auto status = LZMA_OK;
    while (status == LZMA_OK) {
        d.stream.next_out = buffer.data();
        d.stream.avail_out = buffer.size();
        status = lzma_code(&d.stream, LZMA_FINISH);
        text.append(reinterpret_cast<char const*>(buffer.data()), buffer.size() - d.stream.avail_out);
    }
    if (status != LZMA_STREAM_END)
        throw error(
            error_code::wrong_format, name,
            "its xz stream is damaged or cut short at byte " + std::to_string(d.stream.total_in) + " of " + std::to_string(packed.size()),
            "get the file again");
    return text;
}

}  // namespace

std::string read_maybe_compressed(std::string const& path) {
    auto text = read_file(path == "-" ? "/dev/stdin" : path);
    return text.starts_with(xz_magic) ? decompressed(text, path == "-" ? "stdin" : path) : text;
}

}  // namespace cantle::cli

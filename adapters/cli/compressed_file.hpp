// SPDX-License-Identifier: BSL-1.0
#pragma once
// Files that may be compressed by xz; their first bytes say so, not their names.
#include <string>

namespace cantle::cli {

/// The text of a file, decompressed where it is an .xz file. "-": stdin. Errors: file_not_found (101), wrong_format (104) for a stream that
/// is damaged or cut short.
std::string read_maybe_compressed(std::string const& path);

}  // namespace cantle::cli

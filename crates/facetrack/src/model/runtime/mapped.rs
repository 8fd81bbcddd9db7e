// SPDX-License-Identifier: MPL-2.0
//! Files that are mapped into this process.

use std::fs;
use std::path::{Path, PathBuf};

/// The file that the dynamic loader found for the library `name`; `None` if it is unknown.
pub(super) fn file(name: &Path) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    listed(&maps, name)
}

/// The file of the library `name` among those that `maps` (`/proc/<pid>/maps`) lists.
fn listed(maps: &str, name: &Path) -> Option<PathBuf> {
    let stem = name.file_name()?.to_str()?;
    let paths = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]));
    let mut files = paths.map(Path::new);
    let file = files.find(|path| {
        let file = path.file_name().and_then(|file| file.to_str());
        file.is_some_and(|file| file.starts_with(stem))
    })?;
    Some(file.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_the_beginning_of_its_name() {
        let maps = "\
55d0-55d1 r--p 00000000 08:01 1 /usr/bin/gst-launch-1.0
7f00-7f01 rw-p 00000000 00:00 0
7f10-7f11 r-xp 00000000 08:01 2 /opt/my runtime/libonnxruntime.so.1.31.1
7f20-7f21 r-xp 00000000 08:01 3 /usr/lib/libm.so.6
";
        let found = Some(PathBuf::from("/opt/my runtime/libonnxruntime.so.1.31.1"));
        for (name, expected) in [
            ("libonnxruntime.so.1", &found),
            ("libonnxruntime.so", &found),
            ("libonnxruntime.so.2", &None),
            ("", &None),
        ] {
            assert_eq!(&listed(maps, Path::new(name)), expected, "{name}");
        }
    }
}

//! [`plain_path`]: a path without `.` and `..`.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`, as it reads: links are not followed.
pub fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_taken_as_they_read() {
        for (path, plain) in [("/a/./b/../c", "/a/c"), ("/../a", "/a"), ("a/..", "")] {
            assert_eq!(plain_path(Path::new(path)), Path::new(plain), "{path}");
        }
    }
}

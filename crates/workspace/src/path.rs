//! [`display_path`]: the path by which a file is shown.

use std::path::{Component, Path};

/// The path as the user and the model see it: relative to `root` with forward slashes if it lies
/// inside, `.` for `root` itself, and unchanged if it lies outside.
///
/// ```
/// use std::path::Path;
/// use hardpan_workspace::display_path;
///
/// let root = Path::new("/home/project");
/// assert_eq!(display_path(root, Path::new("/home/project/src/a.rs")), "src/a.rs");
/// assert_eq!(display_path(root, Path::new("/etc/hosts")), "/etc/hosts");
/// ```
pub fn display_path(root: &Path, path: &Path) -> String {
    let inside = |relative: &&Path| relative.components().all(|part| matches!(part, Component::Normal(_)));
    match path.strip_prefix(root).ok().filter(inside) {
        Some(relative) if relative.as_os_str().is_empty() => ".".into(),
        Some(relative) => with_forward_slashes(relative),
        None => path.to_string_lossy().into_owned(),
    }
}

/// A relative path with forward slashes; invalid Unicode is replaced.
pub(crate) fn with_forward_slashes(relative: &Path) -> String {
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_inside_is_relative_and_one_outside_is_not() {
        let show = |path: &str| display_path(Path::new("/a/b"), Path::new(path));
        assert_eq!(show("/a/b/c d/e.rs"), "c d/e.rs");
        assert_eq!(show("/a/b/./c/"), "c");
        assert_eq!(show("/a/b"), ".");
        assert_eq!(show("/a/bc"), "/a/bc");
        assert_eq!(show("/a/b/../c"), "/a/b/../c");
    }
}

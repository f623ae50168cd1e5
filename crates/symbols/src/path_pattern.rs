//! [`PathPattern`]: a pattern for paths, either a file name with stars or a folder.

use serde::Deserialize;

/// `folder/` matches every file below a folder of that name; any other pattern is compared with the
/// file name, and `*` in it stands for any characters.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "String")]
pub struct PathPattern {
    text: String,
}

impl From<String> for PathPattern {
    fn from(text: String) -> Self {
        Self { text }
    }
}

impl PathPattern {
    /// Whether a path (with forward slashes) matches.
    pub fn matches(&self, path: &str) -> bool {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.text.strip_suffix('/') {
            Some(folder) => folders.split('/').any(|part| part == folder),
            None => matches_stars(&self.text, name),
        }
    }
}

/// Whether `name` is `pattern` with something in place of each star.
fn matches_stars(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        // The first occurrence is as good as any: what follows only has to come later.
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_with_stars_or_a_folder() {
        let matches = |pattern: &str, path: &str| PathPattern::from(pattern.to_owned()).matches(path);
        assert!(matches("vendor/", "a/vendor/b/c.go"));
        assert!(!matches("vendor/", "a/vendor"));
        assert!(!matches("vendor/", "a/vendors/c.go"));
        assert!(matches("*.min.js", "dist/a.min.js"));
        assert!(matches("*.generated.*", "a.generated.cs"));
        assert!(!matches("*.generated.*", "generated.cs"));
        assert!(matches("conftest.py", "a/conftest.py"));
        assert!(!matches("a*a", "a"));
    }
}

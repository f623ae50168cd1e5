//! [`WorkingFolder`]: makes file names comparable: absolute, without `.`, `..` and `~`.

/// The folder that relative names start from.
#[derive(Clone, Debug)]
pub struct WorkingFolder(String);

impl WorkingFolder {
    /// The folder of this absolute path.
    pub fn new(cwd: &str) -> Self {
        WorkingFolder(normalize(cwd))
    }

    /// The folder after `cd path`.
    pub fn change_folder(&self, path: &str) -> Self {
        WorkingFolder(self.resolve(path))
    }

    /// The absolute path of a file, as a command in this folder would find it.
    pub fn resolve(&self, path: &str) -> String {
        let path = path.trim().replace('\\', "/");
        let is_drive = path.as_bytes().get(1) == Some(&b':');
        if let Some(rest) = path.strip_prefix("~/") {
            return normalize(&format!("{}/{rest}", self.home()));
        }
        if path.starts_with('/') || is_drive {
            normalize(&path)
        } else {
            normalize(&format!("{}/{path}", self.0))
        }
    }

    /// The home folder that the working folder seems to be in, judged by its name.
    fn home(&self) -> String {
        let parts: Vec<&str> = self.0.split('/').collect();
        match parts.as_slice() {
            ["", users @ ("Users" | "home"), user, ..] => format!("/{users}/{user}"),
            _ => "/~".into(),
        }
    }
}

fn normalize(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

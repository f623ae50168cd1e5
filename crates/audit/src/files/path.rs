//! Names of files made comparable: absolute, without `.`, `..` and `~`.

/// The folder that relative names are below.
#[derive(Clone, Debug)]
pub(crate) struct Folder(String);

impl Folder {
    pub fn new(cwd: &str) -> Self {
        Folder(normal(cwd))
    }

    /// The folder that `cd path` leads to.
    pub fn below(&self, path: &str) -> Self {
        Folder(self.resolve(path))
    }

    pub fn resolve(&self, path: &str) -> String {
        let path = path.trim().replace('\\', "/");
        let is_drive = path.as_bytes().get(1) == Some(&b':');
        if let Some(rest) = path.strip_prefix("~/") {
            return normal(&format!("{}/{rest}", self.home()));
        }
        if path.starts_with('/') || is_drive { normal(&path) } else { normal(&format!("{}/{path}", self.0)) }
    }

    /// The home folder that the working directory is in, as far as its name tells.
    fn home(&self) -> String {
        let parts: Vec<&str> = self.0.split('/').collect();
        match parts.as_slice() {
            ["", users @ ("Users" | "home"), user, ..] => format!("/{users}/{user}"),
            _ => "/~".into(),
        }
    }
}

fn normal(path: &str) -> String {
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

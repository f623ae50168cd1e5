//! Repositories that a prompt names by their address: [`RepositoryAddress`], and what a page shows of
//! one: its README and a map of its symbols.

use hardpan_prompt::{Text, TokenCounter, Vocabulary};
use hardpan_symbols::{FileSource, Languages, MapRequest, SymbolIndex, TokenBudget};
use hardpan_workspace::{GitOptions, RemoteError, RemoteRepository};
use reqwest::Url;

use crate::bash::sanitize::sanitize;

/// The most bytes of a README that are shown.
const README_BYTES: usize = 24 * 1024;
/// The most tokens of the map.
const MAP_TOKENS: usize = 6_000;

/// First parts of addresses on GitHub that are no owners of repositories.
const NO_OWNERS: [&str; 18] = [
    "about",
    "apps",
    "collections",
    "customer-stories",
    "enterprise",
    "events",
    "explore",
    "features",
    "login",
    "marketplace",
    "notifications",
    "orgs",
    "search",
    "security",
    "settings",
    "sponsors",
    "topics",
    "trending",
];

/// The address of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryAddress {
    /// What git fetches from.
    url: String,
    /// The host, with the port if it is not the usual one.
    host: String,
    /// `owner/name`.
    title: String,
    /// A branch or tag; the default branch if there is none.
    reference: Option<String>,
}

impl RepositoryAddress {
    /// Recognises `https://github.com/OWNER/NAME`, the same with `/tree/BRANCH`, and on any host what
    /// ends in `.git`.
    pub fn of_url(url: &str) -> Option<Self> {
        let mut url = Url::parse(url).ok()?;
        if !matches!(url.scheme(), "http" | "https") || url.query().is_some() {
            return None;
        }
        let host = url.host_str()?.to_owned();
        let parts: Vec<String> =
            url.path_segments()?.filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let reference = match (&*host, &parts[..]) {
            (_, [.., last]) if last.len() > 4 && last.ends_with(".git") => None,
            ("github.com", [owner, _, rest @ ..]) if !NO_OWNERS.contains(&&**owner) => match rest {
                [] => None,
                [tree, branch] if tree == "tree" => Some(branch.clone()),
                _ => return None,
            },
            _ => return None,
        };
        let shown = &parts[..if host == "github.com" { 2.min(parts.len()) } else { parts.len() }];
        let title = shown.join("/");
        url.set_path(&format!("/{title}"));
        url.set_fragment(None);
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let title = title.strip_suffix(".git").unwrap_or(&title).to_owned();
        Some(RepositoryAddress { url: url.into(), host: format!("{host}{port}"), title, reference })
    }

    /// Fetches it, and returns its title and what a page shows of it.
    pub fn read(&self, git: &GitOptions) -> Result<(String, String), RemoteError> {
        let languages = Languages::builtin();
        let wanted = |path: &str| languages.detect(path).is_some() || readme_rank(path).is_some();
        let remote = RemoteRepository::fetch(git, &self.url, &self.host, self.reference.as_deref(), wanted)?;
        Ok((self.title.clone(), page_text(&remote)))
    }
}

fn page_text(remote: &RemoteRepository) -> String {
    let short = &remote.commit[..remote.commit.len().min(12)];
    let mut text = format!("Repository at commit {short}, {} files.", remote.file_count);
    let readmes = remote.files.iter().filter_map(|(path, content)| Some((readme_rank(path)?, path, content)));
    if let Some((_, path, content)) = readmes.min_by_key(|(rank, ..)| *rank) {
        let readme = sanitize(&String::from_utf8_lossy(content)).replace('\r', "\n");
        let readme = readme.trim();
        let end = readme.floor_char_boundary(README_BYTES.min(readme.len()));
        text.push_str(&format!("\n\n{}:\n\n{}", sanitize(path), &readme[..end]));
        if end < readme.len() {
            text.push_str(&format!("\n[cut: {end} of {} bytes are shown]", readme.len()));
        }
    }
    let map = symbol_map(remote);
    if !map.trim().is_empty() {
        text.push_str("\n\n");
        text.push_str(&sanitize(map.trim_end()));
    }
    text
}

fn symbol_map(remote: &RemoteRepository) -> String {
    let languages = Languages::builtin();
    let paths: Vec<&String> = remote.files.keys().filter(|path| languages.detect(path).is_some()).collect();
    let mut index = SymbolIndex::default();
    let read = |path: &str, _| match remote.files.get(path) {
        Some(content) => FileSource::Content(content.clone()),
        None => FileSource::Unreadable,
    };
    index.add_files(&paths, read, |_| {});
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count_tokens = |text: &str| counter.count(&Text::new(text));
    let budget = Some(TokenBudget { tokens: MAP_TOKENS, count_tokens: &count_tokens });
    index.map(&MapRequest { budget, ..MapRequest::default() }).text()
}

/// How well a file serves as the README; none if it is none.
fn readme_rank(path: &str) -> Option<usize> {
    let name = path.to_ascii_lowercase();
    [
        "readme.md",
        "readme.markdown",
        "readme.rst",
        "readme.txt",
        "readme",
        ".github/readme.md",
        "docs/readme.md",
    ]
    .iter()
    .position(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_repositories_are_recognised() {
        let address = |url: &str| {
            let found = RepositoryAddress::of_url(url)?;
            Some(format!("{} {} {} {:?}", found.url, found.host, found.title, found.reference))
        };
        for (url, expected) in [
            ("https://github.com/o/r", "https://github.com/o/r github.com o/r None"),
            ("https://github.com/o/r.git/", "https://github.com/o/r.git github.com o/r None"),
            ("https://github.com/o/r/tree/v1.2", "https://github.com/o/r github.com o/r Some(\"v1.2\")"),
            ("http://127.0.0.1:80/x.git", "http://127.0.0.1/x.git 127.0.0.1 x None"),
            ("http://127.0.0.1:81/a/x.git", "http://127.0.0.1:81/a/x.git 127.0.0.1:81 a/x None"),
        ] {
            assert_eq!(address(url).as_deref(), Some(expected));
        }
        for url in [
            "https://github.com/o",
            "https://github.com/topics/rust",
            "https://github.com/o/r/issues/1",
            "https://github.com/o/r/tree/main/src",
            "https://github.com/o/r?tab=readme",
            "https://example.test/o/r",
            "ftp://github.com/o/r",
            "https://example.test/.git",
        ] {
            assert_eq!(address(url), None, "{url}");
        }
    }
}

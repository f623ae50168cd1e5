//! What an extension may do beyond its folder and the workspace: what it declares, and what the person
//! allowed it. What was allowed holds for the extension's content as it was then.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use hardpan_extensions::ModuleSources;
use hardpan_files::{create_private_folder, read_small_text, write_private_file};
use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::settings::{EXTENSION_PERMISSIONS, UserFolders};

/// The largest list of permissions that is read, in bytes.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// How many files of an extension its hash covers.
const MAX_HASHED_FILES: usize = 500;

/// What a `package.json` says about an extension: `"hardpan": {"permissions": {…}}`. More than this it
/// never gets, whoever is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeclaredPermissions {
    /// Hosts that it reaches; `*.example.com` means all below, `*` all.
    pub network: Vec<String>,
    /// Programs that it starts; `*` means all.
    pub exec: Vec<String>,
    /// Variables of the environment that it reads.
    pub env: Vec<String>,
    /// Whether it asks models, at the expense of the conversation.
    pub models: bool,
}

/// What the person allowed an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionGrant {
    /// Its name.
    pub name: String,
    /// The hash of its files when that was allowed.
    pub hash: String,
    /// Hosts that it may reach.
    #[serde(default)]
    pub network: BTreeSet<String>,
    /// Variables of the environment that it may read.
    #[serde(default)]
    pub env: BTreeSet<String>,
    /// Keys that may go to a host: `$VARIABLE@HOST`, or `PROVIDER@HOST` for one of `keys.toml`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub keys: BTreeSet<String>,
    /// Whether it may ask models.
    #[serde(default)]
    pub models: bool,
}

/// A key that requests to a provider of an extension carry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandedKey {
    /// A variable of the environment.
    Variable(String),
    /// The key in `keys.toml` of this provider.
    Stored(String),
}

impl fmt::Display for HandedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandedKey::Variable(name) => write!(f, "${name}"),
            HandedKey::Stored(provider) => write!(f, "the key of {provider} in keys.toml"),
        }
    }
}

impl HandedKey {
    /// The permission to send it to a host: `$NAME@HOST` or `PROVIDER@HOST`.
    pub fn grant(&self, host: &str) -> String {
        match self {
            HandedKey::Variable(name) => format!("${name}@{host}"),
            HandedKey::Stored(provider) => format!("{provider}@{host}"),
        }
    }

    /// The option of `hardpan extensions allow` that allows it.
    pub fn option(&self) -> String {
        match self {
            HandedKey::Variable(name) => format!("--env {name}"),
            HandedKey::Stored(provider) => format!("--key {provider}"),
        }
    }
}

/// Why permissions cannot be changed.
#[derive(Debug, Error)]
pub enum PermissionError {
    /// There is no config folder.
    #[error("there is no config folder to keep permissions in: set HOME")]
    NoFolder,
    /// The list cannot be written.
    #[error("{} cannot be written", path.display())]
    NotWritten {
        /// The list.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// The list of what extensions were allowed: `extension-permissions.json` in the config folder.
#[derive(Clone, Debug)]
pub struct PermissionStore {
    file: Option<PathBuf>,
}

impl PermissionStore {
    /// The list in the user's config folder.
    pub fn new(folders: &UserFolders) -> Self {
        PermissionStore { file: folders.config.as_ref().map(|folder| folder.join(EXTENSION_PERMISSIONS)) }
    }

    /// What all extensions were allowed. A list that cannot be read allows nothing.
    pub fn read(&self) -> Vec<ExtensionGrant> {
        let text = self.file.as_ref().and_then(|file| read_small_text(file, MAX_LIST_BYTES).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// What an extension with this content was allowed.
    pub fn find(&self, name: &str, hash: &str) -> ExtensionGrant {
        let found = self.read().into_iter().find(|grant| grant.name == name && grant.hash == hash);
        found.unwrap_or_else(|| ExtensionGrant { name: name.into(), hash: hash.into(), ..Default::default() })
    }

    /// Allows an extension more. What another version of it was allowed is forgotten.
    pub fn allow(&self, more: &ExtensionGrant) -> Result<(), PermissionError> {
        let mut grants = self.read();
        let mut grant = self.find(&more.name, &more.hash);
        grant.network.extend(more.network.iter().cloned());
        grant.env.extend(more.env.iter().cloned());
        grant.keys.extend(more.keys.iter().cloned());
        grant.models |= more.models;
        grants.retain(|other| other.name != grant.name);
        grants.push(grant);
        self.write(&grants)
    }

    /// Forgets what an extension was allowed. Returns whether there was something.
    pub fn forget(&self, name: &str) -> Result<bool, PermissionError> {
        let mut grants = self.read();
        let before = grants.len();
        grants.retain(|grant| grant.name != name);
        if grants.len() == before {
            return Ok(false);
        }
        self.write(&grants).map(|()| true)
    }

    fn write(&self, grants: &[ExtensionGrant]) -> Result<(), PermissionError> {
        let file = self.file.as_ref().ok_or(PermissionError::NoFolder)?;
        let write = || {
            file.parent().map_or(Ok(()), create_private_folder)?;
            let text = serde_json::to_vec_pretty(grants)?;
            write_private_file(file, &text)
        };
        write().map_err(|source| PermissionError::NotWritten { path: file.clone(), source })
    }
}

/// What one extension may do.
pub struct Permissions {
    store: PermissionStore,
    /// None if it declares nothing: it may ask for anything.
    declared: Option<DeclaredPermissions>,
    granted: Mutex<ExtensionGrant>,
    /// Hosts that are allowed until the conversation ends.
    hosts_for_now: Mutex<BTreeSet<String>>,
    /// Keys that may go to a host until then, and those that the script itself may have.
    keys_for_now: Mutex<BTreeSet<String>>,
    /// Whether models are, until then.
    models_for_now: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Permissions {
    /// What the extension with these main files may do.
    pub fn new(
        name: &str,
        entries: &[&Path],
        sources: &Arc<dyn ModuleSources>,
        store: PermissionStore,
    ) -> Self {
        let hash = content_hash(&**sources, entries);
        let granted = Mutex::new(store.find(name, &hash));
        let declared = declared_permissions(&**sources);
        let (hosts_for_now, keys_for_now, models_for_now) = Default::default();
        Permissions { store, declared, granted, hosts_for_now, keys_for_now, models_for_now }
    }

    /// What it declares.
    pub fn declared(&self) -> Option<&DeclaredPermissions> {
        self.declared.as_ref()
    }

    /// What it was allowed for good.
    pub fn granted(&self) -> ExtensionGrant {
        lock(&self.granted).clone()
    }

    /// Whether it may ask for a host.
    pub fn may_ask_for_host(&self, host: &str) -> bool {
        self.declared
            .as_ref()
            .is_none_or(|declared| declared.network.iter().any(|known| host_matches(known, host)))
    }

    /// Whether it may ask for a program.
    pub fn may_ask_for_program(&self, program: &str) -> bool {
        let is_named = |known: &String| known == "*" || known == program;
        self.declared.as_ref().is_none_or(|declared| declared.exec.iter().any(is_named))
    }

    /// Whether it may ask for models.
    pub fn may_ask_for_models(&self) -> bool {
        self.declared.as_ref().is_none_or(|declared| declared.models)
    }

    /// Whether it was allowed to ask models.
    pub fn has_models(&self) -> bool {
        self.models_for_now.load(Ordering::Relaxed) || lock(&self.granted).models
    }

    /// Allows models until the conversation ends.
    pub fn allow_models_for_now(&self) {
        self.models_for_now.store(true, Ordering::Relaxed);
    }

    /// Allows models for good.
    pub fn allow_models(&self) -> Result<(), PermissionError> {
        self.allow_models_for_now();
        let mut granted = lock(&self.granted);
        granted.models = true;
        self.store.allow(&granted)
    }

    /// Whether it was allowed to reach a host.
    pub fn has_host(&self, host: &str) -> bool {
        lock(&self.hosts_for_now).contains(host)
            || lock(&self.granted).network.iter().any(|known| host_matches(known, host))
    }

    /// Variables that it declares and was not allowed to read.
    pub fn missing_variables(&self) -> Vec<String> {
        let granted = lock(&self.granted);
        let declared = self.declared.iter().flat_map(|declared| &declared.env);
        declared.filter(|name| !granted.env.contains(*name)).cloned().collect()
    }

    /// Whether requests to this host may carry these keys; without a host, whether the script may have them.
    pub fn has_keys(&self, keys: &[HandedKey], host: Option<&str>) -> bool {
        let (for_now, granted) = (lock(&self.keys_for_now), lock(&self.granted));
        keys.iter().all(|key| {
            let grant = key.grant(host.unwrap_or_default());
            // What it reads, it can send to where it may go.
            let can_send = |name: &String| {
                granted.env.contains(name) && host.is_none_or(|host| granted.network.contains(host))
            };
            let is_own = matches!(key, HandedKey::Variable(name) if can_send(name));
            is_own || for_now.contains(&grant) || granted.keys.contains(&grant)
        })
    }

    /// Allows requests to a provider with these keys, at a host if there is one, until the conversation ends.
    pub fn allow_provider_for_now(&self, host: Option<&str>, keys: &[HandedKey]) {
        if let Some(host) = host {
            self.allow_host_for_now(host);
        }
        lock(&self.keys_for_now).extend(keys.iter().map(|key| key.grant(host.unwrap_or_default())));
    }

    /// Allows the same for good.
    pub fn allow_provider(&self, host: Option<&str>, keys: &[HandedKey]) -> Result<(), PermissionError> {
        self.allow_provider_for_now(host, keys);
        let mut granted = lock(&self.granted);
        granted.network.extend(host.map(str::to_owned));
        granted.keys.extend(keys.iter().map(|key| key.grant(host.unwrap_or_default())));
        self.store.allow(&granted)
    }

    /// Allows a host until the conversation ends.
    pub fn allow_host_for_now(&self, host: &str) {
        lock(&self.hosts_for_now).insert(host.to_owned());
    }

    /// Allows a host for good.
    pub fn allow_host(&self, host: &str) -> Result<(), PermissionError> {
        self.allow_host_for_now(host);
        let mut granted = lock(&self.granted);
        granted.network.insert(host.to_owned());
        self.store.allow(&granted)
    }
}

/// Whether a pattern of a declaration means a host.
fn host_matches(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(domain) => {
            host.len() > domain.len()
                && host.ends_with(domain)
                && host.as_bytes()[host.len() - domain.len() - 1] == b'.'
        }
        None => pattern == "*" || pattern.eq_ignore_ascii_case(host),
    }
}

fn declared_permissions(sources: &dyn ModuleSources) -> Option<DeclaredPermissions> {
    let manifest = sources.read(&sources.root().join("package.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
    // A declaration that cannot be read declares nothing, and so allows nothing.
    let declared = manifest.get("hardpan")?.get("permissions")?;
    Some(serde_json::from_value(declared.clone()).unwrap_or_default())
}

/// The hash of an extension's own files, and of the folder that they are in: what an extension was allowed is not
/// another's that is made of the same files and of other packages beside them.
pub fn content_hash(sources: &dyn ModuleSources, entries: &[&Path]) -> String {
    let hashes = own_files(sources, entries).into_iter().map(|(path, text)| {
        let relative = path.strip_prefix(sources.root()).unwrap_or(&path);
        format!("{}\0{}\0", relative.display(), Hash::of(text.as_bytes()))
    });
    let place = format!("{}\0", sources.root().display());
    Hash::of((place + &hashes.collect::<String>()).as_bytes()).to_string()
}

/// An extension's own files with their texts: its main files, what they import by relative names, and its
/// manifest. Packages of `node_modules` are not among them.
pub fn own_files(sources: &dyn ModuleSources, entries: &[&Path]) -> Vec<(PathBuf, String)> {
    let mut waiting = vec![sources.root().join("package.json")];
    waiting.extend(entries.iter().map(|entry| (*entry).to_owned()));
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut files = Vec::new();
    while let Some(path) = waiting.pop() {
        if seen.len() >= MAX_HASHED_FILES || !seen.insert(path.clone()) {
            continue;
        }
        let Ok(text) = sources.read(&path) else { continue };
        let folder = path.parent().unwrap_or(&path).to_owned();
        for name in relative_names(&text) {
            waiting.extend(hardpan_extensions::modules::find_relative(sources, &folder, name));
        }
        files.push((path, text));
    }
    files
}

/// Texts in quotes that begin like the relative name of a file.
fn relative_names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(['"', '\'', '`']).filter_map(|(at, quote)| {
        let rest = text.get(at + 1..)?;
        let is_relative = rest.starts_with("./") || rest.starts_with("../");
        is_relative.then(|| rest.find(quote).and_then(|end| rest.get(..end))).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hardpan_extensions::FileSources;

    #[test]
    fn what_was_allowed_holds_for_the_content_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let folders = UserFolders::below(&folder.path().join("user"));
        let code = folder.path().join("ext");
        std::fs::create_dir(&code).unwrap();
        std::fs::write(code.join("a.ts"), "import { b } from './b.js';").unwrap();
        std::fs::write(code.join("b.ts"), "export const b = 1;").unwrap();
        let permissions = || {
            let sources: Arc<dyn ModuleSources> = Arc::new(FileSources::new(&code).unwrap());
            let entry = sources.root().join("a.ts");
            Permissions::new("a", &[&entry], &sources, PermissionStore::new(&folders))
        };
        assert!(!permissions().has_host("example.com"));
        permissions().allow_host("example.com").unwrap();
        assert!(permissions().has_host("example.com"));
        assert!(!permissions().has_host("example.org"));
        std::fs::write(code.join("b.ts"), "export const b = 2;").unwrap();
        assert!(!permissions().has_host("example.com"));
        permissions().allow_host("example.org").unwrap();
        let store = PermissionStore::new(&folders);
        assert_eq!(store.read().len(), 1);
        assert!(store.forget("a").unwrap());
        assert!(!store.forget("a").unwrap());
        assert!(!permissions().has_host("example.org"));
    }

    #[test]
    fn a_declaration_is_all_that_an_extension_may_ask_for() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("package.json"),
            r#"{"hardpan": {"permissions": {"network": ["*.example.com"], "exec": ["git"]}}}"#,
        )
        .unwrap();
        let sources: Arc<dyn ModuleSources> = Arc::new(FileSources::new(folder.path()).unwrap());
        let store = PermissionStore { file: None };
        let permissions = Permissions::new("a", &[Path::new("/none")], &sources, store);
        assert!(permissions.may_ask_for_host("api.example.com"));
        assert!(!permissions.may_ask_for_host("example.com"));
        assert!(!permissions.may_ask_for_host("badexample.com"));
        assert!(permissions.may_ask_for_program("git"));
        assert!(!permissions.may_ask_for_program("curl"));
    }
}

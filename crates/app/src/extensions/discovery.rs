//! Where extensions are looked for: `--extension`, the project's folders if the user trusts them, and
//! the user's folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_extensions::{FileSources, ModuleSources};
use serde::Serialize;

use super::extension_name;
use super::permissions::own_files;
use crate::notice::{Notice, NoticeSink};
use crate::options::OpenOptions;
use crate::settings::{FOREIGN_EXTENSIONS, ProjectFiles};

/// The folders of a project that hold extensions, relative to its root.
pub(super) const PROJECT_FOLDERS: [&str; 2] = [".hardpan/extensions", FOREIGN_EXTENSIONS];

/// The folder of the user's extensions, below the config folder.
pub(super) const USER_FOLDER: &str = "extensions";

/// Who brought an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionOrigin {
    /// `--extension` named it.
    Argument,
    /// It is the project's, which the user trusts as it is.
    Project,
    /// It is the user's own.
    User,
}

/// An extension that can be loaded.
#[derive(Clone)]
pub struct FoundExtension {
    /// Its name: that of its file or folder.
    pub name: String,
    /// Its main file.
    pub entry: PathBuf,
    /// Further files that its package names. They share its engine, and so their functions.
    pub(crate) more_entries: Vec<PathBuf>,
    /// Where it was found.
    pub origin: ExtensionOrigin,
    /// Its source files.
    pub(crate) sources: Arc<dyn ModuleSources>,
    /// What of their folder is the extension's own.
    pub(crate) own_folder: OwnFolder,
    /// Why it cannot be loaded, if that is known before; the entry is then what is wrong.
    pub(crate) problem: Option<String>,
}

/// What of the folder with its files an extension may use as its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnFolder {
    /// Nothing: other things are in it.
    Nothing,
    /// All but programs: it is a file that was named, in a folder that may hold others.
    Data,
    /// All of it: it is a package.
    Whole,
}

impl FoundExtension {
    /// Whether this file, or one that it imports by a relative name, has this word. What cannot be read may have it.
    pub(crate) fn may_mention(&self, file: &Path, word: &str) -> bool {
        self.sources.read(file).is_err()
            || own_files(&*self.sources, &[file]).iter().any(|(_, text)| text.contains(word))
    }
}

/// A folder of a project as it was when the user's trust was checked: nothing is read a second time.
struct TrustedSources {
    root: PathBuf,
    files: Arc<BTreeMap<PathBuf, Vec<u8>>>,
    project: PathBuf,
}

impl ModuleSources for TrustedSources {
    fn read(&self, path: &Path) -> io::Result<String> {
        let content = path.strip_prefix(&self.project).ok().and_then(|path| self.files.get(path));
        let content = content.ok_or(io::ErrorKind::NotFound)?;
        String::from_utf8(content.clone()).map_err(io::Error::other)
    }

    fn root(&self) -> &Path {
        &self.root
    }
}

/// All extensions, in the order in which they are loaded: those that were named, the project's, the
/// user's. The same file is found once.
pub fn find_extensions(
    options: &OpenOptions,
    root: &Path,
    project_files: Option<&ProjectFiles>,
    notices: &dyn NoticeSink,
) -> Vec<FoundExtension> {
    let mut found: Vec<FoundExtension> = Vec::new();
    let mut add = |extension: FoundExtension| {
        if !found.iter().any(|known| known.entry == extension.entry) {
            found.push(extension);
        }
    };
    for path in &options.extensions {
        match named_extensions(path, options) {
            Ok(extensions) => extensions.into_iter().for_each(&mut add),
            Err(error) => {
                let error = error.to_string();
                notices.notice(Notice::ExtensionNotLoaded { path: path.clone(), error });
            }
        }
    }
    if !options.discover_extensions {
        return found;
    }
    if let Some(files) = project_files {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        project_extensions(&root, files).into_iter().for_each(&mut add);
    }
    let user_folder = options.user_folders.config.as_ref().map(|folder| folder.join(USER_FOLDER));
    if let Some(extensions) =
        user_folder.and_then(|folder| folder_extensions(&folder, ExtensionOrigin::User).ok())
    {
        extensions.into_iter().for_each(&mut add);
    }
    found
}

/// Whether each extension that was named is there; the first that is not, and why.
pub fn check_named(options: &OpenOptions) -> Result<(), (PathBuf, io::Error)> {
    options.extensions.iter().try_for_each(|path| match named_extensions(path, options) {
        Ok(_) => Ok(()),
        Err(error) => Err((path.clone(), error)),
    })
}

/// A file that was named, or what a named folder holds.
fn named_extensions(path: &Path, options: &OpenOptions) -> io::Result<Vec<FoundExtension>> {
    let path = path.canonicalize()?;
    if path.is_dir() {
        let found = folder_extensions(&path, ExtensionOrigin::Argument)?;
        return match found.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "the folder holds no extension")),
            false => Ok(found),
        };
    }
    let folder = path.parent().unwrap_or(&path);
    let own_folder = if is_shared(folder, options) { OwnFolder::Nothing } else { OwnFolder::Data };
    let package = Package { own_folder, ..Package::of_file(folder, path.clone()) };
    Ok(vec![on_disk(&package, ExtensionOrigin::Argument)?])
}

/// Whether a folder holds more than an extension: the home folder, that of a conversation or one above these, a
/// repository, or the folders of settings.
fn is_shared(folder: &Path, options: &OpenOptions) -> bool {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let work = options.folder.canonicalize().ok();
    let is_above = home.iter().chain(&work).any(|place| place.starts_with(folder));
    let user = &options.user_folders;
    let settings = [&user.config, &user.data, &user.state].into_iter().flatten();
    let mut settings = settings.filter_map(|place| place.canonicalize().ok());
    is_above
        || folder.join(".git").exists()
        || settings.any(|place| folder.starts_with(&place) || place.starts_with(folder))
}

fn on_disk(package: &Package, origin: ExtensionOrigin) -> io::Result<FoundExtension> {
    let sources = Arc::new(FileSources::new(&package.root)?);
    let more_entries = package.more_entries.iter().map(|entry| entry.canonicalize());
    Ok(FoundExtension {
        name: package.name(),
        entry: package.entry.canonicalize()?,
        more_entries: more_entries.collect::<io::Result<_>>()?,
        origin,
        sources,
        own_folder: package.own_folder,
        problem: None,
    })
}

/// A file that would be an extension, and cannot be read as one. It is told of where extensions are loaded.
fn unusable(
    path: &Path,
    problem: String,
    sources: Arc<dyn ModuleSources>,
    origin: ExtensionOrigin,
) -> FoundExtension {
    FoundExtension {
        name: extension_name(path),
        entry: path.to_owned(),
        more_entries: Vec::new(),
        origin,
        sources,
        own_folder: OwnFolder::Nothing,
        problem: Some(problem),
    }
}

/// Files that are loaded together.
struct Package {
    entry: PathBuf,
    more_entries: Vec<PathBuf>,
    /// The folder that their imports cannot leave.
    root: PathBuf,
    own_folder: OwnFolder,
}

impl Package {
    /// A folder with an extension in it.
    fn new(root: &Path, mut entries: Vec<PathBuf>) -> Option<Self> {
        let more_entries = entries.split_off(entries.len().min(1));
        Some(Package {
            entry: entries.pop()?,
            more_entries,
            root: root.to_owned(),
            own_folder: OwnFolder::Whole,
        })
    }

    /// A file that is an extension.
    fn of_file(folder: &Path, entry: PathBuf) -> Self {
        Package { entry, more_entries: Vec::new(), root: folder.to_owned(), own_folder: OwnFolder::Nothing }
    }

    /// That of its file, or of the folder of several.
    fn name(&self) -> String {
        let folder = self.root.file_name().filter(|_| !self.more_entries.is_empty());
        folder.map_or_else(|| extension_name(&self.entry), |name| name.to_string_lossy().into_owned())
    }
}

fn folder_extensions(folder: &Path, origin: ExtensionOrigin) -> io::Result<Vec<FoundExtension>> {
    let folder = folder.canonicalize()?;
    fs::read_dir(&folder)?;
    let list = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| PathBuf::from(entry.file_name())).collect()
    };
    let files = FolderFiles {
        list: &list,
        is_file: &|path: &Path| path.is_file(),
        read: &|path: &Path| fs::read_to_string(path).ok(),
    };
    let mut found = Vec::new();
    for package in files.packages_of(&folder) {
        match on_disk(&package, origin) {
            Ok(extension) => found.push(extension),
            Err(error) => {
                let sources = Arc::new(FileSources::new(&folder)?);
                found.push(unusable(&package.entry, error.to_string(), sources, origin));
            }
        }
    }
    let sources: Arc<dyn ModuleSources> = Arc::new(FileSources::new(&folder)?);
    let problems = files.problems_of(&folder).into_iter();
    found.extend(problems.map(|(path, problem)| unusable(&path, problem, sources.clone(), origin)));
    Ok(found)
}

fn project_extensions(root: &Path, files: &ProjectFiles) -> Vec<FoundExtension> {
    let content = files.files();
    let mut found = Vec::new();
    for place in PROJECT_FOLDERS {
        let folder = root.join(place);
        let relative = |path: &Path| path.strip_prefix(root).map(Path::to_owned).unwrap_or_default();
        let list = |folder: &Path| {
            let folder = relative(folder);
            let below = content.keys().filter_map(|path| path.strip_prefix(&folder).ok());
            let mut names: Vec<PathBuf> = below
                .filter_map(|path| path.components().next().map(|part| PathBuf::from(part.as_os_str())))
                .collect();
            names.dedup();
            names
        };
        let files = FolderFiles {
            list: &list,
            is_file: &|path: &Path| content.contains_key(&relative(path)),
            read: &|path: &Path| String::from_utf8(content.get(&relative(path))?.clone()).ok(),
        };
        for package in files.packages_of(&folder) {
            let name = package.name();
            let Package { entry, more_entries, root: package_root, own_folder } = package;
            let sources =
                TrustedSources { root: package_root, files: content.clone(), project: root.to_owned() };
            found.push(FoundExtension {
                name,
                entry,
                more_entries,
                origin: ExtensionOrigin::Project,
                sources: Arc::new(sources),
                own_folder,
                problem: None,
            });
        }
        let sources: Arc<dyn ModuleSources> = Arc::new(TrustedSources {
            root: folder.clone(),
            files: content.clone(),
            project: root.to_owned(),
        });
        let problems = files.problems_of(&folder).into_iter();
        found.extend(
            problems
                .map(|(path, problem)| unusable(&path, problem, sources.clone(), ExtensionOrigin::Project)),
        );
    }
    found
}

/// The files of a folder: on disk, or as they were when they were trusted.
struct FolderFiles<'a> {
    /// The names in a folder.
    list: &'a dyn Fn(&Path) -> Vec<PathBuf>,
    is_file: &'a dyn Fn(&Path) -> bool,
    read: &'a dyn Fn(&Path) -> Option<String>,
}

impl FolderFiles<'_> {
    /// The extensions below a folder: `*.ts`, `*.js`, and folders with an `index` or a `package.json` that
    /// names extensions. A folder that has one of the latter is itself an extension.
    fn packages_of(&self, folder: &Path) -> Vec<Package> {
        if let Some(entries) = self.package_entries(folder) {
            return Package::new(folder, entries).into_iter().collect();
        }
        let mut found = Vec::new();
        for name in self.names(folder) {
            let path = folder.join(&name);
            if is_script(&path) && (self.is_file)(&path) {
                found.push(Package::of_file(folder, path));
            } else if let Some(entries) = self.package_entries(&path) {
                found.extend(Package::new(&path, entries));
            }
        }
        found
    }

    /// What would be an extension if it could be read as one, and why it cannot.
    fn problems_of(&self, folder: &Path) -> Vec<(PathBuf, String)> {
        let mut problems: Vec<(PathBuf, String)> = self.manifest_problem(folder).into_iter().collect();
        if self.package_entries(folder).is_some() {
            return problems;
        }
        for name in self.names(folder) {
            let path = folder.join(&name);
            if (self.is_file)(&path) {
                let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
                let is_other_script = OTHER_SCRIPTS.contains(&&*ending) && !is_script(&path);
                if is_other_script && !path.to_string_lossy().ends_with(".d.ts") {
                    problems.push((path, "the file of an extension ends with .ts or .js".to_owned()));
                }
            } else if is_script(&path) && self.index_of(&path).is_none() {
                problems.push((path, "it is no file that can be read".to_owned()));
            } else {
                problems.extend(self.manifest_problem(&path));
            }
        }
        problems
    }

    /// What is wrong with the manifest of a folder: it cannot be read, or names files that are not there.
    fn manifest_problem(&self, folder: &Path) -> Option<(PathBuf, String)> {
        let path = folder.join("package.json");
        if !(self.is_file)(&path) {
            return None;
        }
        let text = (self.read)(&path).unwrap_or_default();
        let manifest: serde_json::Value = match serde_json::from_str(&text) {
            Ok(manifest) => manifest,
            Err(error) => return Some((path, format!("it is no JSON: {error}"))),
        };
        let named = manifest["pi"]["extensions"].as_array()?.iter().filter_map(|path| path.as_str());
        let mut missing =
            named.filter(|named| !named.starts_with('!') && self.named_entries(folder, named).is_empty());
        let missing = missing.next()?;
        Some((path, format!("it names the extension {missing:?}, which is not there")))
    }

    /// The names in a folder that may be extensions, in order.
    fn names(&self, folder: &Path) -> Vec<PathBuf> {
        let mut names = (self.list)(folder);
        names.retain(|name| {
            let text = name.to_string_lossy();
            !text.starts_with('.') && text != "node_modules"
        });
        names.sort();
        names
    }

    /// What a folder's manifest names, else its `index`.
    fn package_entries(&self, folder: &Path) -> Option<Vec<PathBuf>> {
        let manifest = (self.read)(&folder.join("package.json"));
        let manifest: Option<serde_json::Value> = manifest.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(named) = manifest.as_ref().and_then(|manifest| manifest["pi"]["extensions"].as_array()) {
            let paths = named.iter().filter_map(|path| path.as_str());
            return Some(paths.flat_map(|path| self.named_entries(folder, path)).collect());
        }
        self.index_of(folder).map(|entry| vec![entry])
    }

    /// What a path of a manifest means: a file, a folder with an `index`, the scripts of a folder, or
    /// files whose names fit a `*`.
    fn named_entries(&self, folder: &Path, named: &str) -> Vec<PathBuf> {
        let path = folder.join(named.trim_start_matches("./").trim_end_matches('/'));
        if (self.is_file)(&path) {
            return vec![path];
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let (Some((start, end)), Some(parent)) = (name.split_once('*'), path.parent()) {
            let fits = |name: &PathBuf| {
                let name = name.to_string_lossy();
                name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
            };
            let fitting = self.names(parent).into_iter().filter(fits).map(|name| parent.join(name));
            return fitting.filter(|path| is_script(path) && (self.is_file)(path)).collect();
        }
        match self.index_of(&path) {
            Some(index) => vec![index],
            None => {
                let inner = self.names(&path).into_iter().map(|name| path.join(name));
                let entries = inner.filter_map(|path| match is_script(&path) && (self.is_file)(&path) {
                    true => Some(path),
                    false => self.index_of(&path),
                });
                entries.collect()
            }
        }
    }

    fn index_of(&self, folder: &Path) -> Option<PathBuf> {
        ["index.ts", "index.js"].iter().map(|name| folder.join(name)).find(|path| (self.is_file)(path))
    }
}

/// Endings of scripts that are no extensions.
const OTHER_SCRIPTS: [&str; 8] = ["ts", "js", "mts", "mjs", "cts", "cjs", "tsx", "jsx"];

/// Whether a name is that of a program.
fn is_script(path: &Path) -> bool {
    let is_typed = path.extension().is_some_and(|extension| extension == "ts" || extension == "js");
    is_typed && !path.to_string_lossy().ends_with(".d.ts")
}

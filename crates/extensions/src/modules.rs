//! What a script may import: its own files, packages of its `node_modules`, and the modules that are
//! built in.

mod exported_names; // the names that modules export, and imports of those that they lack
mod known_imports; // imports of known modules as reads of properties
mod packages; // packages of node_modules
mod source; // ModuleSource: a file as the engine runs it

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hardpan_files::plain_path;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Exception, Module, Result};

use crate::engine::clock;

pub(crate) use packages::ImportKind;
use packages::find_in_packages;
pub(crate) use source::ModuleFormat;
use source::ModuleSource;

/// The largest source file that is read, in bytes.
const MAX_SOURCE_BYTES: u64 = 4 << 20;

/// How many files a script may load.
const MAX_MODULES: usize = 2_000;

/// Before the path of a module of CommonJS, as the engine knows it.
const COMMON_JS: &str = "hardpan:common:";

/// Before the name of a built-in module.
const BUILT_IN: &str = "hardpan:";
/// The module that holds the content of all built-in ones. Only they can import it.
pub(crate) const INTERNAL: &str = "hardpan:internal";
/// Holds that content for a moment, while the engine starts.
pub(crate) const INTERNAL_GLOBAL: &str = "__hardpan_modules";

/// The modules of Node that there are, by their name without `node:`.
const NODE_MODULES: [&str; 43] = [
    "assert",
    "assert/strict",
    "async_hooks",
    "buffer",
    "child_process",
    "console",
    "constants",
    "crypto",
    "diagnostics_channel",
    "dns",
    "dns/promises",
    "events",
    "fs",
    "fs/promises",
    "http",
    "https",
    "module",
    "net",
    "os",
    "path",
    "path/posix",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "readline/promises",
    "stream",
    "stream/consumers",
    "stream/promises",
    "stream/web",
    "string_decoder",
    "timers",
    "timers/promises",
    "tls",
    "tty",
    "url",
    "util",
    "util/types",
    "v8",
    "vm",
    "worker_threads",
    "zlib",
];

/// Modules of Node that there are not. Extensions and packages import some of them for what they never use:
/// they get one whose parts fail when they are called.
const ABSENT_NODE_MODULES: [&str; 13] = [
    "child_process/promises",
    "cluster",
    "dgram",
    "domain",
    "http2",
    "inspector",
    "inspector/promises",
    "os/constants",
    "path/win32",
    "repl",
    "sqlite",
    "trace_events",
    "wasi",
];

/// Packages that published extensions import, and the built-in module that stands for each.
const PACKAGES: [(&str, &str); 7] = [
    ("typebox", "typebox"),
    ("@sinclair/typebox", "typebox"),
    ("pi-coding-agent", "coding-agent"),
    ("pi-agent-core", "agent-core"),
    ("pi-ai", "ai"),
    ("pi-tui", "tui"),
    // `fetch` and what belongs to it. The package itself reads the network with WebAssembly and sockets.
    ("undici", "undici"),
];

/// Scopes under which the packages of the system are published.
const SCOPES: [&str; 2] = ["@mariozechner/", "@earendil-works/"];

/// The built-in module that an import names.
pub(crate) fn built_in_module(name: &str) -> Option<String> {
    if let Some(node) = name.strip_prefix("node:") {
        return NODE_MODULES.contains(&node).then(|| node.to_owned());
    }
    let plain = SCOPES.iter().find_map(|scope| name.strip_prefix(scope)).unwrap_or(name);
    let package = PACKAGES.iter().find(|(package, _)| {
        plain.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    match package {
        Some((_, module)) => Some((*module).to_owned()),
        None => NODE_MODULES.contains(&name).then(|| name.to_owned()),
    }
}

/// The source of [`INTERNAL`].
pub(crate) fn internal_source() -> String {
    format!("export default globalThis.{INTERNAL_GLOBAL};")
}

/// The source files of a script.
pub trait ModuleSources: Send + Sync + 'static {
    /// The content of a file, by its full path. Errors of the kind `NotFound` let the loader try
    /// another name.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// The folder that imports cannot leave.
    fn root(&self) -> &Path;

    /// Whether there is such a file.
    fn is_file(&self, path: &Path) -> bool {
        self.read(path).is_ok()
    }

    /// Whether the packages of a folder, in its `node_modules`, are the script's.
    fn may_hold_packages(&self, folder: &Path) -> bool {
        folder.starts_with(self.root())
    }
}

/// Sources on disk, below a folder.
#[derive(Clone, Debug)]
pub struct FileSources {
    root: PathBuf,
    /// The folder of the `node_modules` that the root is a package of: those beside it are its own.
    installation: Option<PathBuf>,
}

impl FileSources {
    /// The files below `root`, which is resolved first: a link to an extension means the extension.
    pub fn new(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let installation = root
            .ancestors()
            .filter(|folder| folder.ends_with("node_modules"))
            .last()
            .and_then(Path::parent)
            .map(Path::to_owned);
        Ok(FileSources { root, installation })
    }

    /// The file that a path means, if it is one of the script's.
    fn real_file(&self, path: &Path) -> io::Result<PathBuf> {
        let real = fs::canonicalize(path)?;
        let is_package = |folder: &PathBuf| real.starts_with(folder.join("node_modules"));
        if !real.starts_with(&self.root) && !self.installation.as_ref().is_some_and(is_package) {
            return Err(io::Error::other("it lies outside of the extension's folder"));
        }
        if real.is_file() { Ok(real) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

impl ModuleSources for FileSources {
    fn read(&self, path: &Path) -> io::Result<String> {
        hardpan_files::read_small_text(&self.real_file(path)?, MAX_SOURCE_BYTES).map_err(io::Error::other)
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn is_file(&self, path: &Path) -> bool {
        self.real_file(path).is_ok()
    }

    fn may_hold_packages(&self, folder: &Path) -> bool {
        folder.starts_with(self.installation.as_ref().unwrap_or(&self.root))
    }
}

/// What an import means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModulePlace {
    /// A built-in module, by its name without the prefix.
    BuiltIn(String),
    /// A file, and what it holds.
    File(PathBuf, ModuleFormat),
}

/// A file, and the names that it exports.
type FileExports = (PathBuf, Rc<BTreeSet<String>>);

/// Finds and reads modules for the engine.
#[derive(Clone)]
pub(crate) struct ScriptLoader {
    entry: PathBuf,
    sources: Arc<dyn ModuleSources>,
    read: Rc<RefCell<BTreeMap<PathBuf, Rc<ModuleSource>>>>,
    /// The file whose exports were asked for last, and its names: a file may have many imports of another.
    last_exports: Rc<RefCell<Option<FileExports>>>,
    /// The time that finding and reading modules took, and that nobody has taken into account yet.
    spent: Rc<Cell<Duration>>,
}

impl ScriptLoader {
    pub fn new(entry: &Path, sources: Arc<dyn ModuleSources>) -> Self {
        ScriptLoader {
            entry: entry.to_owned(),
            sources,
            read: Rc::default(),
            last_exports: Rc::default(),
            spent: Rc::default(),
        }
    }

    /// The time that modules took since this was last asked. It is not the script's.
    pub fn take_spent(&self) -> Duration {
        self.spent.take()
    }

    fn add_spent(&self, began: Instant) {
        self.spent.set(self.spent.get() + began.elapsed());
    }

    /// The file that an import in `base` means.
    fn find_file(&self, base: &Path, name: &str, kind: ImportKind) -> Option<PathBuf> {
        let folder = base.parent()?;
        if !name.starts_with(['.', '/']) {
            return find_in_packages(&*self.sources, folder, name, kind);
        }
        find_relative(&*self.sources, folder, name)
    }

    /// A file that a script may load, read once.
    pub fn source(&self, path: &Path) -> std::result::Result<Rc<ModuleSource>, String> {
        if let Some(source) = self.read.borrow().get(path) {
            return Ok(source.clone());
        }
        if self.read.borrow().len() >= MAX_MODULES {
            return Err(format!("an extension can load at most {MAX_MODULES} files"));
        }
        let text = self.sources.read(path).map_err(|error| error.to_string())?;
        let source = Rc::new(ModuleSource::new(path, text).map_err(|error| error.to_string())?);
        self.read.borrow_mut().insert(path.to_owned(), source.clone());
        Ok(source)
    }

    /// What an import in `base` means.
    pub fn locate(
        &self,
        base: &Path,
        name: &str,
        kind: ImportKind,
    ) -> std::result::Result<ModulePlace, String> {
        if let Some(module) = built_in_module(name) {
            return Ok(ModulePlace::BuiltIn(module));
        }
        let plain = name.strip_prefix("file://").unwrap_or(name);
        if let Some(path) = self.find_file(base, plain, kind) {
            let source = self.source(&path).map_err(|problem| in_file(&path, &problem))?;
            return Ok(ModulePlace::File(path, source.format));
        }
        let is_package = base.components().any(|part| part.as_os_str() == "node_modules");
        let node = name.strip_prefix("node:").unwrap_or(name);
        if ABSENT_NODE_MODULES.contains(&node) || (is_package && name.starts_with("node:")) {
            return Ok(ModulePlace::BuiltIn(format!("absent:{node}")));
        }
        Err(match plain.starts_with(['.', '/']) {
            true => format!("Cannot find the module \"{name}\" in the extension's folder"),
            false => format!(
                "There is no module \"{name}\" here: an extension can import its own files, packages of its node_modules, typebox, pi-coding-agent, pi-agent-core, pi-ai, pi-tui and {}",
                NODE_MODULES.map(|module| format!("node:{module}")).join(", "),
            ),
        })
    }

    /// A file as JavaScript.
    pub fn javascript(&self, path: &Path) -> std::result::Result<String, String> {
        let source = self.source(path).map_err(|problem| in_file(path, &problem))?;
        // Names of these are properties of what they export.
        let is_known = |name: &str| {
            let place = self.locate(path, name, ImportKind::Import);
            matches!(
                place,
                Ok(ModulePlace::BuiltIn(_)
                    | ModulePlace::File(_, ModuleFormat::CommonJs | ModuleFormat::Json))
            )
        };
        let exports_of = |name: &str| self.exports_of_import(path, name);
        source.javascript(path, &is_known, &exports_of).map_err(|error| in_file(path, &error.to_string()))
    }

    /// What the module of a relative import exports, if it is one of the extension's own files.
    fn exports_of_import(&self, base: &Path, name: &str) -> Option<Rc<BTreeSet<String>>> {
        if !name.starts_with('.') || base.components().any(|part| part.as_os_str() == "node_modules") {
            return None;
        }
        let Ok(ModulePlace::File(path, ModuleFormat::EsModule)) = self.locate(base, name, ImportKind::Import)
        else {
            return None;
        };
        let last = self.last_exports.borrow().clone();
        if let Some((_, names)) = last.filter(|(last, _)| *last == path) {
            return Some(names);
        }
        let names = Rc::new(self.exports_of_file(&path)?);
        *self.last_exports.borrow_mut() = Some((path, names.clone()));
        Some(names)
    }

    /// What a file exports, with what it exports of others; none if that is not known.
    fn exports_of_file(&self, path: &Path) -> Option<BTreeSet<String>> {
        let (mut names, mut seen) = (BTreeSet::new(), BTreeSet::from([path.to_owned()]));
        // A list instead of recursion: how many files export all of the next one is up to whoever wrote them.
        let mut waiting = vec![path.to_owned()];
        while let Some(file) = waiting.pop() {
            let source = self.source(&file).ok()?;
            let exports = source.exports(&file).ok()?;
            let of_others = |name: &&String| file == path || *name != "default";
            names.extend(exports.names.iter().filter(of_others).cloned());
            for name in &exports.all_of {
                let place = self.locate(&file, name, ImportKind::Import).ok()?;
                let ModulePlace::File(other, ModuleFormat::EsModule) = place else { return None };
                if seen.insert(other.clone()) {
                    waiting.push(other);
                }
            }
        }
        Some(names)
    }

    /// The text of a file of JSON.
    pub fn json(&self, path: &Path) -> std::result::Result<String, String> {
        let source = self.source(path).map_err(|problem| in_file(path, &problem))?;
        let value: serde_json::Value =
            serde_json::from_str(source.text()).map_err(|error| in_file(path, &error.to_string()))?;
        Ok(value.to_string())
    }

    /// Declares a file as a module of the engine.
    pub fn declare<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Module<'js, Declared>> {
        let path = Path::new(name);
        let script = self.javascript(path).map_err(|problem| Exception::throw_message(ctx, &problem))?;
        let module = Module::declare(ctx.clone(), name, script)?;
        let meta = module.meta()?;
        meta.set("url", file_address(path))?;
        meta.set("filename", name)?;
        meta.set("dirname", path.parent().and_then(Path::to_str).unwrap_or_default())?;
        Ok(module)
    }
}

/// A path as an address.
fn file_address(path: &Path) -> String {
    url::Url::from_file_path(path).map_or_else(|()| format!("file://{}", path.display()), String::from)
}

fn in_file(path: &Path, problem: &str) -> String {
    format!("{}: {problem}", path.file_name().unwrap_or_default().to_string_lossy())
}

/// The file that a relative import in a folder means.
pub fn find_relative(sources: &dyn ModuleSources, folder: &Path, name: &str) -> Option<PathBuf> {
    let wanted = plain_path(&folder.join(name));
    candidates(&wanted).into_iter().find(|candidate| sources.is_file(candidate))
}

/// The names under which the file of an import may be found. TypeScript names `x.ts` as `x.js`.
fn candidates(wanted: &Path) -> Vec<PathBuf> {
    let mut names = vec![wanted.to_owned()];
    let written = wanted.extension().and_then(|extension| extension.to_str());
    names.extend(match written {
        Some("js") => Some(wanted.with_extension("ts")),
        Some("mjs") => Some(wanted.with_extension("mts")),
        Some("cjs") => Some(wanted.with_extension("cts")),
        _ => None,
    });
    for ending in
        [".ts", ".js", ".mjs", ".cjs", ".json", "/index.ts", "/index.js", "/index.mjs", "/index.cjs"]
    {
        let mut name = wanted.as_os_str().to_owned();
        name.push(ending);
        names.push(name.into());
    }
    names
}

impl Resolver for ScriptLoader {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let began = clock();
        let resolved = self.resolve_name(ctx, base, name);
        self.add_spent(began);
        resolved
    }
}

impl ScriptLoader {
    /// The name under which the engine knows the module that an import means.
    fn resolve_name(&self, ctx: &Ctx<'_>, base: &str, name: &str) -> Result<String> {
        if name == INTERNAL && base.starts_with(BUILT_IN) {
            return Ok(name.to_owned());
        }
        let base = Path::new(base.strip_prefix(COMMON_JS).unwrap_or(base));
        let throw = |problem: &str| Exception::throw_message(ctx, problem);
        let place = if Path::new(name) == self.entry {
            let source =
                self.source(&self.entry).map_err(|problem| throw(&in_file(&self.entry, &problem)))?;
            ModulePlace::File(self.entry.clone(), source.format)
        } else {
            self.locate(base, name, ImportKind::Import).map_err(|problem| throw(&problem))?
        };
        let (path, is_common) = match place {
            ModulePlace::BuiltIn(module) => return Ok(format!("{BUILT_IN}{module}")),
            ModulePlace::File(path, format) => (path, format != ModuleFormat::EsModule),
        };
        let path = path.to_str().ok_or_else(|| throw("the path of a module is no text"))?;
        Ok(if is_common { format!("{COMMON_JS}{path}") } else { path.to_owned() })
    }
}

impl ScriptLoader {
    /// The module that the engine knows under a name.
    fn load_name<'js>(&self, ctx: &Ctx<'js>, name: &str) -> Result<Module<'js, Declared>> {
        let content = match (name.strip_prefix(COMMON_JS), name.strip_prefix(BUILT_IN)) {
            (Some(path), _) => format!("all.loadFile({})", serde_json::Value::from(path)),
            (None, Some(module)) => format!("all.builtIn({})", serde_json::Value::from(module)),
            (None, None) => return self.declare(ctx, name),
        };
        let source = format!(
            "import all from \"{INTERNAL}\"; const content = {content}; export default content; export const hardpanNamespace = all.namespace(content);"
        );
        Module::declare(ctx.clone(), name, source)
    }
}

impl Loader for ScriptLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let began = clock();
        let loaded = self.load_name(ctx, name);
        self.add_spent(began);
        loaded
    }
}

#[cfg(test)]
mod tests {
    use super::built_in_module;

    #[test]
    fn packages_are_known_in_both_scopes_and_nodes_modules_with_and_without_their_prefix() {
        assert_eq!(built_in_module("node:path").as_deref(), Some("path"));
        assert_eq!(built_in_module("fs/promises").as_deref(), Some("fs/promises"));
        assert_eq!(built_in_module("@sinclair/typebox").as_deref(), Some("typebox"));
        assert_eq!(built_in_module("@mariozechner/pi-tui").as_deref(), Some("tui"));
        assert_eq!(built_in_module("@earendil-works/pi-ai/compat").as_deref(), Some("ai"));
        assert_eq!(built_in_module("node:dgram"), None);
        assert_eq!(built_in_module("pi-aid"), None);
        assert_eq!(built_in_module("hardpan:internal"), None);
    }
}

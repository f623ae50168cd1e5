//! The variables and settings that git gets. Nothing of Hardpan's own environment is among them.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::repository::{RepositoryFolders, Setting};

/// Settings that no repository can change: what would run a program, wait for a person or reach
/// another machine. In the sandbox none of this does harm; where the user wants no sandbox, it
/// would.
const OVERRIDES: [(&str, &str); 24] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", "false"),
    ("core.alternateRefsCommand", "true"),
    ("core.quotePath", "false"),
    ("core.untrackedCache", "false"),
    ("credential.helper", ""),
    ("commit.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("diff.submodule", "short"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("protocol.allow", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// For a git that only looks at the repository: it finds no other one, writes nothing, asks nothing,
/// fetches nothing, and runs no filter that the repository names.
pub(super) fn for_reading(
    folders: &RepositoryFolders,
    own_settings: Option<&Path>,
    settings: &[Setting],
) -> Vec<(OsString, OsString)> {
    let mut variables = for_repository(folders, own_settings);
    // Settings that name a path below ~ must not fail.
    variables.push(variable("HOME", "/nonexistent"));
    variables.push(variable("PATH", "/usr/bin:/bin"));
    variables.push(variable("GIT_DIR", &folders.git_dir));
    variables.push(variable("GIT_WORK_TREE", &folders.work_tree));
    variables.push(variable("GIT_OPTIONAL_LOCKS", "0"));
    let filters = settings.iter().filter(|setting| is_filter(setting)).map(|setting| (&*setting.name, ""));
    variables.extend(as_variables(OVERRIDES.into_iter().chain(filters)));
    variables
}

/// For a git that commits. Hooks run with it, so it finds the repository as usual: a hook may look at
/// another one.
pub(super) fn for_commit(
    folders: &RepositoryFolders,
    own_settings: Option<&Path>,
) -> Vec<(OsString, OsString)> {
    let mut variables = for_repository(folders, own_settings);
    let runs_hooks = |(name, _): &(&str, &str)| *name != "core.hooksPath";
    variables.extend(as_variables(OVERRIDES.into_iter().filter(runs_hooks)));
    variables
}

/// For a git that lists the user's own settings.
pub(super) fn for_own_settings(
    folders: &RepositoryFolders,
    home: Option<&Path>,
    config_home: Option<&Path>,
) -> Vec<(OsString, OsString)> {
    let mut variables = vec![
        variable("GIT_CONFIG_NOSYSTEM", "1"),
        // Conditional includes ask for it.
        variable("GIT_DIR", &folders.git_dir),
        variable("LC_ALL", "C"),
    ];
    variables.extend(home.map(|home| variable("HOME", home)));
    variables.extend(config_home.map(|folder| variable("XDG_CONFIG_HOME", folder)));
    variables
}

/// For a git that fetches from another machine into an empty repository: it gets no settings of the
/// user, asks nothing, and follows no redirect to another host.
pub(super) fn for_fetching(folder: &Path) -> Vec<(OsString, OsString)> {
    let above = folder.parent().unwrap_or(folder);
    let mut variables = vec![
        variable("GIT_CONFIG_NOSYSTEM", "1"),
        variable("GIT_ATTR_NOSYSTEM", "1"),
        variable("GIT_CONFIG_GLOBAL", "/dev/null"),
        variable("GIT_CEILING_DIRECTORIES", above),
        variable("GIT_TERMINAL_PROMPT", "0"),
        variable("GIT_ASKPASS", "/bin/false"),
        variable("GIT_NO_LAZY_FETCH", "1"),
        variable("GIT_ALLOW_PROTOCOL", "http:https"),
        variable("HOME", "/nonexistent"),
        variable("PATH", "/usr/bin:/bin"),
        variable("LC_ALL", "C"),
    ];
    let own = OVERRIDES.into_iter().filter(|(name, _)| *name != "protocol.allow");
    variables.extend(as_variables(own.chain(FETCH_SETTINGS)));
    variables
}

/// Settings of a git that fetches.
const FETCH_SETTINGS: [(&str, &str); 4] = [
    ("http.followRedirects", "false"),
    // Slower than this for so long, it is given up.
    ("http.lowSpeedLimit", "1000"),
    ("http.lowSpeedTime", "15"),
    // Whatever comes stays in one file, whose size is limited.
    ("fetch.unpackLimit", "1"),
];

fn for_repository(folders: &RepositoryFolders, own_settings: Option<&Path>) -> Vec<(OsString, OsString)> {
    let above = folders.work_tree.parent().unwrap_or(&folders.work_tree);
    vec![
        variable("GIT_CONFIG_NOSYSTEM", "1"),
        variable("GIT_ATTR_NOSYSTEM", "1"),
        variable("GIT_CONFIG_GLOBAL", own_settings.unwrap_or(Path::new("/dev/null"))),
        variable("GIT_CEILING_DIRECTORIES", above),
        variable("GIT_TERMINAL_PROMPT", "0"),
        // A partial clone would fetch what it lacks, by a command that its settings may name.
        variable("GIT_NO_LAZY_FETCH", "1"),
        variable("GIT_ALLOW_PROTOCOL", "none"),
        variable("LC_ALL", "C"),
    ]
}

/// Whether a setting of the repository names a program that git runs on files when it compares them.
fn is_filter(setting: &Setting) -> bool {
    let runs = [".clean", ".smudge", ".process", ".required"].iter().any(|end| setting.name.ends_with(end));
    setting.name.starts_with("filter.") && runs
}

/// By variables, not by `-c`, because a name may contain an equals sign.
fn as_variables<'a>(
    settings: impl Iterator<Item = (&'a str, &'a str)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let settings: Vec<(&str, &str)> = settings.collect();
    let count = variable("GIT_CONFIG_COUNT", settings.len().to_string());
    let pairs: Vec<_> = settings
        .iter()
        .enumerate()
        .flat_map(|(at, (name, value))| {
            [
                variable(&format!("GIT_CONFIG_KEY_{at}"), name),
                variable(&format!("GIT_CONFIG_VALUE_{at}"), value),
            ]
        })
        .collect();
    pairs.into_iter().chain([count])
}

fn variable(name: &str, value: impl AsRef<OsStr>) -> (OsString, OsString) {
    (name.into(), value.as_ref().to_owned())
}

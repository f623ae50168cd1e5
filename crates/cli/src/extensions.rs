//! `hardpan extensions`: which extensions a conversation here would load, what each brings and what it
//! may do.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hardpan_app::extensions::typings::write_skeleton;
use hardpan_app::extensions::{ExtensionGrant, ExtensionListing, ExtensionOrigin, PermissionStore};
use hardpan_app::options::{OpenOptions, ProviderAccess, SessionStorage};
use hardpan_app::settings::UserFolders;
use hardpan_app::{ConversationApp, FaceHooks};
use hardpan_sandbox::SandboxLauncher;

use crate::chat::commands;
use crate::command_setup::{StderrNotices, working_folder};
use crate::output::{self, safe};

/// Flags of `hardpan extensions`.
#[derive(Debug, clap::Args)]
pub struct ExtensionsArgs {
    #[command(subcommand)]
    command: Option<ExtensionsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Subcommand)]
enum ExtensionsCommand {
    /// Allow an extension to reach hosts, to read variables of the environment or to ask models
    ///
    /// Holds for the extension as it is now: when its files change, you are asked again.
    Allow(AllowArgs),
    /// Write a new extension: a typed skeleton with declarations of the whole API
    New {
        /// Its name, and that of its folder
        name: String,
        /// Folder to write it to [default: the current folder]
        #[arg(long, value_name = "FOLDER")]
        dir: Option<PathBuf>,
    },
    /// Forget what an extension was allowed
    Forget {
        /// Its name, as `hardpan extensions` lists it
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct AllowArgs {
    /// Its name, as `hardpan extensions` lists it
    name: String,
    /// A host that it may reach, such as api.example.com or *.example.com; repeat for several
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// A variable of the environment that it may read; repeat for several
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// A provider whose key in keys.toml may go to the hosts of --host; repeat for several
    #[arg(long, value_name = "PROVIDER")]
    key: Vec<String>,
    /// Let it ask models, which the conversation pays for
    #[arg(long)]
    models: bool,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Folder to look at [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Load this extension as well; repeat for several
    #[arg(long, value_name = "FILE")]
    extension: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `hardpan extensions`.
pub fn run(args: &ExtensionsArgs) -> Result<()> {
    match &args.command {
        None => list(&args.list),
        Some(ExtensionsCommand::Allow(args)) => allow(args),
        Some(ExtensionsCommand::New { name, dir }) => {
            let folder = write_skeleton(&working_folder(dir.as_deref())?, name)?;
            note!("wrote {}; try it with `hardpan --extension {}`", folder.display(), folder.display());
            Ok(())
        }
        Some(ExtensionsCommand::Forget { name }) => forget(name),
    }
}

/// Loads the extensions in a conversation that is not stored.
fn load(args: &ListArgs) -> Result<Vec<ExtensionListing>> {
    let options = OpenOptions {
        storage: SessionStorage::Temporary,
        access: ProviderAccess::Simulator,
        symbol_map: false,
        sandbox_launcher: SandboxLauncher::installed(),
        reserved_names: commands::names(),
        extensions: args.extension.clone(),
        ..OpenOptions::new(working_folder(args.dir.as_deref())?)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let listed = runtime.block_on(async {
        let face = FaceHooks { prompter: None, notices: StderrNotices::shared() };
        let app = Arc::new(ConversationApp::open(&options, &face)?);
        app.load_extensions().await?;
        anyhow::Ok(app.extensions.list())
    });
    runtime.shutdown_background();
    listed
}

fn list(args: &ListArgs) -> Result<()> {
    let listed = load(args)?;
    if args.json {
        return output::print_json(&listed);
    }
    if listed.is_empty() {
        let own = UserFolders::from_env().config.map(|config| config.join("extensions"));
        let own = own.map_or_else(String::new, |own| format!(" or {}", own.display()));
        note!("no extensions: put one into .hardpan/extensions{own}, or name it with --extension");
        return Ok(());
    }
    Ok(output::print(listed.iter().map(describe).collect::<String>())?)
}

fn allow(args: &AllowArgs) -> Result<()> {
    if args.host.is_empty() && args.env.is_empty() && args.key.is_empty() && !args.models {
        bail!("say what it may do: --host HOST, --env NAME, --key PROVIDER or --models");
    }
    if let Some(wrong) = args.host.iter().find(|host| host.is_empty() || host.contains(['/', '@', ' '])) {
        bail!(
            "--host {wrong:?} is no host: name it without http:// and without a path, such as api.example.com"
        );
    }
    if !args.key.is_empty() && args.host.is_empty() {
        bail!("--key needs --host: the key goes to that host and to no other");
    }
    let listed = load(&args.list)?;
    let Some(extension) = listed.into_iter().find(|extension| extension.name == args.name) else {
        bail!(
            "there is no extension {} here; `hardpan extensions` lists them, and `--extension FILE` adds one",
            args.name
        );
    };
    let mut grant = extension.granted;
    grant.network.extend(args.host.iter().map(|host| host.to_lowercase()));
    grant.env.extend(args.env.iter().cloned());
    let hosts: Vec<String> = args.host.iter().map(|host| host.to_lowercase()).collect();
    let grants = args.key.iter().flat_map(|key| hosts.iter().map(move |host| format!("{key}@{host}")));
    grant.keys.extend(grants);
    grant.models |= args.models;
    PermissionStore::new(&UserFolders::from_env()).allow(&grant)?;
    note!("{} may {}, as long as its files stay as they are", args.name, allowances(&grant));
    Ok(())
}

fn forget(name: &str) -> Result<()> {
    if PermissionStore::new(&UserFolders::from_env()).forget(name)? {
        note!("forgot what {name} was allowed");
    } else {
        note!("{name} was allowed nothing");
    }
    Ok(())
}

/// What an extension was allowed, in words.
fn allowances(grant: &ExtensionGrant) -> String {
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<String>>().join(", ");
    let mut parts = Vec::new();
    if !grant.network.is_empty() {
        parts.push(format!("reach {}", list(&grant.network)));
    }
    if !grant.env.is_empty() {
        parts.push(format!("read {} from the environment", list(&grant.env)));
    }
    if !grant.keys.is_empty() {
        parts.push(format!("have keys sent: {}", list(&grant.keys)));
    }
    if grant.models {
        parts.push("ask models".to_owned());
    }
    parts.join(" and ")
}

fn describe(extension: &ExtensionListing) -> String {
    let origin = match extension.origin {
        ExtensionOrigin::Argument => "--extension",
        ExtensionOrigin::Project => "project",
        ExtensionOrigin::User => "user",
    };
    let path = extension.path.display().to_string();
    let mut text = format!("{} ({origin}) {}\n", safe(&extension.name), safe(&path));
    let commands = extension.commands.iter().map(|name| format!("/{name}")).collect();
    for (label, names) in [
        ("events", extension.events.clone()),
        ("tools", extension.tools.clone()),
        ("commands", commands),
        ("flags", extension.flags.clone()),
        ("keys", extension.shortcuts.clone()),
        ("providers", extension.providers.clone()),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("  {label}: {}\n", safe(&names.join(", "))));
        }
    }
    if let Some(declared) = &extension.declared {
        let parts = [("network", &declared.network), ("exec", &declared.exec), ("env", &declared.env)];
        let lists = parts.iter().filter(|(_, names)| !names.is_empty());
        let lists = lists.map(|(kind, names)| format!("{kind} {}", names.join(", ")));
        let parts: Vec<String> = lists.chain(declared.models.then(|| "models".to_owned())).collect();
        let parts = if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") };
        text.push_str(&format!("  declares: {}\n", safe(&parts)));
    }
    let allowed = allowances(&extension.granted);
    if !allowed.is_empty() {
        text.push_str(&format!("  may: {}\n", safe(&allowed)));
    }
    text
}

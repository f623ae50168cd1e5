//! `hardpan mcp add`, `adopt` and `remove`: the servers that config.toml names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use hardpan_app::mcp::{FoundServer, FoundServers, find_servers};
use hardpan_app::settings::UserFolders;
use hardpan_mcp::{ServerConfig, ServerName, ServerTransport};
use hardpan_workspace::find_project_root;

use super::login::forget_login;
use crate::command_setup::working_folder;
use crate::output::safe;

/// Flags of `hardpan mcp add`. What a flag requires is not asked for where that conflicts with another
/// one, so the flags of one kind of server name those of the other.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Name of the server; the model calls its tools NAME__TOOL
    name: String,
    /// Address of a server that speaks streamable HTTP
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// Header of each request, as NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE", requires = "url", conflicts_with = "command")]
    header: Vec<String>,
    /// Variable of your environment that holds a bearer token
    #[arg(long, value_name = "VARIABLE", requires = "url", conflicts_with = "command")]
    bearer_token_env: Option<String>,
    /// Variable of the program's environment, as NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE", requires = "command", conflicts_with = "url")]
    env: Vec<String>,
    /// Variable of your environment that the program gets
    #[arg(long, alias = "pass-environment", value_name = "VARIABLE")]
    #[arg(requires = "command", conflicts_with = "url")]
    pass_env: Vec<String>,
    /// Run the program in the sandbox of the model's commands
    #[arg(long, requires = "command", conflicts_with = "url")]
    sandbox: bool,
    /// Program of the server and its arguments, after `--`
    #[arg(last = true)]
    command: Vec<String>,
}

/// Flags of `hardpan mcp adopt`.
#[derive(Debug, clap::Args)]
pub struct AdoptArgs {
    /// Name of the server in the other agent's file; `hardpan mcp` lists them
    name: String,
    /// Name that it gets here
    #[arg(long = "as", value_name = "NAME")]
    rename: Option<String>,
    /// The file, if several name such a server
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Folder of the project [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Flags of `hardpan mcp remove`.
#[derive(Debug, clap::Args)]
pub struct RemoveArgs {
    /// Name of the server
    name: String,
}

/// Carries out `hardpan mcp add`.
pub fn add(args: &AddArgs) -> Result<()> {
    let name = ServerName::try_from(args.name.clone())?;
    let has_password = |url: &String| {
        let rest = url.split_once("://").map_or(&**url, |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
    };
    if args.url.as_ref().is_some_and(has_password) {
        bail!(
            "the address has a password in it, which would be stored and shown: use --bearer-token-env VARIABLE"
        );
    }
    let transport = match (&args.url, args.command.split_first()) {
        (Some(url), _) => ServerTransport::Http {
            url: url.clone(),
            headers: pairs(&args.header)?,
            bearer_token_env: args.bearer_token_env.clone(),
        },
        (None, Some((command, rest))) => ServerTransport::Program {
            command: command.clone(),
            args: rest.to_vec(),
            env: pairs(&args.env)?,
            pass_environment: args.pass_env.clone(),
            cwd: None,
        },
        (None, None) => bail!("name the server's program after --, or its address with --url"),
    };
    let config = ServerConfig { sandbox: args.sandbox, ..ServerConfig::new(transport) };
    // As it would be read: a mistake is told before it is stored.
    let config = serde_json::from_value(config.to_settings()).map_err(|error| anyhow!("{error}"))?;
    store(&name, &config)
}

/// Carries out `hardpan mcp adopt`.
pub fn adopt(args: &AdoptArgs) -> Result<()> {
    let has_name = |found: &FoundServer| {
        let here = found.server.as_ref().ok().map(|(name, _)| name.as_str());
        found.name == args.name || here == Some(&args.name)
    };
    let is_wanted = |found: &FoundServer| {
        has_name(found) && args.from.as_ref().is_none_or(|file| found.file.ends_with(file))
    };
    let FoundServers { servers, unreadable } = servers_of_others(args.dir.as_deref())?;
    let mut found: Vec<FoundServer> = servers.into_iter().filter(is_wanted).collect();
    if found.len() > 1 {
        let files: Vec<String> =
            found.iter().map(|found| safe(&found.file.to_string_lossy()).to_string()).collect();
        bail!(
            "several files name a server {}: choose one with --from: {}",
            safe(&args.name),
            files.join(", ")
        );
    }
    let Some(found) = found.pop() else {
        let but = |(file, reason): &(PathBuf, String)| {
            format!("; {} {}", safe(&file.to_string_lossy()), safe(reason))
        };
        bail!(
            "no file of another agent names a server {}: `hardpan mcp` lists those there are{}",
            safe(&args.name),
            unreadable.iter().map(but).collect::<String>()
        );
    };
    let (name, config) =
        found.server.with_context(|| format!("the server {} cannot be used", safe(&args.name)))?;
    let name = args.rename.clone().map_or(Ok(name), ServerName::try_from)?;
    if name.as_str() != found.name {
        note!("the server {} is called {name} here", safe(&found.name));
    }
    note!("it runs or reaches: {}", safe(&config.place()));
    store(&name, &config)
}

/// Carries out `hardpan mcp remove`.
pub fn remove(args: &RemoveArgs) -> Result<()> {
    let name = ServerName::try_from(args.name.clone())?;
    let file = UserFolders::from_env().remove_server(&name)?;
    note!("removed {name} from {}", safe(&file.to_string_lossy()));
    forget_login(&name)
}

/// The servers in the files of other agents.
pub fn servers_of_others(folder: Option<&Path>) -> Result<FoundServers> {
    let root = find_project_root(&working_folder(folder)?);
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    Ok(find_servers(&root, home.as_deref(), &|name| std::env::var(name).ok()))
}

fn store(name: &ServerName, config: &ServerConfig) -> Result<()> {
    let file = UserFolders::from_env().add_server(name, config)?;
    note!(
        "added {name} to {}; `hardpan mcp` lists its tools and what they cost",
        safe(&file.to_string_lossy())
    );
    Ok(())
}

fn pairs(written: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => bail!("expected NAME=VALUE, not {}", safe(text)),
    };
    written.iter().map(pair).collect()
}

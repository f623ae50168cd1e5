//! `hardpan mcp login` and `logout`: OAuth with the person's browser.

use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hardpan_app::mcp::login_file;
use hardpan_app::settings::UserFolders;
use hardpan_mcp::{
    InvalidAnswer, LoginAttempt, LoginFile, LoginSettings, RedirectAnswer, RedirectListener, ServerConfig,
    ServerName, ServerTransport, revoke,
};
use tokio::sync::mpsc;

use crate::command_setup::load_settings;
use crate::output::{error_text, safe};

/// How many refused answers are told: whoever guesses the port must not fill the terminal.
const TOLD_ANSWERS: usize = 3;

/// Flags of `hardpan mcp login`.
#[derive(Debug, clap::Args)]
pub struct LoginArgs {
    /// Name of the server
    name: String,
    /// Only print the address to log in at
    #[arg(long)]
    no_browser: bool,
    /// How long to wait for the browser
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
    /// Folder of the project [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Flags of `hardpan mcp logout`.
#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    /// Name of the server
    name: String,
    /// Folder of the project [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Carries out `hardpan mcp login`.
pub fn login(args: &LoginArgs) -> Result<()> {
    let (name, config, file) = find_server(&args.name, args.dir.as_deref())?;
    let ServerTransport::Http { url, .. } = &config.transport else {
        bail!("{name} is a program on this machine: only a server with `url` has a login");
    };
    if !config.can_log_in() {
        bail!(
            "{name} has a token in config.toml, which goes first: take `bearer_token_env` or the header out"
        );
    }
    runtime()?.block_on(async {
        let answered = log_in(url, &config.login, args);
        let attempt = answered.await.with_context(|| format!("cannot log in at {name} ({})", safe(url)))?;
        let (attempt, answer) = attempt;
        let login = attempt.finish(answer).await.with_context(|| format!("cannot log in at {name}"))?;
        file.store(&login)?;
        note!(
            "logged in at {name}; the login is in {}, which only you can read",
            safe(&file.path().to_string_lossy())
        );
        if !login.can_refresh() {
            note!("the server renews no logins: log in again when this one ends");
        }
        Ok(())
    })
}

/// Carries out `hardpan mcp logout`.
pub fn logout(args: &LogoutArgs) -> Result<()> {
    let (name, _, file) = find_server(&args.name, args.dir.as_deref())?;
    if !delete_login(&name, &file)? {
        note!("there is no login at {name}");
    }
    Ok(())
}

/// Deletes the login at a server that is no longer in config.toml, if there is one.
pub fn forget_login(name: &ServerName) -> Result<()> {
    // The login knows its address.
    let file = UserFolders::from_env().logins().map(|folder| LoginFile::new(&folder, name, ""));
    file.map_or(Ok(()), |file| delete_login(name, &file).map(|_| ()))
}

/// Deletes a login here and at its authorization server. Says whether there was one.
fn delete_login(name: &ServerName, file: &LoginFile) -> Result<bool> {
    let Some(login) = file.remove()? else { return Ok(false) };
    match runtime()?.block_on(revoke(&login)) {
        Ok(true) => note!("logged out of {name}: the login is deleted, here and there"),
        Ok(false) => note!("logged out of {name}: the login is deleted here; its server ends no logins"),
        Err(error) => {
            let error = error_text(&error.into());
            note!("logged out of {name}: the login is deleted here, but not there: {}", safe(&error));
        }
    }
    Ok(true)
}

/// A server of the settings, and where the login at it is kept.
fn find_server(name: &str, dir: Option<&std::path::Path>) -> Result<(ServerName, ServerConfig, LoginFile)> {
    let settings = load_settings(dir)?;
    let name = ServerName::try_from(name.to_owned())?;
    let Some(config) = settings.config.mcp_servers.get(&name) else {
        bail!("there is no server {name}: `hardpan mcp` lists those there are");
    };
    let logins = settings
        .user_folders
        .logins()
        .context("no folder to keep logins in: set HOME or HARDPAN_CONFIG_DIR")?;
    let file = login_file(&name, config, Some(&logins)).with_context(|| {
        format!("{name} is a program on this machine: only a server with `url` has a login")
    })?;
    Ok((name, config.clone(), file))
}

/// Sends the person to the authorization server, and waits until the browser comes back.
async fn log_in(
    url: &str,
    settings: &LoginSettings,
    args: &LoginArgs,
) -> Result<(LoginAttempt, RedirectAnswer)> {
    let listener = RedirectListener::bind(settings.callback_port).await?;
    let attempt = LoginAttempt::start(url, settings, &listener.redirect_uri()).await?;
    note!("log in at {} with this address:\n\n{}\n", safe(attempt.issuer()), safe(attempt.address()));
    if !args.no_browser && open_browser(attempt.address()) {
        note!("your browser should show it now");
    }
    note!("if the browser runs on another machine, paste the address of the page that it cannot open:");
    let mut told = 0;
    let mut tell = |reason: InvalidAnswer| {
        told += 1;
        if told <= TOLD_ANSWERS {
            note!("{reason}");
        }
    };
    let pasted = pasted_lines();
    let state = attempt.state().to_owned();
    let answer = tokio::select! {
        answer = listener.answer(&state, &mut tell) => answer,
        answer = pasted_answer(pasted, &state) => answer,
        () = tokio::time::sleep(Duration::from_secs(args.wait)) => {
            bail!("nobody came back from the browser within {} s: nothing is stored; try again", args.wait);
        }
    };
    Ok((attempt, answer))
}

/// The lines of standard input, as long as somebody reads them.
fn pasted_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    // It may wait for a line when the program ends, which ends it, too.
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = String::new();
            match input.read_line(&mut line) {
                Ok(count) if count > 0 && sender.blocking_send(line).is_ok() => {}
                _ => return,
            }
        }
    });
    lines
}

/// The first pasted address that answers the login; never, if there is none.
async fn pasted_answer(mut lines: mpsc::Receiver<String>, state: &str) -> RedirectAnswer {
    while let Some(line) = lines.recv().await {
        match RedirectAnswer::read(&line, state) {
            Ok(answer) => return answer,
            Err(reason) => note!("{reason}"),
        }
    }
    std::future::pending().await
}

/// Opens the person's browser, if there seems to be one: says whether it was started. The address begins
/// with `http`, which has been checked, and so it is no option.
fn open_browser(address: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let quiet = Stdio::null;
    let start = || Command::new(program).arg(address).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    has_screen && start().is_ok()
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the async runtime")
}

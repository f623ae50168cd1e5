//! `hardpan key` and `/key`: a provider's key, typed without being shown, stored for its owner only.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Context, Result, bail};
use hardpan_app::ConversationApp;
use hardpan_app::settings::{KeySource, Settings};
use hardpan_app::target::default_model_of;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::chat::commands::SlashCommandError;
use crate::command_setup::load_settings;
use crate::output::safe;

/// Providers that a question names.
const NAMED_PROVIDERS: &str = "anthropic, openai, gemini, openrouter, xai, …";

/// Flags of `hardpan key`.
#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    /// Provider that the key is for, as `hardpan providers` lists it
    provider: String,
}

/// Runs `hardpan key PROVIDER`: reads the key from the terminal without showing it, or from standard
/// input.
pub fn key(args: &KeyArgs) -> Result<()> {
    let settings = load_settings(None)?;
    settings.catalogue.provider(&args.provider)?;
    let is_terminal = io::stdin().is_terminal();
    if is_terminal {
        note!("The key for {} (it is not shown):", safe(&args.provider));
    }
    let hidden = is_terminal.then(HiddenInput::start).flatten();
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the key")?;
    drop(hidden);
    let Some(key) = usable_key(&line) else { bail!("that is no key: expected one word; nothing is stored") };
    note!("{}", store(&settings, &args.provider, key)?);
    Ok(())
}

/// `/key [PROVIDER]`: asks for a key in the face, stores it, and goes on with a model of its provider.
pub async fn enter_key(arguments: &str, app: &ConversationApp) -> Result<String, SlashCommandError> {
    let Some(prompter) = app.prompter() else { return Err(SlashCommandError::NobodyToAsk) };
    let question = format!("Which provider is the key for? {NAMED_PROVIDERS}");
    let provider = match arguments {
        "" => prompter.ask_text(&question).await.unwrap_or_default().trim().to_owned(),
        named => named.to_owned(),
    };
    if provider.is_empty() {
        return Ok("nothing is stored".to_owned());
    }
    app.settings.catalogue.provider(&provider)?;
    let question = format!("The key for {provider} (it is not shown)");
    let typed = prompter.ask_secret(&question).await.unwrap_or_default();
    let Some(key) = usable_key(&typed) else {
        return Ok("nothing is stored: that is no key".to_owned());
    };
    let stored = store(&app.settings, &provider, key)?;
    if app.agent.target().provider != provider {
        let model = default_model_of(&app.settings, &provider)?;
        app.select_model(Some(provider), model).await?;
    }
    Ok(format!("{stored} {} answers from the next prompt on.", app.agent.target().model.name()))
}

/// Stores a key, and says where, and whether it is used.
fn store(
    settings: &Settings,
    provider: &str,
    key: &str,
) -> Result<String, hardpan_app::settings::SettingsError> {
    let path = settings.user_folders.store_key(provider, key)?;
    let mut said = format!("The key is in {}, which only you can read.", path.display());
    let profile = settings.catalogue.provider(provider).map(|row| row.profile.clone());
    let source = profile.ok().and_then(|profile| settings.key_source(provider, &profile).ok().flatten());
    if let Some(KeySource::Environment(name)) = source {
        said.push_str(&format!(" {name} is set, too, and goes first."));
    }
    Ok(said)
}

/// What was typed, if it can be a key.
fn usable_key(typed: &str) -> Option<&str> {
    let key = typed.trim();
    (!key.is_empty() && !key.contains(|c: char| c.is_whitespace() || c.is_control())).then_some(key)
}

/// Hides what is typed into a terminal that echoes lines by itself, until it is dropped. A terminal in
/// raw mode echoes nothing.
pub struct HiddenInput(Termios);

impl HiddenInput {
    pub fn start() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut hidden = before.clone();
        if !before.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO) {
            return None;
        }
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &hidden).ok()?;
        Some(HiddenInput(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::usable_key;

    #[test]
    fn a_key_is_one_word() {
        assert_eq!(usable_key(" sk-1234\n"), Some("sk-1234"));
        assert_eq!([usable_key(""), usable_key("two words"), usable_key("a\u{1b}b")], [None; 3]);
    }
}

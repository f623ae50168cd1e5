//! `hardpan models`: the catalogue, its aliases, and how it compares with a provider's own list.

use anyhow::{Context, Result, bail};
use clap::Args;
use hardpan_app::model_check::{self, ModelCheck, NameCheck};
use hardpan_app::options::TargetOptions;
use hardpan_app::settings::Settings;
use hardpan_app::target::resolve_target;
use hardpan_models::{Model, ThinkingOff};
use serde::Serialize;

use crate::command_setup::load_settings;
use crate::output::{self, Align, Table, safe, thousands};
use crate::views::width;

/// How many names of a long list a person is shown.
const SHOWN: usize = 30;

#[derive(Args, Debug)]
pub struct ModelsArgs {
    /// List only models whose name or alias contains this text
    filter: Option<String>,
    /// List only models of this provider
    #[arg(long)]
    provider: Option<String>,
    /// List also models that are no longer sold
    #[arg(long)]
    all: bool,
    /// List the short names of models, and what they stand for today
    #[arg(long, conflicts_with = "all")]
    aliases: bool,
    /// Ask a provider for its own list of models, and compare [default: the default model's
    /// provider]
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, conflicts_with_all = ["filter", "all", "aliases", "provider"])]
    check: Option<Option<String>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs `hardpan models`.
pub fn models(args: &ModelsArgs) -> Result<()> {
    let settings = load_settings(None)?;
    if let Some(provider) = &args.check {
        return check(&settings, provider.as_deref(), args.json);
    }
    if let Some(provider) = &args.provider {
        settings.catalogue.provider(provider)?;
    }
    if args.aliases { list_aliases(&settings, args) } else { list_models(&settings, args) }
}

/// A model, with what leads to it.
#[derive(Serialize)]
struct ModelEntry<'a> {
    #[serde(flatten)]
    model: &'a Model,
    /// Its short names.
    aliases: Vec<String>,
    /// Whether it is used when nobody names a model.
    default: bool,
}

fn list_models(settings: &Settings, args: &ModelsArgs) -> Result<()> {
    let aliases = aliases(settings);
    // Settings that name no model have no default; the list is shown all the same.
    let default = resolve_target(&TargetOptions::default(), settings, None).ok().map(|target| target.model);
    let entry = |model| {
        let names = aliases.iter().filter(|alias| alias.stands_for(model)).map(|alias| alias.alias.clone());
        let default = default.as_ref().is_some_and(|default| default.name() == model.name());
        ModelEntry { model, aliases: names.collect(), default }
    };
    let filter = args.filter.as_deref().unwrap_or_default().to_lowercase();
    let is_wanted = |entry: &ModelEntry<'_>| {
        let named = entry.model.name().to_lowercase().contains(&filter) || entry.aliases.contains(&filter);
        named && args.provider.as_ref().is_none_or(|provider| entry.model.provider == *provider)
    };
    let all = settings.catalogue.models().map(entry).filter(is_wanted);
    let (entries, gone): (Vec<_>, Vec<_>) = all.partition(|entry| args.all || !entry.model.gone);
    if args.json {
        return output::print_json(&entries);
    }
    match (entries.len(), gone.len()) {
        (0, 0) => bail!("no model matches; run `hardpan models` to list all"),
        (0, gone) => bail!("no model that is still sold matches; --all lists {gone} that were"),
        _ => output::print(models_table(&entries))?,
    }
    let hidden =
        if gone.is_empty() { String::new() } else { format!(", {} no longer sold (--all)", gone.len()) };
    note!(
        "{} models{hidden}; prices in dollars per million tokens, as of {}",
        entries.len(),
        settings.catalogue.as_of()
    );
    Ok(())
}

fn models_table(entries: &[ModelEntry<'_>]) -> String {
    let mut table = Table::new(&[
        ("model", Align::Left),
        ("window", Align::Right),
        ("output", Align::Right),
        ("in $/M", Align::Right),
        ("cached", Align::Right),
        ("write", Align::Right),
        ("out $/M", Align::Right),
        ("can", Align::Left),
    ]);
    let price = |price: Option<f64>| price.map_or_else(String::new, |price| format!("{price}"));
    for ModelEntry { model, aliases, default } in entries {
        let abilities = [(model.tools, "tools"), (model.vision, "images")];
        let mut can: Vec<String> =
            abilities.iter().filter(|(has, _)| *has).map(|(_, word)| (*word).to_owned()).collect();
        can.extend(describe_thinking(model));
        can.extend(model.deprecated.as_ref().map(|day| format!("until {day}")));
        can.extend(model.gone.then(|| "no longer sold".to_owned()));
        can.extend((!aliases.is_empty()).then(|| format!("= {}", aliases.join(", "))));
        let mark = if *default { " [default]" } else { "" };
        table.row(vec![
            model.name() + mark,
            thousands(model.context as usize),
            thousands(model.max_output as usize),
            price(model.price.is_known().then_some(model.price.input)),
            price(model.price.cache_read),
            price(model.price.cache_write),
            price(model.price.is_known().then_some(model.price.output)),
            can.join(", "),
        ]);
    }
    table.render(width())
}

/// How a model's thinking can be set: `thinking off low–max`. None for one that does not think.
fn describe_thinking(model: &Model) -> Option<String> {
    let thinking = &model.thinking;
    if !model.reasoning && !thinking.can_be_set() {
        return None;
    }
    let can_be_off = thinking.can_be_set() && thinking.off != ThinkingOff::Never;
    let levels = thinking.efforts.iter().filter(|effort| **effort != hardpan_prompt::Effort::None);
    let levels = match (levels.clone().min(), levels.max()) {
        (Some(least), Some(most)) if least != most => Some(format!("{least}–{most}")),
        (Some(only), _) => Some(only.to_string()),
        (None, _) => None,
    };
    let words = [Some("thinking".to_owned()), can_be_off.then(|| "off".to_owned()), levels];
    let words = words.into_iter().chain([thinking.budget.then(|| "TOKENS".to_owned())]).flatten();
    Some(words.collect::<Vec<_>>().join(" "))
}

/// A short name of a model.
#[derive(Serialize)]
struct AliasEntry {
    alias: String,
    provider: String,
    /// The id of the model that it stands for today.
    model: String,
}

impl AliasEntry {
    fn stands_for(&self, model: &Model) -> bool {
        self.provider == model.provider && self.model == model.id
    }
}

fn aliases(settings: &Settings) -> Vec<AliasEntry> {
    let of_provider = |provider| settings.catalogue.aliases(provider);
    let all = settings.catalogue.providers().flat_map(of_provider);
    all.map(|(alias, model)| AliasEntry { alias, provider: model.provider, model: model.id }).collect()
}

fn list_aliases(settings: &Settings, args: &ModelsArgs) -> Result<()> {
    let filter = args.filter.as_deref().unwrap_or_default().to_lowercase();
    let is_wanted = |entry: &AliasEntry| {
        (entry.alias.contains(&filter) || entry.model.to_lowercase().contains(&filter))
            && args.provider.as_ref().is_none_or(|provider| entry.provider == *provider)
    };
    let entries: Vec<AliasEntry> = aliases(settings).into_iter().filter(is_wanted).collect();
    if args.json {
        return output::print_json(&entries);
    }
    if entries.is_empty() {
        bail!("no alias matches; run `hardpan models --aliases` to list all");
    }
    let mut table = Table::new(&[("alias", Align::Left), ("model", Align::Left)]);
    for AliasEntry { alias, provider, model } in entries {
        table.row(vec![alias, format!("{provider}/{model}")]);
    }
    Ok(output::print(table.render(width()))?)
}

fn check(settings: &Settings, provider: Option<&str>, json: bool) -> Result<()> {
    let provider =
        provider.map_or_else(|| model_check::default_provider(settings), |id| Ok(id.to_owned()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let checked = runtime.block_on(async {
        tokio::select! {
            checked = model_check::check_models(settings, &provider) => Ok(checked?),
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    })?;
    output::print(match json {
        true => serde_json::to_string_pretty(&checked)? + "\n",
        false => describe_check(&checked),
    })?;
    let lost: Vec<String> = checked.names.iter().filter(|name| !name.listed).map(describe_name).collect();
    if !lost.is_empty() {
        bail!("{provider} does not list the model of {}", lost.join(", "));
    }
    Ok(())
}

/// `alias opus (claude-opus-5-5)`.
fn describe_name(name: &NameCheck) -> String {
    let what = name.alias.as_ref().map_or_else(|| "the default".to_owned(), |alias| format!("alias {alias}"));
    format!("{what} ({})", safe(&name.model))
}

fn describe_check(check: &ModelCheck) -> String {
    let ModelCheck { provider, address, listed, missing, unknown, names } = check;
    let mut text = format!("{provider} lists {listed} models at {}\n", safe(address));
    for name in names {
        let what = name.alias.as_ref().map_or_else(|| "default".to_owned(), |alias| format!("alias {alias}"));
        let verdict = if name.listed { "listed" } else { "NOT listed" };
        text.push_str(&format!("{what}: {}, {verdict}\n", safe(&name.model)));
    }
    text.push_str(&name_list("in the catalogue, but not listed", missing));
    text + &name_list("listed, but not in the catalogue", unknown)
}

/// A list of names below its heading; a long one is cut.
fn name_list(heading: &str, names: &[String]) -> String {
    if names.is_empty() {
        return format!("{heading}: none\n");
    }
    let mut text = format!("{heading}:\n");
    for name in names.iter().take(SHOWN) {
        text.push_str(&format!("  {}\n", safe(name)));
    }
    if names.len() > SHOWN {
        text.push_str(&format!("  … and {} more (--json lists them)\n", names.len() - SHOWN));
    }
    text
}

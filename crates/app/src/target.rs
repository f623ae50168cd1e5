//! Which model a request is for, and in which layout: [`resolve_target`] and [`resolve_layout`].

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_context::{KeepLevel, LayoutName, LifetimeSetting, Target, UnknownLayout};
use hardpan_models::{ThinkingSetting, UnknownName};

use crate::learned_state::LearnedState;
use crate::notice::{Notice, NoticeSink};
use crate::options::TargetOptions;
use crate::settings::{Settings, WebSearchSetting};

/// Why there is no model for a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// There is no such provider or model.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// There is no such layout.
    #[error(transparent)]
    UnknownLayout(#[from] UnknownLayout),
    /// The model cannot answer with so many tokens.
    #[error("--max-tokens {max_tokens} is out of range: {model} answers with 1 to {limit} tokens")]
    MaxTokens {
        /// The limit that was asked for.
        max_tokens: u32,
        /// The model's own limit.
        limit: u32,
        /// The model's id.
        model: String,
    },
    /// The catalogue has no model of the provider that could be the default.
    #[error("no known model of {provider}: name one with --model")]
    NoModel {
        /// The provider's id.
        provider: String,
    },
}

/// Scales token counts by what earlier bills reported, for models whose vocabulary is not public.
pub fn apply_learned_factor(target: &mut Target, state: &LearnedState) {
    if target.model.vocabulary.is_none() {
        target.factor = state.factor(&target.model.name()).unwrap_or(target.factor);
    }
}

/// Chooses the layout: the flag, then the environment, then the session, then the settings.
pub fn resolve_layout(
    options: &TargetOptions,
    settings: &Settings,
    session: Option<&str>,
) -> Result<LayoutName, TargetError> {
    let named = options.layout.clone().or_else(|| env_value("HARDPAN_LAYOUT"));
    let session = session.and_then(|name| name.parse().ok()).filter(|_| named.is_none());
    let named = named.or(settings.config.layout.clone());
    Ok(session.map_or_else(|| named.map_or(Ok(LayoutName::default()), |name| name.parse()), Ok)?)
}

/// Chooses for how long the provider is asked to keep what requests cache: the flag, then the settings.
pub fn resolve_lifetime(options: &TargetOptions, settings: &Settings) -> LifetimeSetting {
    options.cache_lifetime.or(settings.config.cache_lifetime).unwrap_or_default()
}

/// Chooses how much of the conversation requests keep: the flag, then the settings.
pub fn resolve_keep(options: &TargetOptions, settings: &Settings) -> KeepLevel {
    options.keep.or(settings.config.keep).unwrap_or_default()
}

fn env_value(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Provider and model, as far as something names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedTarget {
    /// The provider's id.
    pub provider: Option<String>,
    /// The model's name.
    pub model: Option<String>,
}

impl NamedTarget {
    /// What names them: flags, then the environment, then the session, then the settings.
    pub fn find(options: &TargetOptions, settings: &Settings, session: Option<(String, String)>) -> Self {
        let config = &settings.config;
        let named = options.model.clone().or_else(|| env_value("HARDPAN_MODEL"));
        let mut provider = options.provider.clone().or_else(|| env_value("HARDPAN_PROVIDER"));
        let (session_provider, session_model) = session.unzip();
        let model = match named {
            Some(model) => Some(model),
            None if provider.is_none() && session_model.is_some() => {
                provider = session_provider;
                session_model
            }
            None => {
                let same = provider.is_none() || provider == config.provider || config.provider.is_none();
                config.model.clone().filter(|_| same && (provider.is_none() || config.provider.is_some()))
            }
        };
        if provider.is_none() && options.model.is_none() && env_value("HARDPAN_MODEL").is_none() {
            provider = config.provider.clone();
        }
        NamedTarget { provider, model }
    }

    /// Whether it names a provider that is not known: an extension may bring it.
    pub fn is_unknown(&self, settings: &Settings) -> bool {
        let is_unknown = |id: &str| settings.catalogue.provider(id).is_err();
        match (&self.provider, &self.model) {
            (Some(provider), _) => is_unknown(provider),
            (None, Some(model)) => {
                let prefix = model.split_once('/').map(|(provider, _)| provider);
                prefix.is_some_and(is_unknown) && settings.catalogue.model(None, model).is_err()
            }
            (None, None) => false,
        }
    }
}

/// Chooses provider and model: what is named, then the defaults.
pub fn resolve_target(
    options: &TargetOptions,
    settings: &Settings,
    session: Option<(String, String)>,
) -> Result<Target, TargetError> {
    resolve_named(NamedTarget::find(options, settings, session), options, settings)
}

/// The same for what was found to be named.
pub fn resolve_named(
    named: NamedTarget,
    options: &TargetOptions,
    settings: &Settings,
) -> Result<Target, TargetError> {
    let mut target = choose_named(named, settings)?;
    limit_answer(&mut target, options, settings)?;
    Ok(target)
}

/// The same without a limit for answers.
pub fn choose_named(named: NamedTarget, settings: &Settings) -> Result<Target, TargetError> {
    let NamedTarget { mut provider, model } = named;
    if let Some(id) = &provider {
        settings.catalogue.provider(id)?;
    }
    if model.is_none() && provider.is_none() {
        provider = provider_with_key(settings); // `target_notices` says so
    }
    let model = match (model, &provider) {
        (Some(model), _) => model,
        (None, Some(provider)) if provider != hardpan_models::DEFAULT_PROVIDER => {
            default_model_of(settings, provider)?
        }
        (None, _) => hardpan_models::DEFAULT_MODEL.to_owned(),
    };
    if provider.is_none() && settings.catalogue.model(None, &model).is_err() {
        let fallback = fallback_provider(settings); // `target_notices` says so
        // Only those that sell other makers' models have ids with a maker before a slash.
        let takes_makers =
            settings.catalogue.provider(&fallback).is_ok_and(|known| known.gateway || known.open_models);
        if let Some((prefix, _)) = model.split_once('/').filter(|_| !takes_makers) {
            settings.catalogue.provider(prefix)?;
        }
        provider = Some(fallback);
    }
    Ok(Target::new(&settings.catalogue, provider.as_deref(), &model)?)
}

/// Limits answers as flags or settings say.
pub fn limit_answer(
    target: &mut Target,
    options: &TargetOptions,
    settings: &Settings,
) -> Result<(), TargetError> {
    if let Some(max_tokens) = options.max_tokens.or(settings.config.max_tokens) {
        let limit = target.model.max_tokens_limit();
        if !(1..=limit).contains(&max_tokens) {
            return Err(TargetError::MaxTokens { max_tokens, limit, model: target.model.id.clone() });
        }
        target.max_tokens = max_tokens;
    }
    Ok(())
}

/// Where several providers have a key and nothing says which one to use, the first of these; then the
/// others in the order of their names.
const PREFERRED_PROVIDERS: [&str; 5] =
    [hardpan_models::DEFAULT_PROVIDER, "openai", "gemini", "openrouter", "xai"];

/// The provider to use if nothing names one: one with a key, if there is any.
fn provider_with_key(settings: &Settings) -> Option<String> {
    providers_with_key(settings).into_iter().next()
}

/// The providers that the user has a key for, in the order of preference.
pub fn providers_with_key(settings: &Settings) -> Vec<String> {
    let has_key = |id: &str, profile| settings.key(id, profile).is_ok_and(|key| key.is_some());
    let with_key = settings.catalogue.providers().filter(|it| has_key(&it.id, &it.profile));
    let mut ids: Vec<String> = with_key.map(|it| it.id.clone()).collect();
    let preference = |id: &str| PREFERRED_PROVIDERS.iter().position(|preferred| *preferred == id);
    ids.sort_by_key(|id| preference(id).unwrap_or(PREFERRED_PROVIDERS.len()));
    ids
}

/// What decides which provider requests go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderReason {
    /// A flag, or a variable of this name.
    Named(&'static str),
    /// `provider` or `model` in `config.toml`.
    Setting(&'static str),
    /// It is the only one with a key.
    OnlyKey,
    /// Several have a key; it comes first in the order of preference.
    FirstOfSeveral,
    /// There is no key at all.
    NoKey,
}

/// Why requests of a new conversation go to the provider that they go to.
pub fn provider_reason(options: &TargetOptions, settings: &Settings) -> ProviderReason {
    let config = &settings.config;
    let named = [
        (options.model.is_some(), "--model"),
        (options.provider.is_some(), "--provider"),
        (env_value("HARDPAN_MODEL").is_some(), "HARDPAN_MODEL"),
        (env_value("HARDPAN_PROVIDER").is_some(), "HARDPAN_PROVIDER"),
    ];
    if let Some((_, name)) = named.into_iter().find(|(is_set, _)| *is_set) {
        return ProviderReason::Named(name);
    }
    match providers_with_key(settings).len() {
        _ if config.provider.is_some() => ProviderReason::Setting("provider"),
        _ if config.model.is_some() => ProviderReason::Setting("model"),
        0 => ProviderReason::NoKey,
        1 => ProviderReason::OnlyKey,
        _ => ProviderReason::FirstOfSeveral,
    }
}

/// The providers with a key among which nothing decides, in the order of preference: neither flags nor
/// variables, nor the session, nor the settings.
pub fn undecided_providers(options: &TargetOptions, settings: &Settings, has_session: bool) -> Vec<String> {
    match provider_reason(options, settings) {
        ProviderReason::FirstOfSeveral if !has_session => providers_with_key(settings),
        _ => Vec::new(),
    }
}

/// The provider of a model whose name does not tell it: the one of the settings, else the only one
/// with a key, else the default.
fn fallback_provider(settings: &Settings) -> String {
    let catalogue = &settings.catalogue;
    let of_model = |model: &String| Some(catalogue.model(None, model).ok()?.provider);
    let with_key = || <[String; 1]>::try_from(providers_with_key(settings)).ok().map(|[only]| only);
    let named = settings.config.provider.clone().or_else(|| of_model(settings.config.model.as_ref()?));
    named.or_else(with_key).unwrap_or_else(|| hardpan_models::DEFAULT_PROVIDER.to_owned())
}

/// The model of a session, if its provider still exists; otherwise sends a notice.
pub fn known_session_model(
    settings: &Settings,
    model: Option<&(Arc<str>, Arc<str>)>,
    notices: &dyn NoticeSink,
) -> Option<(String, String)> {
    let (provider, model) = model?;
    let known = settings.catalogue.model(Some(provider), model).is_ok();
    if !known {
        notices.notice(Notice::ProviderGone { provider: provider.to_string(), model: model.to_string() });
    }
    known.then(|| (provider.to_string(), model.to_string()))
}

/// What the user should know about a model and a thinking setting before they are used.
pub fn target_notices(settings: &Settings, target: &Target, thinking: ThinkingSetting) -> Vec<Notice> {
    let model = &target.model;
    let unlisted = (!model.listed).then(|| {
        let unknown = settings.catalogue.model(None, &model.id).err();
        let unknown = unknown.filter(|_| fallback_provider(settings) == model.provider);
        Notice::UnlistedModel {
            model: model.name(),
            fallback_provider: unknown.is_some().then(|| model.provider.clone()),
            similar: unknown
                .map_or_else(|| settings.catalogue.similar_models(model), |unknown| unknown.nearest),
            context: model.context,
        }
    });
    let substitution = target.thinking_request(thinking).substitution;
    let substituted =
        substitution.map(|substitution| Notice::ThinkingSubstituted { model: model.name(), substitution });
    let wants_search = settings.config.web_search.and_then(WebSearchSetting::most).is_some();
    let no_search =
        (wants_search && !target.has_web_search()).then(|| Notice::NoWebSearch { model: model.name() });
    unlisted.into_iter().chain(substituted).chain(no_search).collect()
}

/// Sends the notices about models and thinking settings, each of them once.
#[derive(Debug, Default)]
pub struct TargetNotices {
    sent: Mutex<BTreeSet<String>>,
}

impl TargetNotices {
    /// Sends what was not sent before.
    pub fn send(
        &self,
        settings: &Settings,
        target: &Target,
        thinking: ThinkingSetting,
        notices: &dyn NoticeSink,
    ) {
        for notice in target_notices(settings, target, thinking) {
            let is_news = self.sent.lock().unwrap_or_else(PoisonError::into_inner).insert(notice.to_string());
            // The sink may print, so it is called without the lock.
            if is_news {
                notices.notice(notice);
            }
        }
    }
}

/// The model that a provider's row names as its default. If it names none: its model with the
/// largest window; among equals, the one whose name sorts last.
pub fn default_model_of(settings: &Settings, provider: &str) -> Result<String, TargetError> {
    if let Some(named) = &settings.catalogue.provider(provider)?.default_model {
        return Ok(named.clone());
    }
    let of_provider = settings.catalogue.models().filter(|model| model.provider == provider);
    let usable = of_provider.filter(|model| model.tools && model.deprecated.is_none() && !model.gone);
    let best = usable.max_by(|a, b| (a.context, &a.id).cmp(&(b.context, &b.id)));
    let best = best.ok_or_else(|| TargetError::NoModel { provider: provider.to_owned() })?;
    Ok(best.id.clone())
}

//! [`check_models`]: compares the catalogue with the list that a provider itself gives.

use std::sync::Arc;

use hardpan_models::{Model, UnknownName};
use hardpan_providers::{CapabilityCache, Client, ModelListError};
use serde::Serialize;

use crate::options::TargetOptions;
use crate::provider_route::{ProviderRoute, RouteError};
use crate::settings::Settings;
use crate::target::{TargetError, resolve_target};

/// Why the catalogue cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelCheckError {
    /// There is no such provider.
    #[error(transparent)]
    UnknownProvider(#[from] UnknownName),
    /// The settings name no model that could be the default.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The settings do not lead to the provider.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The provider shows its list only to those who have a key.
    #[error("no key for {provider}: set {}, or add the key to keys.toml", key_variable.as_deref().unwrap_or("its key"))]
    NoKey {
        /// The provider's id.
        provider: String,
        /// The environment variable that would hold the key.
        key_variable: Option<String>,
    },
    /// The provider gave no list.
    #[error(transparent)]
    List(#[from] ModelListError),
}

/// What a provider's own list says about the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelCheck {
    /// The provider's id.
    pub provider: String,
    /// The address that was asked.
    pub address: String,
    /// How many models the provider lists.
    pub listed: usize,
    /// Current models of the catalogue that the provider does not list.
    pub missing: Vec<String>,
    /// Models that the provider lists and the catalogue does not know.
    pub unknown: Vec<String>,
    /// The default model, if it is one of this provider, and the models behind the aliases.
    pub names: Vec<NameCheck>,
}

/// Whether a name leads to a model that the provider lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameCheck {
    /// The alias. `None`: the default model.
    pub alias: Option<String>,
    /// The id of the model that it stands for.
    pub model: String,
    /// Whether the provider lists it.
    pub listed: bool,
}

/// The provider of the model that is used when nobody names one.
pub fn default_provider(settings: &Settings) -> Result<String, ModelCheckError> {
    Ok(resolve_target(&TargetOptions::default(), settings, None)?.provider)
}

/// Asks a provider for its list of models, at the address in force, and compares.
pub async fn check_models(settings: &Settings, provider: &str) -> Result<ModelCheck, ModelCheckError> {
    let row = settings.catalogue.provider(provider)?;
    let route = ProviderRoute::to_provider(provider, &row.profile, settings, None)?;
    if route.simulated {
        let key_variable = row.profile.key_env.first().cloned();
        return Err(ModelCheckError::NoKey { provider: provider.to_owned(), key_variable });
    }
    let address = route.endpoint.base_url.clone();
    let (retry_policy, capabilities) = (settings.config.retry.retry_policy(), CapabilityCache::default());
    let client = Client::new(route.transport, route.endpoint, retry_policy, Arc::new(capabilities));
    let listed = client.list_models(&row.profile).await?;

    let is_listed = |id: &str| listed.iter().any(|other| is_same_model(id, other));
    // A provider that is like another sells the other's models.
    let sellers = [Some(provider), row.like.as_deref()];
    let sold = |model: &&Model| sellers.contains(&Some(&model.provider));
    let known: Vec<&Model> = settings.catalogue.models().filter(sold).collect();
    let missing = known.iter().filter(|model| !model.gone && !is_listed(&model.id));
    let unknown = listed.iter().filter(|id| !known.iter().any(|model| is_same_model(&model.id, id)));
    let default = resolve_target(&TargetOptions::default(), settings, None)?.model;
    let default = Some((None, default)).filter(|(_, model)| model.provider == provider);
    let aliases = settings.catalogue.aliases(row).into_iter().map(|(alias, model)| (Some(alias), model));
    let names = default.into_iter().chain(aliases);
    Ok(ModelCheck {
        provider: provider.to_owned(),
        address,
        listed: listed.len(),
        missing: missing.map(|model| model.id.clone()).collect(),
        unknown: unknown.cloned().collect(),
        names: names
            .map(|(alias, model)| NameCheck { alias, listed: is_listed(&model.id), model: model.id })
            .collect(),
    })
}

/// Whether two ids name the same model: providers take an id with and without its date, and list
/// only one of them.
fn is_same_model(one: &str, other: &str) -> bool {
    one == other || without_date(one) == other || one == without_date(other)
}

/// The id without the date at its end: `-20251001`, `-2025-10-01`.
fn without_date(id: &str) -> &str {
    let is_date = |suffix: &str| {
        let shape: String = suffix.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        shape == "-00000000" || shape == "-0000-00-00"
    };
    let dated = [9, 11].into_iter().filter_map(|length| id.len().checked_sub(length));
    let mut dated = dated.filter_map(|at| id.split_at_checked(at));
    dated.find(|(_, suffix)| is_date(suffix)).map_or(id, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_with_a_date_is_the_same_model() {
        for dated in ["claude-haiku-4-5-20251001", "claude-haiku-4-5-2025-10-01"] {
            assert!(is_same_model("claude-haiku-4-5", dated) && is_same_model(dated, "claude-haiku-4-5"));
        }
        assert!(!is_same_model("gpt-5-2025-08-07", "gpt-5-2025-09-07"), "another snapshot is another model");
        assert!(!is_same_model("claude-haiku-4", "claude-haiku-4-5"));
        assert!(!is_same_model("é-1", "é-20251001é"));
    }
}

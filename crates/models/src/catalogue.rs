//! [`Catalogue`]: all known models and providers, and how they are looked up.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use thiserror::Error;

use crate::nearest::nearest;
use crate::rows::{CatalogueFile, ModelRow, ProviderRow};
use crate::{Model, Provider, UnknownName, glob};

#[cfg(test)]
mod tests;

const MODELS: &str = include_str!("../data/models.json");
const PROVIDERS: &str = include_str!("../data/providers.json");

/// Why a file of models and providers cannot be used.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// The file is not JSON, or does not match the schema.
    #[error("{file}: {error}")]
    Form {
        /// The file, as the caller named it.
        file: String,
        /// What was expected, with line and column.
        #[source]
        error: serde_json::Error,
    },
    /// A row lacks a required field.
    #[error("{file}: {row} has no \"{field}\"; add one")]
    Missing {
        /// The file, as the caller named it.
        file: String,
        /// Which row: `providers[0]`, `provider "mine"`.
        row: String,
        /// Name of the field to add.
        field: &'static str,
    },
    /// An override has a field that only a provider itself may have.
    #[error("{file}: an override of provider \"{provider}\" has \"{field}\"; move it to the provider itself")]
    Misplaced {
        /// The file, as the caller named it.
        file: String,
        /// Id of the provider with the override.
        provider: String,
        /// Name of the field to move.
        field: &'static str,
    },
    /// A row refers to a provider that does not exist.
    #[error("{file}: {row} names an {unknown}, or add it to \"providers\"")]
    Provider {
        /// The file, as the caller named it.
        file: String,
        /// Which row: `model "x"`, `provider "mine"`.
        row: String,
        /// The unknown name, with suggestions.
        #[source]
        unknown: UnknownName,
    },
}

/// All known models and providers: the built-in ones with the user's merged over them.
#[derive(Clone, Debug)]
pub struct Catalogue {
    as_of: String,
    provider_rows: BTreeMap<String, Vec<ProviderRow>>,
    model_rows: BTreeMap<(String, String), ModelRow>,
    providers: BTreeMap<String, Provider>,
    models: BTreeMap<(String, String), Model>,
}

static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
    let empty = Catalogue {
        as_of: String::new(),
        provider_rows: BTreeMap::new(),
        model_rows: BTreeMap::new(),
        providers: BTreeMap::new(),
        models: BTreeMap::new(),
    };
    let read = empty
        .with_user_file("providers.json", PROVIDERS)
        .and_then(|c| c.with_user_file("models.json", MODELS));
    // The files are part of the program: if they were wrong, no test of it would pass.
    read.unwrap_or_else(|error| panic!("the built-in catalogue is broken: {error}"))
});

impl Catalogue {
    /// The catalogue that comes with Hardpan. It is parsed once.
    pub fn builtin() -> &'static Catalogue {
        &BUILTIN
    }

    /// Merges the user's entries over this catalogue: `{"models": […], "providers": […]}`.
    ///
    /// An entry for a known model or provider changes only the fields it gives. The user's provider
    /// fields and overrides apply after the built-in overrides, so that the user has the last word.
    /// A new model needs `id` and `provider`; a new provider needs `id` and `base_url`, or `like`
    /// to start from another provider. [`user_file_schema`] describes the defaults of all other
    /// fields. `file` names the text in errors.
    pub fn with_user_file(&self, file: &str, json: &str) -> Result<Catalogue, CatalogueError> {
        self.with_entries(file, parse(file, json)?)
    }

    /// Merges the models of a file over this catalogue, but none of its providers, which name addresses
    /// and the variables of keys. Says whether it has any.
    pub fn with_models_of(&self, file: &str, json: &str) -> Result<(Catalogue, bool), CatalogueError> {
        let mut read = parse(file, json)?;
        let has_providers = !std::mem::take(&mut read.providers).is_empty();
        Ok((self.with_entries(file, read)?, has_providers))
    }

    fn with_entries(&self, file: &str, read: CatalogueFile) -> Result<Catalogue, CatalogueError> {
        let mut catalogue = self.clone();
        if let Some(as_of) = read.as_of {
            catalogue.as_of = as_of;
        }
        for (index, row) in read.providers.into_iter().enumerate() {
            let missing = |row, field| CatalogueError::Missing { file: file.to_owned(), row, field };
            let id = row.id.clone().ok_or_else(|| missing(format!("providers[{index}]"), "id"))?;
            if row.overrides.iter().any(|row| row.models.is_none()) {
                return Err(missing(format!("an override of provider \"{id}\""), "models"));
            }
            if let Some(field) = row.overrides.iter().find_map(ProviderRow::provider_only_field) {
                return Err(CatalogueError::Misplaced { file: file.to_owned(), provider: id, field });
            }
            catalogue.provider_rows.entry(id).or_default().push(row);
        }
        for row in read.models {
            let key = (row.provider.clone(), row.id.clone());
            catalogue
                .model_rows
                .entry(key)
                .or_insert_with(|| ModelRow::new(&row.provider, &row.id))
                .merge(&row);
        }
        catalogue.resolve_rows(file)?;
        Ok(catalogue)
    }

    /// Builds providers and models from the rows.
    fn resolve_rows(&mut self, file: &str) -> Result<(), CatalogueError> {
        let unknown = |row, unknown| CatalogueError::Provider { file: file.to_owned(), row, unknown };
        let ids = self.provider_rows.keys();
        self.providers =
            ids.map(|id| Ok((id.clone(), self.resolve_provider(file, id)?))).collect::<Result<_, _>>()?;
        let resolved = self.model_rows.iter().map(|(key, row)| {
            let provider = self
                .provider(&row.provider)
                .map_err(|error| unknown(format!("model \"{}\"", row.id), error))?;
            Ok((key.clone(), row.resolve(provider)))
        });
        self.models = resolved.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn resolve_provider(&self, file: &str, id: &str) -> Result<Provider, CatalogueError> {
        let row = || format!("provider \"{id}\"");
        let own = self.provider_rows.get(id).map(Vec::as_slice).unwrap_or_default();
        let like = own.iter().filter_map(|row| row.like.clone()).next_back();
        let mut layers = Vec::new();
        if let Some(like) = &like {
            // One step only: a row that is itself like another lends its own rows, so that no
            // circle can form.
            let rows = self.provider_rows.get(like).ok_or_else(|| CatalogueError::Provider {
                file: file.to_owned(),
                row: row(),
                unknown: self.unknown_provider(like),
            })?;
            layers.extend(rows.iter().flat_map(ProviderRow::layers));
        }
        layers.extend(own.iter().flat_map(ProviderRow::layers));
        let mut provider = Provider {
            id: id.to_owned(),
            name: own.iter().filter_map(|row| row.name.clone()).next_back().unwrap_or_else(|| id.to_owned()),
            gateway: layers.iter().filter_map(|row| row.gateway).next_back().unwrap_or(false),
            open_models: layers.iter().filter_map(|row| row.open_models).next_back().unwrap_or(false),
            model_ids: layers.iter().filter_map(|row| row.model_ids.clone()).next_back(),
            unlisted: layers.iter().filter_map(|row| row.unlisted).next_back().unwrap_or_default(),
            aliases: layers.iter().flat_map(|row| row.aliases.clone()).collect(),
            default_model: layers.iter().filter_map(|row| row.default_model.clone()).next_back(),
            // A provider of one's own is at its own address, whatever the one it resembles is told.
            base_url_env: own
                .iter()
                .filter_map(|row| row.base_url_env.clone())
                .next_back()
                .unwrap_or_default(),
            like,
            profile: Default::default(),
            layers,
        };
        provider
            .layers
            .iter()
            .filter(|row| row.models.is_none())
            .for_each(|row| row.apply_to(&mut provider.profile));
        if provider.profile.base_url.is_empty() {
            return Err(CatalogueError::Missing { file: file.to_owned(), row: row(), field: "base_url" });
        }
        Ok(provider)
    }

    /// The day the built-in figures were taken: `2026-08-08`.
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// Looks up a provider by its id.
    pub fn provider(&self, id: &str) -> Result<&Provider, UnknownName> {
        self.providers.get(id).ok_or_else(|| self.unknown_provider(id))
    }

    /// Looks up a model by its id or alias, with or without its provider; `provider/id` works, too.
    ///
    /// Without a provider, the maker of the model comes before those who resell it. An id that no
    /// file lists gives a model with its provider's assumptions, which is not
    /// [`listed`](Model::listed); it is an error only if no provider can be told from it.
    pub fn model(&self, provider: Option<&str>, id: &str) -> Result<Model, UnknownName> {
        if let Some(provider) = provider {
            let row = self.provider(provider)?;
            let short = id.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/'));
            let found = self.find_named(row, id).or_else(|| self.find_named(row, short?));
            return Ok(found.unwrap_or_else(|| ModelRow::unlisted(row, short.unwrap_or(id))));
        }
        let named = id.split_once('/').and_then(|(provider, id)| Some((self.providers.get(provider)?, id)));
        named
            .and_then(|(provider, id)| self.find_named(provider, id))
            .or_else(|| self.providers_by_preference().find_map(|provider| self.find_named(provider, id)))
            .or_else(|| named.map(|(provider, id)| ModelRow::unlisted(provider, id)))
            .or_else(|| {
                let maker = self.providers_by_preference().find(|provider| provider.has_model_id(id))?;
                Some(ModelRow::unlisted(maker, id))
            })
            .ok_or_else(|| self.unknown_model(id))
    }

    /// Listed models that resemble one that is not listed, as `provider/id`; the likeliest first.
    pub fn similar_models(&self, model: &Model) -> Vec<String> {
        let elsewhere: Vec<String> =
            self.models().filter(|other| other.id == model.id).map(Model::name).take(3).collect();
        if !elsewhere.is_empty() {
            return elsewhere;
        }
        let like = self.providers.get(&model.provider).and_then(|provider| provider.like.as_deref());
        let sold = |other: &&Model| other.provider == model.provider || like == Some(&other.provider);
        nearest(&model.id, self.current_models().filter(sold).map(|model| model.id.as_str()))
    }

    /// All providers, sorted by id.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values()
    }

    /// All listed models, sorted by provider and id.
    pub fn models(&self) -> impl Iterator<Item = &Model> {
        self.models.values()
    }

    /// The short names of a provider's models, each with the model that it stands for today.
    pub fn aliases(&self, provider: &Provider) -> Vec<(String, Model)> {
        let names = provider.aliases.keys();
        names.filter_map(|name| Some((name.clone(), self.find_named(provider, name)?))).collect()
    }

    /// The model if the provider lists it under this id or alias, or if the provider that it is
    /// based on does.
    fn find_named(&self, provider: &Provider, id: &str) -> Option<Model> {
        let at = |seller: &str| self.models.get(&(seller.to_owned(), id.to_owned()));
        let listed = at(&provider.id).or_else(|| at(provider.like.as_deref()?));
        let found = listed.or_else(|| self.newest_model(provider, provider.aliases.get(id)?))?;
        Some(Model { provider: provider.id.clone(), ..found.clone() })
    }

    /// The newest current model of a provider whose id matches a pattern. Of the same version, the
    /// shortest id is the plain one.
    fn newest_model(&self, provider: &Provider, pattern: &str) -> Option<&Model> {
        let seller = provider.like.as_ref().unwrap_or(&provider.id);
        self.current_models()
            .filter(|model| model.provider == *seller && glob::matches(pattern, &model.id))
            .max_by_key(|model| (version_numbers(&model.id), Reverse(model.id.len())))
    }

    /// The models that are sold and not announced to end.
    fn current_models(&self) -> impl Iterator<Item = &Model> {
        self.models().filter(|model| model.deprecated.is_none() && !model.gone)
    }

    /// The providers in the order in which a bare model id is looked up: makers first, then
    /// gateways.
    fn providers_by_preference(&self) -> impl Iterator<Item = &Provider> {
        let first = self.providers().filter(|provider| !provider.gateway && provider.like.is_none());
        first.chain(self.providers().filter(|provider| provider.gateway && provider.like.is_none()))
    }

    fn unknown_provider(&self, id: &str) -> UnknownName {
        let known = self.provider_rows.keys().map(String::as_str);
        UnknownName { what: "provider", name: id.to_owned(), nearest: nearest(id, known) }
    }

    fn unknown_model(&self, id: &str) -> UnknownName {
        let aliases = self.providers().flat_map(|provider| provider.aliases.keys().map(String::as_str));
        let ids = self.current_models().map(|model| model.id.as_str());
        UnknownName { what: "model", name: id.to_owned(), nearest: nearest(id, aliases.chain(ids)) }
    }
}

fn parse(file: &str, json: &str) -> Result<CatalogueFile, CatalogueError> {
    serde_json::from_str(json).map_err(|error| CatalogueError::Form { file: file.to_owned(), error })
}

/// The numbers of a model id in order: `gpt-6.1-sol` has 6 and 1. Dates are no versions.
fn version_numbers(id: &str) -> Vec<u32> {
    const LONGEST: usize = 2; // digits
    let digits = id.split(|c: char| !c.is_ascii_digit());
    digits.filter(|run| run.len() <= LONGEST).filter_map(|run| run.parse().ok()).collect()
}

/// The JSON schema of the file that [`Catalogue::with_user_file`] takes.
pub fn user_file_schema() -> serde_json::Value {
    schemars::schema_for!(CatalogueFile).to_value()
}

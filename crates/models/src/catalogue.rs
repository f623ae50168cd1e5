//! [`Catalogue`]: all known models and providers, and how they are looked up.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use thiserror::Error;

use crate::nearest::nearest;
use crate::rows::{CatalogueFile, ModelRow, ProviderRow};
use crate::{Model, Provider, UnknownName};

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
        let read: CatalogueFile = serde_json::from_str(json)
            .map_err(|error| CatalogueError::Form { file: file.to_owned(), error })?;
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

    /// Looks up a model by its id, with or without its provider; `provider/id` works, too.
    ///
    /// Without a provider, the maker of the model comes before those who resell it. A provider with
    /// open models answers any id with a model of default figures.
    pub fn model(&self, provider: Option<&str>, id: &str) -> Result<Model, UnknownName> {
        if let Some(provider) = provider {
            let row = self.provider(provider)?;
            let short = id.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/'));
            let found = self.find_listed(row, id).or_else(|| self.find_listed(row, short?));
            return found
                .or_else(|| {
                    row.open_models.then(|| ModelRow::new(provider, short.unwrap_or(id)).resolve(row))
                })
                .ok_or_else(|| self.unknown_model(Some(provider), id));
        }
        let named = id.split_once('/').and_then(|(provider, id)| Some((self.providers.get(provider)?, id)));
        let by_name = named.and_then(|(provider, id)| self.find_listed(provider, id));
        by_name
            .or_else(|| self.providers_by_preference().find_map(|provider| self.find_listed(provider, id)))
            .or_else(|| {
                named.filter(|(p, _)| p.open_models).map(|(p, id)| ModelRow::new(&p.id, id).resolve(p))
            })
            .ok_or_else(|| match named {
                Some((provider, id)) => self.unknown_model(Some(&provider.id), id),
                None => self.unknown_model(None, id),
            })
    }

    /// All providers, sorted by id.
    pub fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.values()
    }

    /// All listed models, sorted by provider and id.
    pub fn models(&self) -> impl Iterator<Item = &Model> {
        self.models.values()
    }

    /// The model if the provider lists it, or if the provider that it is based on does.
    fn find_listed(&self, provider: &Provider, id: &str) -> Option<Model> {
        let at = |provider: &str| self.models.get(&(provider.to_owned(), id.to_owned())).cloned();
        let borrowed = || Some(Model { provider: provider.id.clone(), ..at(provider.like.as_deref()?)? });
        at(&provider.id).or_else(borrowed)
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

    fn unknown_model(&self, provider: Option<&str>, id: &str) -> UnknownName {
        let name = provider.map_or_else(|| id.to_owned(), |provider| format!("{provider}/{id}"));
        let elsewhere: Vec<String> = self
            .models()
            .filter(|model| provider.is_some() && model.id == id)
            .map(Model::name)
            .take(3)
            .collect();
        if !elsewhere.is_empty() {
            return UnknownName { what: "model", name, nearest: elsewhere };
        }
        let like = provider.and_then(|provider| self.providers.get(provider)?.like.as_deref());
        let sold = |model: &&Model| {
            provider.is_none() || provider == Some(&model.provider) || like == Some(&model.provider)
        };
        // A model that is going away is nobody's next choice.
        let current = self.models().filter(|model| model.deprecated.is_none());
        let ids = current.filter(sold).map(|model| model.id.as_str());
        UnknownName { what: "model", name, nearest: nearest(id, ids) }
    }
}

/// The JSON schema of the file that [`Catalogue::with_user_file`] takes.
pub fn user_file_schema() -> serde_json::Value {
    schemars::schema_for!(CatalogueFile).to_value()
}

//! The format of the catalogue's data files, built-in and user-provided.
//!
//! In a row every field but the id may be absent, so that a user's row changes only what it names.

mod model_row; // ModelRow: what a file says of a model
mod provider_row; // ProviderRow: what a file says of a provider

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

pub(crate) use model_row::ModelRow;
pub(crate) use provider_row::{ProviderRow, UnlistedRow};

/// Models and providers, merged field by field over those that are known already.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CatalogueFile {
    /// The address of this schema, for editors.
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    /// What the file holds and where it comes from.
    #[serde(rename = "about")]
    _about: Option<String>,
    /// The day the figures were taken: `2026-08-08`.
    pub as_of: Option<String>,
    /// Models: new ones, or fields of known ones.
    pub models: Vec<ModelRow>,
    /// Providers: new ones, or fields of known ones.
    pub providers: Vec<ProviderRow>,
}

/// Reads a price or a share. Negative values are rejected, since they would pay the user.
pub(crate) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let amount = Option::<f64>::deserialize(deserializer)?;
    match amount {
        Some(amount) if amount < 0.0 => {
            Err(serde::de::Error::custom(format!("invalid value: {amount}, expected 0 or more")))
        }
        amount => Ok(amount),
    }
}

pub(super) fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match amount(deserializer)? {
        Some(0.0) => Err(serde::de::Error::custom("invalid value: 0, expected more than 0")),
        factor => Ok(factor),
    }
}

/// Replaces a value by the newer row's, if that has one.
pub(super) fn update_if_given<T: Clone>(known: &mut Option<T>, newer: &Option<T>) {
    if newer.is_some() {
        known.clone_from(newer);
    }
}

pub(super) fn set_if_given<T: Clone>(value: &mut T, given: &Option<T>) {
    if let Some(given) = given {
        value.clone_from(given);
    }
}

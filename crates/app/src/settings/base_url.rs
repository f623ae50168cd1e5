//! The addresses of providers: from the settings, else from the environment, else the usual ones.

use hardpan_models::ProviderProfile;

use super::Settings;

/// Where a provider's requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    /// The address that the protocol's path is appended to.
    pub url: String,
    /// Who says so.
    pub source: BaseUrlSource,
}

/// Who chose a provider's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BaseUrlSource {
    /// The catalogue: it is the provider's own.
    Usual,
    /// `base_url` in the settings.
    Settings,
    /// The environment variable of this name.
    Environment(String),
}

impl BaseUrl {
    /// Whether it is the provider's own address.
    pub fn is_usual(&self) -> bool {
        self.source == BaseUrlSource::Usual
    }
}

impl Settings {
    /// The provider's address. Hardpan's own settings come before variables that other programs
    /// read, too.
    pub fn base_url(&self, provider: &str, profile: &ProviderProfile) -> BaseUrl {
        let configured = self.config.providers.get(provider).and_then(|config| config.base_url.clone());
        let variables = self.catalogue.provider(provider).map_or(&[][..], |provider| &provider.base_url_env);
        let set = |name: &String| {
            let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
            value.map(|url| (url, BaseUrlSource::Environment(name.clone())))
        };
        let given = configured
            .map(|url| (url, BaseUrlSource::Settings))
            .or_else(|| variables.iter().find_map(set))
            .map(|(url, source)| BaseUrl { url: profile.complete_base_url(&url), source });
        let usual = || BaseUrl { url: profile.base_url.clone(), source: BaseUrlSource::Usual };
        // One who names the provider's own address has changed nothing.
        given.filter(|given| given.url != profile.base_url).unwrap_or_else(usual)
    }
}

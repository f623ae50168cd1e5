//! [`ProviderConnection`]: makes clients for the agent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_agent::{ClientFactory, ClientFactoryError};
use hardpan_context::{AssembledPrompt, RenderCache, Target};
use hardpan_prompt::{TokenFactor, TokenUsage};
use hardpan_providers::{CapabilityCache, Client, mask_url};
use jiff::Timestamp;

use crate::clock::now;
use crate::extensions::ExtensionProviders;
use crate::learned_state::LearnedState;
use crate::notice::{Notice, NoticeSink};
use crate::options::ProviderAccess;
use crate::provider_route::{ProviderRoute, RouteError, learn_token_factor};
use crate::settings::Settings;

/// Makes clients for the agent, and collects what their answers teach.
pub(crate) struct ProviderConnection {
    settings: Arc<Settings>,
    access: ProviderAccess,
    /// Those that extensions brought.
    brought: Arc<ExtensionProviders>,
    learned: Arc<CapabilityCache>,
    /// The model of the last bill, and its corrected token factor.
    factor: Mutex<Option<(String, TokenFactor)>>,
    simulated: AtomicBool,
    /// See [`ProviderRoute::reports_true_usage`].
    reports_true_usage: AtomicBool,
    /// The last notices, so that the same ones are sent once only.
    last_notices: Mutex<Vec<String>>,
    notices: Arc<dyn NoticeSink>,
}

impl ProviderConnection {
    pub(crate) fn new(
        settings: Arc<Settings>,
        access: ProviderAccess,
        brought: Arc<ExtensionProviders>,
        learned: CapabilityCache,
        notices: Arc<dyn NoticeSink>,
    ) -> Self {
        ProviderConnection {
            settings,
            access,
            brought,
            learned: Arc::new(learned),
            factor: Mutex::default(),
            simulated: AtomicBool::new(false),
            reports_true_usage: AtomicBool::new(false),
            last_notices: Mutex::default(),
            notices,
        }
    }

    /// Whether the simulator answers requests to a model.
    pub(crate) fn is_offline(&self, target: &Target) -> bool {
        match self.access {
            ProviderAccess::Simulator => true,
            ProviderAccess::ByKey => match self.brought.provider(&target.provider) {
                Some(provider) => provider.is_simulated(target, &self.settings),
                None => ProviderRoute::is_simulated(target, &self.settings),
            },
        }
    }

    fn route(&self, target: &Target, session: &str) -> Result<ProviderRoute, RouteError> {
        match self.brought.provider(&target.provider) {
            Some(provider) => provider.route(target, &self.settings, Some(session)),
            // Its address and its variables may be an extension's, which nobody answers for any more.
            None if !self.is_own(target) => {
                Err(RouteError::ProviderGone { provider: target.provider.clone() })
            }
            None => ProviderRoute::choose(target, &self.settings, Some(session)),
        }
    }

    /// Whether a target goes where the settings say, with the keys that they name.
    fn is_own(&self, target: &Target) -> bool {
        self.settings.catalogue.provider(&target.provider).is_ok_and(|provider| {
            let known = provider.profile_for_model(&target.model);
            (&known.base_url, &known.key_env) == (&target.profile.base_url, &target.profile.key_env)
        })
    }

    /// Stores what answers taught, for the next process, and how many requests a session has had.
    pub(crate) fn save_learned(&self, session: Option<(&str, u64)>) {
        let factor = self.factor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut state = LearnedState::load(&self.settings.user_folders);
        if let Some((session, requests)) = session {
            state.note_requests(session, u32::try_from(requests).unwrap_or(u32::MAX));
        }
        state.save(&self.learned, factor);
    }
}

impl ProviderConnection {
    /// Tells where requests go, and what they leave out from the start.
    fn send_notices(&self, route_notice: Option<Notice>, client: &Client, target: &Target) {
        if self.access == ProviderAccess::Simulator {
            return; // as asked for
        }
        let notices: Vec<Notice> =
            route_notice.into_iter().chain(self.refusal_notice(client, target)).collect();
        let words = notices.iter().map(ToString::to_string).collect();
        let before = {
            let mut last = self.last_notices.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *last, words)
        };
        // The sink may print, so it is called without the lock.
        let news = notices.into_iter().filter(|notice| !before.contains(&notice.to_string()));
        news.for_each(|notice| self.notices.notice(notice));
    }

    /// What requests to a model leave out, because the server has refused it before.
    pub(crate) fn refusal_notice(&self, client: &Client, target: &Target) -> Option<Notice> {
        let now = now().as_millisecond();
        let refusals = client.known_refusals(&target.provider, &target.profile, &target.model.id, now);
        let next_try = Timestamp::from_millisecond(refusals.next_try_ms()?).ok()?;
        let address = mask_url(&self.settings.base_url(&target.provider, &target.profile).url);
        let features = refusals.features().collect();
        Some(Notice::FeaturesRefused { model: target.model.name(), address, features, next_try })
    }
}

impl ClientFactory for ProviderConnection {
    fn client(&self, target: &Target, session: &str) -> Result<Client, ClientFactoryError> {
        let route = match self.access {
            ProviderAccess::ByKey => self.route(target, session).map_err(ClientFactoryError::new)?,
            ProviderAccess::Simulator => ProviderRoute::simulated(),
        };
        self.simulated.store(route.simulated, Ordering::Relaxed);
        self.reports_true_usage.store(route.reports_true_usage, Ordering::Relaxed);
        let retry_policy = self.settings.config.retry.retry_policy();
        let route_notice = route.notice(target);
        let client = Client::new(route.transport, route.endpoint, retry_policy, self.learned.clone());
        self.send_notices(route_notice, &client, target);
        Ok(client)
    }

    fn is_simulated(&self) -> bool {
        self.simulated.load(Ordering::Relaxed)
    }

    fn record_usage(
        &self,
        target: &Target,
        assembled: &AssembledPrompt,
        render_cache: &RenderCache,
        usage: &TokenUsage,
    ) {
        if self.reports_true_usage.load(Ordering::Relaxed) {
            let factor = learn_token_factor(target, assembled, render_cache, usage);
            let factor = factor.map(|factor| (target.model.name(), factor));
            *self.factor.lock().unwrap_or_else(PoisonError::into_inner) = factor;
        }
    }
}

/// A connection whose requests are routed as those of another session, whose cache they read.
pub(crate) struct RoutedConnection {
    connection: Arc<ProviderConnection>,
    session: Arc<str>,
}

impl RoutedConnection {
    pub(crate) fn new(connection: Arc<ProviderConnection>, session: Arc<str>) -> Self {
        RoutedConnection { connection, session }
    }
}

impl ClientFactory for RoutedConnection {
    fn client(&self, target: &Target, _session: &str) -> Result<Client, ClientFactoryError> {
        self.connection.client(target, &self.session)
    }

    fn record_usage(
        &self,
        target: &Target,
        assembled: &AssembledPrompt,
        render_cache: &RenderCache,
        usage: &TokenUsage,
    ) {
        self.connection.record_usage(target, assembled, render_cache, usage);
    }
}

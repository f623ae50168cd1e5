//! [`SignedTransport`]: sends requests to a provider of an extension, once the person has allowed that, with
//! the key of a login if there is one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hardpan_context::Target;
use hardpan_providers::{HttpRequest, HttpResponse, HttpTransport, Transport, TransportError, codec};

use super::ExtensionProvider;

pub struct SignedTransport {
    provider: Arc<ExtensionProvider>,
    target: Target,
    /// Whether requests have a key without a login.
    has_key: bool,
    http: HttpTransport,
}

impl SignedTransport {
    pub fn new(provider: Arc<ExtensionProvider>, target: Target, has_key: bool, http: HttpTransport) -> Self {
        SignedTransport { provider, target, has_key, http }
    }

    async fn send_signed(&self, mut request: HttpRequest) -> Result<HttpResponse, TransportError> {
        self.sign(&mut request).await.map_err(|reason| TransportError::Extension { reason })?;
        self.http.send(request).await
    }

    async fn sign(&self, request: &mut HttpRequest) -> Result<(), String> {
        let host = self.provider.host()?;
        let Target { provider, profile, .. } = &self.target;
        self.provider.allow(&host, Some((provider, profile))).await?;
        let Some(key) = self.provider.login_key(&host).await? else {
            return match self.provider.login_name() {
                Some(login) if !self.has_key => {
                    Err(format!("nobody is logged in at {login}: type /login {}", self.provider.id()))
                }
                _ => Ok(()),
            };
        };
        let bearer = self.provider.has_auth_header().then(|| ("authorization", format!("Bearer {key}")));
        for (name, value) in codec(profile.protocol).headers(Some(&key)).into_iter().chain(bearer) {
            match request.headers.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
                Some((_, known)) => *known = value,
                None => request.headers.push((name.to_owned(), value)),
            }
        }
        Ok(())
    }
}

impl Transport for SignedTransport {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        Box::pin(self.send_signed(request))
    }
}

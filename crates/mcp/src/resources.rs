//! [`ServerResource`]: something to read that a server has.

#![expect(deprecated, reason = "servers of today know subscriptions to single resources")]

use hardpan_prompt::Image;
use rmcp::model::{
    ClientRequest, ReadResourceRequest, ReadResourceRequestParams, ResourceTemplate, ServerResult,
    SubscribeRequestParams, UnsubscribeRequestParams,
};

use crate::connection::Connection;
use crate::error::ServerError;
use crate::failures::other_answer;
use crate::page_cursor::PageCursor;
use crate::plain_text::plain_text;
use crate::results::{AnswerParts, ResourceLabel};

/// The most resources of one server that are listed; others can still be read by their address.
const MAX_RESOURCES: usize = 1000;

/// The longest description, in bytes.
const MAX_DESCRIPTION: usize = 300;

/// Something to read that a server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerResource {
    /// Its address, or the template of addresses.
    pub uri: String,
    /// Its name, and what it is, in a line.
    pub description: String,
    /// Whether the address has places to fill in.
    pub is_template: bool,
}

/// What a server has to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerResources {
    /// Single resources, then templates, as the server lists them.
    pub listed: Vec<ServerResource>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// What a resource holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContent {
    /// Its text, with a note of what is left out; may be empty.
    pub text: String,
    /// Its images.
    pub images: Vec<Image>,
}

impl Connection {
    /// Whether the server has resources.
    pub fn offers_resources(&self) -> bool {
        self.offers(|capabilities| capabilities.resources.is_some())
    }

    /// Whether the server tells of changes of a resource.
    pub fn offers_subscriptions(&self) -> bool {
        self.offers(|capabilities| {
            capabilities.resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true))
        })
    }

    /// What the server lists.
    pub async fn list_resources(&self) -> Result<ServerResources, ServerError> {
        let mut found = ServerResources::default();
        if !self.offers_resources() {
            return Ok(found);
        }
        let mut cursor = PageCursor::default();
        loop {
            let page = self.service.peer().list_resources(Some(cursor.params())).await;
            let page = page.map_err(|error| self.call_error(error))?;
            let is_empty = page.resources.is_empty();
            found.listed.extend(page.resources.into_iter().map(|resource| ServerResource {
                description: describe(&resource.name, resource.title, resource.description),
                uri: resource.uri,
                is_template: false,
            }));
            let is_over = !cursor.advance(&self.name, page.next_cursor) || is_empty;
            if is_over || found.listed.len() > MAX_RESOURCES {
                break;
            }
        }
        let templates = self.list_templates().await;
        found.is_cut = found.listed.len() > MAX_RESOURCES || templates.len() > MAX_RESOURCES;
        found.listed.truncate(MAX_RESOURCES);
        found.listed.extend(templates.into_iter().take(MAX_RESOURCES).map(|template| ServerResource {
            description: describe(&template.name, template.title, template.description),
            uri: template.uri_template,
            is_template: true,
        }));
        Ok(found)
    }

    /// The templates of the server, a few more than are kept. Many servers know none.
    async fn list_templates(&self) -> Vec<ResourceTemplate> {
        let (mut templates, mut cursor) = (Vec::new(), PageCursor::default());
        while let Ok(page) = self.service.peer().list_resource_templates(Some(cursor.params())).await {
            let is_empty = page.resource_templates.is_empty();
            templates.extend(page.resource_templates);
            let is_over = !cursor.advance(&self.name, page.next_cursor) || is_empty;
            if is_over || templates.len() > MAX_RESOURCES {
                break;
            }
        }
        templates
    }

    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<ResourceContent, ServerError> {
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let ServerResult::ReadResourceResult(result) = self.request(request, &|_| {}).await? else {
            return Err(other_answer());
        };
        let mut parts = AnswerParts::default();
        let label = if result.contents.len() > 1 { ResourceLabel::Address } else { ResourceLabel::None };
        result.contents.into_iter().for_each(|contents| parts.add_resource(contents, label));
        let (text, images) = parts.into_text_and_images();
        match text.is_empty() && images.is_empty() {
            true => Err(ServerError::Answer("the resource is empty".into())),
            false => Ok(ResourceContent { text, images }),
        }
    }

    /// Asks the server to tell of changes of a resource.
    pub async fn subscribe(&self, uri: &str) -> Result<(), ServerError> {
        let subscribed = self.service.peer().subscribe(SubscribeRequestParams::new(uri)).await;
        subscribed.map_err(|error| self.call_error(error))
    }

    /// Asks the server to tell of changes no longer.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), ServerError> {
        let done = self.service.peer().unsubscribe(UnsubscribeRequestParams::new(uri)).await;
        done.map_err(|error| self.call_error(error))
    }
}

fn describe(name: &str, title: Option<String>, description: Option<String>) -> String {
    let name = title.unwrap_or_else(|| name.to_owned());
    let text = match description {
        Some(description) => format!("{name}: {description}"),
        None => name,
    };
    plain_text(&text, MAX_DESCRIPTION).split_whitespace().collect::<Vec<_>>().join(" ")
}

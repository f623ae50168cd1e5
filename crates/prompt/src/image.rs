//! Images: media type, size, limits and token cost.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Hash;

/// The image formats that providers accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MediaType {
    /// `image/png`.
    #[serde(rename = "image/png")]
    Png,
    /// `image/jpeg`.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// `image/gif`.
    #[serde(rename = "image/gif")]
    Gif,
    /// `image/webp`.
    #[serde(rename = "image/webp")]
    Webp,
}

impl MediaType {
    /// The media type as requests spell it: `image/png`.
    pub fn name(self) -> &'static str {
        match self {
            MediaType::Png => "image/png",
            MediaType::Jpeg => "image/jpeg",
            MediaType::Gif => "image/gif",
            MediaType::Webp => "image/webp",
        }
    }
}

/// Why an image cannot be sent.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ImageError {
    /// The encoded data is over the provider's limit.
    #[error(
        "the image is {bytes} bytes in base64; at most {limit} are accepted: scale it down or save it as JPEG"
    )]
    TooLarge {
        /// Length of the base64 text in bytes.
        bytes: usize,
        /// The provider's limit, `MAX_IMAGE_BYTES`.
        limit: usize,
    },
    /// The data is not base64.
    #[error(
        "the image's data is not base64: it holds other characters, or its length is not a multiple of 4"
    )]
    NotBase64,
    /// Its sides are over the provider's limit.
    #[error("the image is {width}×{height} pixels; at most 8000×8000 are accepted: scale it down")]
    TooWide {
        /// Width in pixels, at most `MAX_IMAGE_SIDE`.
        width: u32,
        /// Height in pixels, at most `MAX_IMAGE_SIDE`.
        height: u32,
    },
}

/// An image, base64-encoded as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The format of the encoded bytes.
    pub media_type: MediaType,
    /// The base64 text, without a `data:` prefix.
    pub data: Arc<str>,
    /// Width in pixels, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
}

/// The largest image that providers accept, in bytes of base64 (10 MB).
pub const MAX_IMAGE_BYTES: usize = 10 * 1024 * 1024;
/// The longest side that providers accept, in pixels.
pub const MAX_IMAGE_SIDE: u32 = 8000;

impl Image {
    /// Tokens: ⌈w/28⌉·⌈h/28⌉, for an image scaled so that its long side is at most 1568 pixels
    /// (Anthropic's documented rule); 1600 where the size is not known.
    pub fn tokens(&self) -> usize {
        let (Some(width), Some(height)) = (self.width, self.height) else { return 1600 };
        let scale = (1568.0 / f64::from(width.max(height).max(1))).min(1.0);
        let side = |pixels: u32| ((f64::from(pixels) * scale).round() as usize).max(1).div_ceil(28);
        side(width) * side(height)
    }

    /// Rejects data that is not base64.
    pub fn check_data(&self) -> Result<(), ImageError> {
        let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let digits = self.data.trim_end_matches('=');
        let padded = self.data.len().is_multiple_of(4) && self.data.len() - digits.len() <= 2;
        if padded && digits.bytes().all(alphabet) { Ok(()) } else { Err(ImageError::NotBase64) }
    }

    /// Rejects an image that every provider would reject: too many bytes, or too many pixels.
    pub fn check(&self) -> Result<(), ImageError> {
        if self.data.len() > MAX_IMAGE_BYTES {
            return Err(ImageError::TooLarge { bytes: self.data.len(), limit: MAX_IMAGE_BYTES });
        }
        match (self.width, self.height) {
            (Some(width), Some(height)) if width.max(height) > MAX_IMAGE_SIDE => {
                Err(ImageError::TooWide { width, height })
            }
            _ => Ok(()),
        }
    }

    /// Hash of media type and data; the dimensions follow from these.
    pub fn hash(&self) -> Hash {
        Hash::chain([Hash::of(self.media_type.name().as_bytes()), Hash::of(self.data.as_bytes())])
    }
}

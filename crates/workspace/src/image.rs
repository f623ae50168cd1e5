//! [`read_image`]: reads image files, with their type by content and their size in pixels.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hardpan_files::{RegularFile, UnreadableFile, UnreadableReason};
use hardpan_prompt::{Image, ImageError, MediaType};
use thiserror::Error;

/// Largest image in bytes of base64; [`Image::check`] has the same limit.
const BASE64_LIMIT: usize = 10 * 1024 * 1024;

/// Why an image file cannot be sent.
#[derive(Debug, Error)]
pub enum ImageFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// The content is none of the image types that providers accept.
    #[error("{} is no PNG, JPEG, GIF or WebP image, whatever its name says: convert it to one of these", path.display())]
    Unsupported {
        /// Path as the caller gave it.
        path: PathBuf,
    },
    /// It begins like an image, but its size in pixels cannot be determined.
    #[error("{} begins like {} but its size cannot be found: it is damaged or cut off; save it again", path.display(), media_type.name())]
    Damaged {
        /// Path as the caller gave it.
        path: PathBuf,
        /// The type by its first bytes.
        media_type: MediaType,
    },
    /// Every provider would reject it: it is too large.
    #[error("{} cannot be sent: {error}", path.display())]
    Refused {
        /// Path as the caller gave it.
        path: PathBuf,
        /// The limit it exceeds, with a remedy.
        #[source]
        error: ImageError,
    },
}

/// Reads an image. The type comes from the first bytes, not from the name. An image that every
/// provider would reject is an error; if its file size alone is too large, it is not even read.
pub fn read_image(path: &Path) -> Result<Image, ImageFileError> {
    let file = RegularFile::open(path).map_err(|reason| reason.for_path(path))?;
    read_open_image(&file, path)
}

/// Reads an open image as [`read_image`] does. `path` stands for it in errors.
pub fn read_open_image(file: &RegularFile, path: &Path) -> Result<Image, ImageFileError> {
    let unreadable = |reason: UnreadableReason| reason.for_path(path);
    let refused = |error| ImageFileError::Refused { path: path.to_owned(), error };
    let mut content = &file.file;
    content.seek(SeekFrom::Start(0)).map_err(|e| unreadable(e.into()))?;

    let mut bytes = Vec::new();
    content.take(12).read_to_end(&mut bytes).map_err(|e| unreadable(e.into()))?;
    let media_type =
        detect_media_type(&bytes).ok_or_else(|| ImageFileError::Unsupported { path: path.to_owned() })?;

    let size = usize::try_from(file.metadata.len()).unwrap_or(usize::MAX);
    let encoded = size.div_ceil(3).saturating_mul(4);
    if encoded > BASE64_LIMIT {
        return Err(refused(ImageError::TooLarge { bytes: encoded, limit: BASE64_LIMIT }));
    }
    // No more than the limit, even if the file grows meanwhile; `check` has the last word.
    content.take(BASE64_LIMIT as u64).read_to_end(&mut bytes).map_err(|e| unreadable(e.into()))?;

    let damaged = || ImageFileError::Damaged { path: path.to_owned(), media_type };
    let size = imagesize::blob_size(&bytes).map_err(|_| damaged())?;
    let pixels = |side: usize| u32::try_from(side).ok().filter(|&side| side > 0).ok_or_else(damaged);
    let (width, height) = (Some(pixels(size.width)?), Some(pixels(size.height)?));
    let image = Image { media_type, data: STANDARD.encode(&bytes).into(), width, height };
    image.check().map_err(refused)?;
    Ok(image)
}

/// The image type by the magic bytes.
fn detect_media_type(start: &[u8]) -> Option<MediaType> {
    match start {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(MediaType::Png),
        [0xFF, 0xD8, 0xFF, ..] => Some(MediaType::Jpeg),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(MediaType::Gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(MediaType::Webp),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use tempfile::tempdir;

    use super::*;

    /// The start of a PNG: all that tells its size.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend(b"\x08\x02\0\0\0\0\0\0\0");
        bytes
    }

    fn gif(width: u16, height: u16) -> Vec<u8> {
        [b"GIF89a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), b"\0\0\0\x3b"].concat()
    }

    fn jpeg(width: u16, height: u16) -> Vec<u8> {
        let frame = [
            b"\xff\xc0\0\x0b\x08".as_slice(),
            &height.to_be_bytes(),
            &width.to_be_bytes(),
            b"\x01\x01\x11\0",
        ];
        [b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0".to_vec(), frame.concat()].concat()
    }

    fn webp(width: u16, height: u16) -> Vec<u8> {
        let frame =
            [b"\x30\x01\0\x9d\x01\x2a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), &[0; 8]];
        [b"RIFF\x1e\0\0\0WEBPVP8 \x12\0\0\0".to_vec(), frame.concat()].concat()
    }

    fn read(bytes: &[u8]) -> Result<Image, ImageFileError> {
        let folder = tempdir().unwrap();
        // The name lies on purpose.
        let path = folder.path().join("picture.bmp");
        fs::write(&path, bytes).unwrap();
        read_image(&path)
    }

    #[test]
    fn each_type_is_known_by_its_content() {
        let all = [
            (png(40, 30), MediaType::Png),
            (jpeg(40, 30), MediaType::Jpeg),
            (gif(40, 30), MediaType::Gif),
            (webp(40, 30), MediaType::Webp),
        ];
        for (bytes, media_type) in all {
            let data = STANDARD.encode(&bytes).into();
            let image = Image { media_type, data, width: Some(40), height: Some(30) };
            assert_eq!(read(&bytes).unwrap(), image);
        }
    }

    #[test]
    fn an_image_of_another_type_is_named_with_the_remedy() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("drawing.png");
        fs::write(&path, b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0").unwrap();
        let error = read_image(&path).unwrap_err().to_string();
        assert!(error.contains("drawing.png is no PNG, JPEG, GIF or WebP image"), "{error}");
        assert!(error.ends_with("convert it to one of these"), "{error}");
        assert!(matches!(read(b""), Err(ImageFileError::Unsupported { .. })));
    }

    #[test]
    fn an_image_without_a_size_is_damaged() {
        assert!(matches!(read(&png(1, 1)[..12]), Err(ImageFileError::Damaged { .. })));
        assert!(matches!(read(&png(0, 5)), Err(ImageFileError::Damaged { .. })));
    }

    #[test]
    fn an_image_that_is_too_wide_is_refused() {
        let error = read(&png(8001, 10)).unwrap_err();
        let wide = ImageError::TooWide { width: 8001, height: 10 };
        assert!(matches!(&error, ImageFileError::Refused { error, .. } if *error == wide), "{error}");
        assert!(error.to_string().contains("picture.bmp cannot be sent: "), "{error}");
        assert!(read(&png(8000, 8000)).is_ok());
    }

    #[test]
    fn an_image_that_is_too_large_is_refused_before_it_is_read() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("huge.png");
        fs::write(&path, png(10, 10)).unwrap();
        // A hole of 1 TB: reading it would not end soon.
        if File::options().write(true).open(&path).unwrap().set_len(1 << 40).is_err() {
            return; // the file system has no holes
        }
        let error = read_image(&path).unwrap_err();
        let large = |error: &ImageError| matches!(error, ImageError::TooLarge { limit: BASE64_LIMIT, .. });
        assert!(matches!(&error, ImageFileError::Refused { error, .. } if large(error)), "{error}");
    }

    #[test]
    fn the_limit_here_is_the_limit_of_the_vocabulary() {
        let image = |bytes| Image {
            media_type: MediaType::Png,
            data: "A".repeat(bytes).into(),
            width: None,
            height: None,
        };
        assert_eq!(image(BASE64_LIMIT).check(), Ok(()));
        assert_eq!(
            image(BASE64_LIMIT + 1).check(),
            Err(ImageError::TooLarge { bytes: BASE64_LIMIT + 1, limit: BASE64_LIMIT })
        );
    }

    #[test]
    fn what_is_no_file_is_unreadable() {
        let folder = tempdir().unwrap();
        let reason = |path: &Path| match read_image(path) {
            Err(ImageFileError::Unreadable(error)) => error.reason,
            other => panic!("{other:?}"),
        };
        assert!(matches!(reason(folder.path()), UnreadableReason::Directory));
        assert!(matches!(reason(&folder.path().join("none.png")), UnreadableReason::Missing));
    }
}

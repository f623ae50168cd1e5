//! What `node:zlib` is made of: DEFLATE, bare, with the frame of zlib, or with that of gzip.

use miniz_oxide::deflate::{compress_to_vec, compress_to_vec_zlib};
use miniz_oxide::inflate::{decompress_to_vec_with_limit, decompress_to_vec_zlib_with_limit};
use thiserror::Error;

/// The most that is unpacked, in bytes.
const MAX_UNPACKED: usize = 64 << 20;

/// The level of packing where none is given.
const USUAL_LEVEL: u8 = 6;

/// The first bytes of gzip: its mark, and DEFLATE as the method.
const GZIP_MARK: [u8; 3] = [0x1f, 0x8b, 8];

/// Bytes before the optional parts of a gzip header, and after the content.
const GZIP_HEADER: usize = 10;
const GZIP_TRAILER: usize = 8;

/// How packed bytes are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// gzip
    Gzip,
    /// zlib: what Node calls deflate
    Zlib,
    /// no frame
    Raw,
}

/// Why bytes were not unpacked.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UnpackError {
    /// They do not begin as the frame does, or end early.
    #[error("incorrect header check")]
    Header,
    /// They are damaged, or more than an extension may hold.
    #[error("invalid or too large data")]
    Data,
    /// They are not what was packed.
    #[error("incorrect data check")]
    Checksum,
}

impl Frame {
    /// As `small_modules.js` names it; `None` for the frame that the bytes have.
    pub fn named(name: &str, packed: &[u8]) -> Self {
        match name {
            "gzip" => Frame::Gzip,
            "zlib" => Frame::Zlib,
            "raw" => Frame::Raw,
            _ if packed.starts_with(&GZIP_MARK) => Frame::Gzip,
            _ => Frame::Zlib,
        }
    }

    /// Packs bytes. Levels go from 0 to 9; others mean the usual one.
    pub fn pack(self, plain: &[u8], level: i32) -> Vec<u8> {
        let level = u8::try_from(level).ok().filter(|level| *level <= 9).unwrap_or(USUAL_LEVEL);
        match self {
            Frame::Raw => compress_to_vec(plain, level),
            Frame::Zlib => compress_to_vec_zlib(plain, level),
            Frame::Gzip => {
                // No name, no time, from an unknown system.
                let mut packed = GZIP_MARK.to_vec();
                packed.extend([0, 0, 0, 0, 0, 0, 255]);
                packed.extend(compress_to_vec(plain, level));
                packed.extend(checksum(plain).to_le_bytes());
                packed.extend(gzip_length(plain));
                packed
            }
        }
    }

    /// Unpacks bytes.
    pub fn unpack(self, packed: &[u8]) -> Result<Vec<u8>, UnpackError> {
        match self {
            Frame::Raw => decompress_to_vec_with_limit(packed, MAX_UNPACKED).map_err(|_| UnpackError::Data),
            Frame::Zlib => {
                decompress_to_vec_zlib_with_limit(packed, MAX_UNPACKED).map_err(|_| UnpackError::Data)
            }
            Frame::Gzip => {
                let content = gzip_content(packed).ok_or(UnpackError::Header)?;
                let (content, trailer) = content
                    .split_at_checked(content.len().saturating_sub(GZIP_TRAILER))
                    .ok_or(UnpackError::Header)?;
                let plain = Frame::Raw.unpack(content)?;
                let expected = [&checksum(&plain).to_le_bytes()[..], &gzip_length(&plain)].concat();
                if trailer == expected { Ok(plain) } else { Err(UnpackError::Checksum) }
            }
        }
    }
}

/// The length of the content, as gzip ends with it.
#[expect(clippy::cast_possible_truncation, reason = "the format keeps the length modulo 2^32")]
fn gzip_length(plain: &[u8]) -> [u8; 4] {
    (plain.len() as u32).to_le_bytes()
}

/// What comes after the header of gzip, whose optional parts are passed over.
fn gzip_content(packed: &[u8]) -> Option<&[u8]> {
    if !packed.starts_with(&GZIP_MARK) {
        return None;
    }
    let flags = *packed.get(3)?;
    let mut rest = packed.get(GZIP_HEADER..)?;
    if flags & 4 != 0 {
        let length = u16::from_le_bytes([*rest.first()?, *rest.get(1)?]);
        rest = rest.get(2 + usize::from(length)..)?;
    }
    for text in [8, 16] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & 2 != 0 { rest.get(2..) } else { Some(rest) }
}

/// The CRC-32 of gzip.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let mut sum = sum ^ u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
        sum
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_gives_back_what_it_packed() {
        let plain = b"the same words, the same words, the same words".repeat(20);
        for frame in [Frame::Gzip, Frame::Zlib, Frame::Raw] {
            let packed = frame.pack(&plain, -1);
            assert!(packed.len() < plain.len() / 4, "{frame:?}");
            assert_eq!(frame.unpack(&packed).as_deref(), Ok(&*plain), "{frame:?}");
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn gzip_with_a_name_is_read_and_a_damaged_one_is_not() {
        let mut packed = Frame::Gzip.pack(b"hello", 6);
        packed[3] = 8;
        packed.splice(GZIP_HEADER..GZIP_HEADER, *b"name.txt\0");
        assert_eq!(Frame::named("any", &packed), Frame::Gzip);
        assert_eq!(Frame::Gzip.unpack(&packed).as_deref(), Ok(&b"hello"[..]));
        let last = packed.len() - 1;
        packed[last] ^= 1;
        assert_eq!(Frame::Gzip.unpack(&packed), Err(UnpackError::Checksum));
        assert_eq!(Frame::Gzip.unpack(b"hello"), Err(UnpackError::Header));
        assert_eq!(Frame::Gzip.unpack(&GZIP_MARK), Err(UnpackError::Header));
        assert_eq!(Frame::Raw.unpack(&[0xff; 4]), Err(UnpackError::Data));
    }
}

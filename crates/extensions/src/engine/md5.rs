//! The digest MD5. Extensions name files of caches with it; nothing is kept safe by it.

/// How far each step of a round turns its sum.
const SHIFTS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The sine of each step's number, as the standard defines its constants.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the values are below 2^32")]
fn constant(step: u32) -> u32 {
    (f64::from(step + 1).sin().abs() * 4_294_967_296.0) as u32
}

fn add_block(sums: [u32; 4], block: &[u8]) -> [u32; 4] {
    let word = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&block[at * 4..at * 4 + 4]);
        u32::from_le_bytes(bytes)
    };
    let [mut a, mut b, mut c, mut d] = sums;
    for step in 0..64_u32 {
        let (round, at) = (step / 16, step as usize);
        let (mixed, index) = match round {
            0 => ((b & c) | (!b & d), at),
            1 => ((d & b) | (!d & c), 5 * at + 1),
            2 => (b ^ c ^ d, 3 * at + 5),
            _ => (c ^ (b | !d), 7 * at),
        };
        let sum = a.wrapping_add(mixed).wrapping_add(constant(step)).wrapping_add(word(index % 16));
        let turned = sum.rotate_left(SHIFTS[round as usize][at % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
    }
    let [first, second, third, fourth] = sums;
    [first.wrapping_add(a), second.wrapping_add(b), third.wrapping_add(c), fourth.wrapping_add(d)]
}

/// The digest of bytes.
pub fn md5(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - bytes.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let length_at = padded.len() - 8;
    padded[length_at..].copy_from_slice(&(bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    let start = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    padded.chunks(64).fold(start, add_block).into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of RFC 1321.
    #[test]
    fn digests_are_those_of_the_standard() {
        let hex =
            |text: &str| md5(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
        let digits = "12345678901234567890123456789012345678901234567890123456789012345678901234567890";
        assert_eq!(hex(digits), "57edf4a22be3c955ac49da2e2107b67a");
        assert_eq!(hex(&digits[..55]), "c9ccf168914a1bcfc3229f1948e67da0");
        assert_eq!(hex(&digits[..56]), "49f193adce178490e34d1b3a4ec0064c");
    }
}

//! Checksums that issuers put into their tokens.
//!
//! GitHub and npm end a token with six base62 digits of a CRC-32 over the random part
//! (github.blog, "Behind GitHub's new authentication token formats", 2021). A token whose checksum
//! holds is real beyond doubt; one whose checksum does not is perhaps made up.

/// True if the last six characters are the base62 CRC-32 of those before, counted from `body`.
pub(super) fn base62_crc32(body: &[u8]) -> bool {
    let Some(split) = body.len().checked_sub(6) else {
        return false;
    };
    let (random, check) = body.split_at(split);
    let mut value = crc32(random);
    let mut expected = [b'0'; 6];
    for digit in expected.iter_mut().rev() {
        *digit = BASE62[(value % 62) as usize];
        value /= 62;
    }
    check == expected
}

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// CRC-32 as in IEEE 802.3, bit by bit: tokens are short.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |mut crc: u32, byte| {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
        crc
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn crc_of_the_standard_check_string() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    /// A token body with a checksum that holds.
    pub(in crate::secrets) fn sealed(random: &str) -> String {
        let mut value = crc32(random.as_bytes());
        let mut digits = [b'0'; 6];
        for digit in digits.iter_mut().rev() {
            *digit = BASE62[(value % 62) as usize];
            value /= 62;
        }
        format!("{random}{}", String::from_utf8_lossy(&digits))
    }

    #[test]
    fn sealed_bodies_hold_and_changed_ones_do_not() {
        let body = sealed("q7Jz0TnV4dKpW2mXc8RbYh5LsGfE1a");
        assert_eq!(body.len(), 36);
        assert!(base62_crc32(body.as_bytes()));
        assert!(!base62_crc32(body.replace('q', "r").as_bytes()));
        assert!(!base62_crc32(b"abc"));
    }
}

//! Ids of git's blobs, and whether an index of a pack lists one (gitformat-pack(5)).

/// The file among a repository's objects that keeps when a sandboxed command first wrote objects. It
/// is where they are, so that whoever can write objects can write the file.
pub const WRITTEN_SINCE: &str = "stockade-since";

/// The id of a blob in repositories of either object format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobIds {
    /// In repositories that use SHA-1.
    pub sha1: [u8; 20],
    /// In repositories with `extensions.objectFormat = sha256`.
    pub sha256: [u8; 32],
}

impl BlobIds {
    /// The ids of a file with this content.
    pub fn of(content: &[u8]) -> Self {
        let mut object = format!("blob {}\0", content.len()).into_bytes();
        object.extend_from_slice(content);
        Self {
            sha1: sha1(&object),
            sha256: sha256(&object),
        }
    }
}

/// Entries before those of the first byte of an id and up to them: the fan-out table.
const FAN_OUT_BYTES: u64 = 256 * 4;
const HEADER: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];

/// Whether the index of a pack (version 2) lists an object. `read` fills a buffer from an offset,
/// and returns false if the file is shorter.
pub fn pack_index_has(id: &[u8], mut read: impl FnMut(u64, &mut [u8]) -> bool) -> bool {
    let mut header = [0; 8];
    let Some(first) = id.first().copied().map(u64::from) else {
        return false;
    };
    if !read(0, &mut header) || header != HEADER {
        return false;
    }
    let mut count_up_to = |byte: u64| {
        let mut count = [0; 4];
        read(8 + byte * 4, &mut count).then(|| u64::from(u32::from_be_bytes(count)))
    };
    let low = if first == 0 {
        Some(0)
    } else {
        count_up_to(first - 1)
    };
    let (Some(mut low), Some(mut high)) = (low, count_up_to(first)) else {
        return false;
    };
    let mut found = vec![0; id.len()];
    while low < high {
        let middle = low + (high - low) / 2;
        let offset = 8 + FAN_OUT_BYTES + middle * id.len() as u64;
        if !read(offset, &mut found) {
            return false;
        }
        match found.as_slice().cmp(id) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    false
}

/// The blocks of a message, padded as SHA-1 and SHA-256 do (RFC 6234, section 4.1).
fn blocks(message: &[u8]) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    padded
}

fn words<const N: usize>(block: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    words
}

fn bytes<const N: usize>(state: &[u32]) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, word) in bytes.chunks_exact_mut(4).zip(state) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// RFC 6234, section 6.1.
#[expect(clippy::many_single_char_names, reason = "the letters of the standard")]
fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    for block in blocks(message).chunks_exact(64) {
        let mut w: [u32; 80] = words(block);
        for t in 16..80 {
            w[t] = (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (t, word) in w.iter().enumerate() {
            let (f, k) = match t / 20 {
                0 => (b & c | !b & d, 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a.rotate_left(5);
            let next = next.wrapping_add(f).wrapping_add(e);
            let next = next.wrapping_add(k).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (sum, value) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(value);
        }
    }
    bytes(&state)
}

#[rustfmt::skip]
const SHA256: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];

/// RFC 6234, section 6.2.
#[expect(clippy::many_single_char_names, reason = "the letters of the standard")]
fn sha256(message: &[u8]) -> [u8; 32] {
    let mut state: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    for block in blocks(message).chunks_exact(64) {
        let mut w: [u32; 64] = words(block);
        for t in 16..64 {
            let (x, y) = (w[t - 15], w[t - 2]);
            let small0 = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
            let small1 = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
            let sum = w[t - 16].wrapping_add(small0).wrapping_add(w[t - 7]);
            w[t] = sum.wrapping_add(small1);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (k, word) in SHA256.iter().zip(w) {
            let big1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = e & f ^ !e & g;
            let first = h.wrapping_add(big1).wrapping_add(choice);
            let first = first.wrapping_add(*k).wrapping_add(word);
            let big0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let second = big0.wrapping_add(a & b ^ a & c ^ b & c);
            (h, g, f, e) = (g, f, e, d.wrapping_add(first));
            (d, c, b, a) = (c, b, a, first.wrapping_add(second));
        }
        for (sum, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(value);
        }
    }
    bytes(&state)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        use std::fmt::Write as _;
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    }

    #[test]
    fn ids_are_those_of_git() {
        // git hash-object, and the same in a repository of --object-format=sha256.
        let empty = BlobIds::of(b"");
        assert_eq!(hex(&empty.sha1), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            hex(&empty.sha256),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
        assert_eq!(
            hex(&BlobIds::of(b"hello\n").sha1),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
    }

    #[test]
    fn digests_are_those_of_the_standard() {
        let text = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(&sha1(text)), "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
        assert_eq!(
            hex(&sha256(text)),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(
            hex(&sha1(&[b'a'; 1000])),
            "291e9a6c66994949b57ba5e650361e98fc36b1ba"
        );
    }

    /// An index with these ids, as far as it is read.
    fn index(ids: &[[u8; 20]]) -> Vec<u8> {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        let mut file = HEADER.to_vec();
        for byte in 0..=255 {
            let count = sorted.iter().filter(|id| id[0] <= byte).count();
            file.extend(u32::try_from(count).unwrap().to_be_bytes());
        }
        for id in &sorted {
            file.extend(id);
        }
        file
    }

    fn has(file: &[u8], id: &[u8]) -> bool {
        pack_index_has(id, |offset, buffer| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let part = file.get(start..).and_then(|rest| rest.get(..buffer.len()));
            part.map(|part| buffer.copy_from_slice(part)).is_some()
        })
    }

    proptest! {
        #[test]
        fn an_index_has_what_was_put_there(
            ids in proptest::collection::vec(any::<[u8; 20]>(), 0..40),
            other in any::<[u8; 20]>(),
        ) {
            let file = index(&ids);
            for id in &ids {
                prop_assert!(has(&file, id));
            }
            prop_assert_eq!(has(&file, &other), ids.contains(&other));
        }

        #[test]
        fn any_bytes_may_be_an_index(mut file in proptest::collection::vec(any::<u8>(), 0..2000), id in any::<[u8; 20]>()) {
            has(&file, &id);
            if file.len() > 8 {
                file[..8].copy_from_slice(&HEADER);
            }
            has(&file, &id);
        }
    }
}

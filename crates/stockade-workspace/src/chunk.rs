//! Cuts long content where it says so itself, so that what was inserted in the middle of a file
//! changes one or two pieces and not all that follow (a gear hash, as in `FastCDC`).

/// No piece is shorter, save for the last.
pub(crate) const MIN_CHUNK_BYTES: usize = 256 * 1024;
/// No piece is longer.
pub(crate) const MAX_CHUNK_BYTES: usize = 4 * 1024 * 1024;
/// Content up to this length is one piece.
pub(crate) const WHOLE: usize = 1024 * 1024;

/// One cut in a mebibyte, on average, past the shortest length.
const MASK: u64 = ((1 << 20) - 1) << 40;

/// A random number for each byte. Changing it would cut the same content elsewhere.
const GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state: u64 = 0x5374_6f63_6b61_6465;
    let mut index = 0;
    while index < table.len() {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[index] = mixed ^ (mixed >> 31);
        index += 1;
    }
    table
}

/// How long the first piece of `content` is; `content` holds [`MAX_CHUNK_BYTES`] bytes or all there are.
pub(crate) fn first_cut(content: &[u8]) -> usize {
    if content.len() <= MIN_CHUNK_BYTES {
        return content.len();
    }
    let end = content.len().min(MAX_CHUNK_BYTES);
    let mut hash = 0u64;
    // The hash depends on the last 64 bytes only.
    for (index, byte) in content[..end].iter().enumerate().skip(MIN_CHUNK_BYTES - 64) {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
        if index >= MIN_CHUNK_BYTES && hash & MASK == 0 {
            return index;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1u64;
        std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(length)
        .collect()
    }

    fn pieces(mut content: &[u8]) -> Vec<&[u8]> {
        let mut pieces = Vec::new();
        while !content.is_empty() {
            let (piece, rest) =
                content.split_at(first_cut(&content[..content.len().min(MAX_CHUNK_BYTES)]));
            pieces.push(piece);
            content = rest;
        }
        pieces
    }

    #[test]
    fn an_insertion_changes_few_pieces() {
        let before = noise(24 << 20);
        let mut after = before.clone();
        after.splice(5_000_000..5_000_000, *b"inserted");
        let old = pieces(&before);
        let new = pieces(&after);
        assert!(old.len() > 8, "{}", old.len());
        let changed = new.iter().filter(|piece| !old.contains(piece)).count();
        assert!(changed <= 3, "{changed} of {}", new.len());
        assert!(old.iter().all(|piece| piece.len() <= MAX_CHUNK_BYTES));
    }
}

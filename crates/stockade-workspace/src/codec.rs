//! Numbers and byte strings in the store's own files. Reading never trusts a length: whatever a
//! damaged or hostile file says, the answer is a value or [`Malformed`].

/// The bytes are not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

pub(crate) type Decoded<T> = Result<T, Malformed>;

/// Appends a number in as few bytes as it needs (LEB128).
pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends a number that may be negative.
pub(crate) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Takes values off the front of a slice.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) const fn left(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn take(&mut self, length: usize) -> Decoded<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(crate) fn byte(&mut self) -> Decoded<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn number(&mut self) -> Decoded<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(Malformed);
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    pub(crate) fn number_u32(&mut self) -> Decoded<u32> {
        self.number()?.try_into().map_err(|_| Malformed)
    }

    pub(crate) fn signed(&mut self) -> Decoded<i64> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    pub(crate) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let length = self.number()?.try_into().map_err(|_| Malformed)?;
        self.take(length)
    }

    pub(crate) fn u32_fixed(&mut self) -> Decoded<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64_fixed(&mut self) -> Decoded<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            assert_eq!(Reader::new(&bytes).number(), Ok(number));
        }
        for number in [0, -1, 1, i64::MIN, i64::MAX] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(Reader::new(&bytes).signed(), Ok(number));
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        let mut bytes = Vec::new();
        put_number(&mut bytes, u64::MAX);
        assert_eq!(Reader::new(&bytes).bytes(), Err(Malformed));
        assert_eq!(Reader::new(&[0x80; 11]).number(), Err(Malformed));
        assert_eq!(Reader::new(&[]).byte(), Err(Malformed));
    }
}

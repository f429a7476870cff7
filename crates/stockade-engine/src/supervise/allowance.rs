//! How many bytes a command may still print, on all of its streams together.

use std::cell::Cell;

#[derive(Debug)]
pub(super) struct Allowance {
    left: Cell<u64>,
    is_limited: bool,
}

impl Allowance {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            left: Cell::new(limit.unwrap_or(u64::MAX)),
            is_limited: limit.is_some(),
        }
    }

    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Takes as many of these bytes as are left.
    pub(super) fn take(&self, length: usize) -> usize {
        let left = self.left.get();
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(length);
        self.left.set(left - taken as u64);
        taken
    }
}

//! Telling how far long work has come.

/// Hears of progress, from any thread.
pub trait Progress: Sync {
    /// What is being done now, and how many bytes it will take if that is known.
    fn begin(&self, what: &'static str, bytes: Option<u64>);
    /// So many more bytes are done.
    fn advance(&self, bytes: u64);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &'static str, _: Option<u64>) {}
    fn advance(&self, _: u64) {}
}

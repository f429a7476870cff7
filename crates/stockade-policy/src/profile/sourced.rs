//! A value and who said it.

use std::fmt;

use serde::{Deserialize, Serialize};
use stockade_rules::Origin;

/// The origin of a value that nobody stated.
pub const BUILT_IN: Origin = Origin::fixed("built-in");

/// A value and where it comes from: a flag, a line of a file, or Stockade itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sourced<T> {
    /// What was said.
    pub value: T,
    /// Who said it.
    pub origin: Origin,
}

impl<T> Sourced<T> {
    /// A value with its origin.
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }

    /// A value that ships with Stockade.
    pub fn built_in(value: T) -> Self {
        Self::new(value, BUILT_IN)
    }

    /// The same origin for what is made of the value.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced::new(make(self.value), self.origin)
    }
}

/// The value alone; [`crate::profile::Profile::show`] prints origins.
impl<T: fmt::Display> fmt::Display for Sourced<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

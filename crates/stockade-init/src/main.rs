//! The static helper.
fn main() {}

//! The stockade command.
fn main() {}

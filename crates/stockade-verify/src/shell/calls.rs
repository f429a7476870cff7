//! Usual names of calls in languages without a grammar here, by what they do.

use crate::words::Words;

pub(super) static SOCKETS: Words = Words::new("shell/calls sockets");

pub(super) static RUNS: Words = Words::new("shell/calls runs");

pub(super) static SENDS: Words = Words::new("shell/calls sends");

pub(super) static READS: Words = Words::new("shell/calls reads");

pub(super) const EVALUATES: &[&str] = &["eval", "assert(", "create_function", "load("];

pub(super) static DECODES: Words = Words::new("shell/calls decodes");

pub(super) static FETCHES: Words = Words::new("shell/calls fetches");

pub(super) static WRITES: Words = Words::new("shell/calls writes");

pub(super) static DELETES: Words = Words::new("shell/calls deletes");

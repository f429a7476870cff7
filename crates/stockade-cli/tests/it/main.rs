//! The command line, seen from outside: what it prints, where, and how it ends.
#![cfg(target_os = "linux")]

mod bad_input;
mod basics;
mod context;
mod doctor;
mod explain;
mod policy;
mod run;

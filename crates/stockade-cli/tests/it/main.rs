//! The command line, seen from outside: what it prints, where, and how it ends.
#![cfg(target_os = "linux")]

mod basics;
mod context;
mod doctor;

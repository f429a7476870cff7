//! The command line, seen from outside: what it prints, where, and how it ends.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]
#![cfg(target_os = "linux")]

mod agents;
mod backend_hints;
mod backends;
mod bad_input;
mod basics;
mod batch;
mod containers;
mod context;
mod crowd;
mod doctor;
mod explain;
mod front;
mod grants_generated;
mod hint_list;
mod hints;
mod home;
mod init;
mod inspect;
mod json_documents;
mod library_hints;
mod log;
mod machine_hints;
mod mcp;
mod nested;
mod network;
mod ordinary_user;
mod policy;
mod proxy;
mod run;
mod sdk;
mod serve;
mod serve_changes;
mod session;
mod session_faults;
mod session_hints;
mod tiers;
mod transform;
mod verify;
mod ws;
mod ws_differences;
mod ws_generated;
mod ws_guarded;
mod ws_hints;
mod ws_imports;
mod ws_lives;
mod ws_places;
mod ws_transactions;

//! Every `unsafe` block of the project: thin, safe wrappers around single system calls.
#![expect(
    unsafe_code,
    reason = "the one folder that may talk to the kernel without a safe wrapper"
)]

pub(crate) mod seccomp;

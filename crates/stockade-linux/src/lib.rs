//! The Linux mechanism: executes a plan with namespaces, mounts, Landlock and seccomp.

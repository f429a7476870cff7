//! What sandboxed code may touch: policies, profile files, network names, environment.

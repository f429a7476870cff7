//! Files that other tools trip over.

//! Path rules and the one function that decides about a path.

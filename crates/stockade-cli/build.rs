//! Lays the code of the static program out for a fast start: see `link/run-first.ld`.

use std::env;
use std::path::Path;

fn main() {
    let order = Path::new("link").join("run-first.ld");
    println!("cargo::rerun-if-changed={}", order.display());
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_ENV", "musl") && is("PROFILE", "release") {
        let root = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
        let order = Path::new(&root).join(order);
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", order.display());
        // The program's 20,000 addresses are adjusted when it starts: read from 10 KiB instead
        // of 480. musl has known this form since 1.2.4, GNU ld since 2.38.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

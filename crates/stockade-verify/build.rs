//! Reads the lists of facts as the program will, so that a mistake in them fails the build.

#[path = "src/facts.rs"]
#[expect(dead_code, reason = "the build only reads the lists")]
mod facts;

use facts::{Data, Effect};

const SOURCES: &str = include_str!("rules/sources.list");
const SINKS: &str = include_str!("rules/sinks.list");
const FLOWS: &str = include_str!("rules/flows.list");
const RULES: &str = include_str!("rules/rules.toml");

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=src/facts.rs");
    let named = |list: &'static str| move |problem: String| format!("rules/{list}: {problem}");
    facts::table::<Data>(SOURCES).map_err(named("sources.list"))?;
    facts::table::<Effect>(SINKS).map_err(named("sinks.list"))?;
    for flow in facts::flows(FLOWS).map_err(named("flows.list"))? {
        if !RULES.contains(&format!("\"{}\"", flow.rule))
            && !RULES.contains(&format!("[{}]", flow.rule))
        {
            return Err(format!(
                "rules/flows.list: no rule is called `{}`",
                flow.rule
            ));
        }
    }
    Ok(())
}

//! local
use std::io::Read;
use stockade_inspect::*;
fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let kinds = match kind.as_str() { "injection" => Kinds::INJECTION, "secrets" => Kinds::SECRETS, _ => Kinds::EGRESS };
    let mut list = String::new();
    std::io::stdin().read_to_string(&mut list).unwrap();
    let (mut n, mut bad) = (0, 0);
    let mut out = String::new();
    for f in list.lines() {
        let Ok(t) = std::fs::read(f) else { continue };
        n += 1;
        let r = inspect_all(kinds, [""; 0], &t);
        if !r.safe {
            bad += 1;
            for x in r.findings.iter().filter(|x| x.level > ThreatLevel::Low).take(4) {
                let a = x.span.start as usize; let b = (x.span.end as usize).min(t.len());
                let ctx = String::from_utf8_lossy(&t[a.saturating_sub(50)..(b + 40).min(t.len())]).replace('\n', "⏎");
                out += &format!("{} {} {:.2} {} | {}\n", x.rule, x.level, x.confidence, f.rsplit('/').take(3).collect::<Vec<_>>().join("<"), ctx.chars().take(260).collect::<String>());
            }
        }
    }
    print!("{out}");
    println!("{kind}: {bad} of {n} = {:.2}%", 100.0 * bad as f64 / n as f64);
}

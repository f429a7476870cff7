//! The command's environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use stockade_linux::plan::Text;
use stockade_policy::profile::{Backend, Masked, Profile};
use stockade_policy::{CERTIFICATE_VARIABLES, SanitizedEnv};
use stockade_rules::{AbsPath, Kind, RuleSet};

use super::network::Network;
use crate::network::TRUST_FILE;
use crate::plan::{PlanError, Spec};

pub(super) struct Environment {
    pub(super) entries: Vec<Text>,
    /// Names that were not handed on.
    pub(super) removed: Vec<String>,
}

/// What the shells assume when nobody says.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Where temporary files go inside, whatever the host's `TMPDIR` says.
const TEMPORARY: &str = "/tmp";

/// Where tools keep what they can do without, below the home: they fail where they can't write
/// it (`go build`, `npm`), so they are sent to the temporary directory unless it was granted.
const CACHES: &[(&str, &str)] = &[("XDG_CACHE_HOME", ".cache"), ("npm_config_cache", ".npm")];

/// Without a network no second attempt can succeed, and clients wait before each (npm 71 s in all,
/// pip and cargo 11 s).
const NO_RETRIES: [(&str, &str); 4] = [
    ("CARGO_NET_RETRY", "0"),
    ("PIP_RETRIES", "0"),
    ("UV_HTTP_RETRIES", "0"),
    ("npm_config_fetch_retries", "0"),
];

pub(super) fn lower(
    profile: &Profile,
    spec: &Spec,
    backend: Backend,
    network: &Network,
    masks: &[Masked],
    (rules, scratch): (&RuleSet, Option<&Path>),
) -> Result<Environment, PlanError> {
    let roots: Vec<&Path> = profile.writable_roots.iter().map(AsRef::as_ref).collect();
    let request = profile
        .environment
        .request()
        .map_err(PlanError::Environment)?
        .with_markers(
            &backend.to_string(),
            network.own && network.proxy.is_none(),
            &roots,
        );
    let mut built = request.build(spec.env.iter().cloned());
    let stated = |name: &str| {
        profile
            .environment
            .set
            .iter()
            .any(|set| set.value.name().as_os_str() == name)
    };
    let temporary = scratch.unwrap_or(Path::new(TEMPORARY));
    for name in ["TMPDIR", "TEMP", "TMP"] {
        let handed_on = built.env.contains_key(OsStr::new(name));
        // Without the name programs use /tmp, where a run without mounts may not write.
        let needed = scratch.is_some() && name == "TMPDIR";
        if (handed_on || needed) && !stated(name) {
            built.env.insert(name.into(), temporary.into());
        }
    }
    for (name, place) in unwritable_caches(&built.env, rules, temporary) {
        if !stated(name) {
            built.env.insert(name.into(), place.into());
        }
    }
    if network.own && network.proxy.is_none() {
        for (name, value) in NO_RETRIES {
            built.env.entry(name.into()).or_insert_with(|| value.into());
        }
    }
    if let Some(proxy) = network.proxy {
        for (name, value) in proxy_variables(proxy) {
            if !stated(&name) {
                built.env.insert(name.into(), value.into());
            }
        }
    }
    add_certificates(&mut built, spec, rules);
    if network.opens_tls() {
        for name in CERTIFICATE_VARIABLES {
            if !stated(name) {
                built.env.insert((*name).into(), TRUST_FILE.into());
            }
        }
    }
    for masked in masks {
        let name = masked.mask.name.as_os_str();
        built
            .env
            .insert(name.into(), masked.placeholder.clone().into());
    }
    // It lies below /run, which is hidden.
    if !stated("XDG_RUNTIME_DIR") {
        built.env.remove(OsStr::new("XDG_RUNTIME_DIR"));
    }
    built
        .env
        .entry("PATH".into())
        .or_insert_with(|| DEFAULT_PATH.into());
    check_masks(masks, spec, &built.env)?;
    let entries = built
        .env
        .iter()
        .map(|(name, value)| {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            super::text(entry)
        })
        .collect::<Result<_, _>>()?;
    let removed = built
        .removed
        .iter()
        .filter(|note| {
            !masks
                .iter()
                .any(|own| own.mask.name.as_os_str() == note.name)
        })
        .map(|note| note.name.to_string_lossy().into_owned())
        .collect();
    Ok(Environment { entries, removed })
}

/// Where the caches are that can't be written in their own place.
fn unwritable_caches(
    env: &BTreeMap<OsString, OsString>,
    rules: &RuleSet,
    temporary: &Path,
) -> Vec<(&'static str, PathBuf)> {
    let is_writable = |name: &str, directory: &str| {
        let stated = env.get(OsStr::new(name)).map(PathBuf::from);
        let place =
            stated.or_else(|| Some(Path::new(env.get(OsStr::new("HOME"))?).join(directory)));
        place
            .and_then(|place| AbsPath::new(place).ok())
            .is_some_and(|place| rules.decide(Kind::Write, place.as_path()).allowed)
    };
    let caches = CACHES.iter();
    caches
        .filter(|(name, directory)| !is_writable(name, directory))
        .map(|(name, directory)| (*name, temporary.join(directory)))
        .collect()
}

/// Hands on variables that name files of certificates which can be read inside.
fn add_certificates(built: &mut SanitizedEnv, spec: &Spec, rules: &RuleSet) {
    for name in CERTIFICATE_VARIABLES {
        let mut parent = spec.env.iter().rev();
        let Some((_, file)) = parent.find(|(known, _)| known == name) else {
            continue;
        };
        let is_readable = AbsPath::new(PathBuf::from(file)).is_ok_and(|path| {
            rules.decide(Kind::Read, path.as_path()).allowed && path.as_path().is_file()
        });
        if is_readable {
            let variable = built.env.entry(name.into());
            variable.or_insert_with(|| file.clone());
            built.removed.retain(|note| note.name != *name);
        }
    }
}

/// Refuses to hand over the value of a masked variable by another way.
fn check_masks(
    masks: &[Masked],
    spec: &Spec,
    env: &BTreeMap<OsString, OsString>,
) -> Result<(), PlanError> {
    for masked in masks {
        let has = |text: &OsString| masked.value.is_in(text.as_encoded_bytes());
        let argument = spec.argv.iter().position(has);
        let argument = argument.map(|at| format!("argument {at} of the command"));
        let variable = env.iter().find(|(_, value)| has(value));
        let variable = variable.map(|(name, _)| format!("the variable `{}`", name.display()));
        if let Some(place) = argument.or(variable) {
            let name = masked.mask.name.to_string();
            return Err(PlanError::Unmasked { name, place });
        }
    }
    Ok(())
}

/// What programs read to find a proxy, in both spellings. Names go to the proxy as names; what is
/// on the sandbox's own loopback does not go there.
fn proxy_variables(proxy: SocketAddr) -> impl Iterator<Item = (String, String)> {
    let http = format!("http://{proxy}");
    let socks = format!("socks5h://{proxy}");
    let own = "localhost,127.0.0.1,::1".to_owned();
    let values = [
        ("HTTP_PROXY", http.clone()),
        ("HTTPS_PROXY", http),
        ("ALL_PROXY", socks),
        ("NO_PROXY", own),
    ];
    values.into_iter().flat_map(|(name, value)| {
        [
            (name.to_owned(), value.clone()),
            (name.to_lowercase(), value),
        ]
    })
}

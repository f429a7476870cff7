//! Secrets of well-known services in requests to someone else.

use stockade_shell::Word;

use super::gather::is_secret_name;
use crate::hosts;

/// Variables of well-known services, with a part of the names of the hosts they are for.
const OWNERS: &[(&str, &[&str])] = &[
    ("AWS_", &["amazonaws", "amazon.", "aws."]),
    ("GITHUB_TOKEN", &["github"]),
    ("GH_TOKEN", &["github"]),
    ("GITLAB_TOKEN", &["gitlab"]),
    ("CI_JOB_TOKEN", &["gitlab", "$CI_API", "$CI_SERVER"]),
    ("NPM_TOKEN", &["npm", "registry"]),
    ("PYPI_TOKEN", &["pypi"]),
    ("OPENAI_API_KEY", &["openai", "azure"]),
    ("ANTHROPIC_API_KEY", &["anthropic"]),
    ("SLACK_", &["slack"]),
    ("STRIPE_", &["stripe"]),
    ("AZURE_", &["azure", "microsoft", "windows.net"]),
    ("GOOGLE_", &["google"]),
    ("HF_TOKEN", &["huggingface", "hf.co"]),
    ("HUGGING", &["huggingface", "hf.co"]),
    ("HEROKU_API_KEY", &["heroku"]),
    ("DIGITALOCEAN_", &["digitalocean"]),
    ("CLOUDFLARE_", &["cloudflare"]),
    ("VAULT_TOKEN", &["vault", "$VAULT_ADDR"]),
    ("TWILIO_", &["twilio"]),
    ("SENDGRID_", &["sendgrid"]),
    ("DOCKER_", &["docker"]),
    ("DATABASE_URL", &[]),
    ("DB_PASS", &[]),
    ("PGPASSWORD", &[]),
    ("MYSQL_", &[]),
    ("POSTGRES_", &[]),
    ("REDIS_PASS", &[]),
    ("MONGO_", &[]),
    ("SECRET_KEY_BASE", &[]),
    ("DJANGO_SECRET_KEY", &[]),
    ("JWT_SECRET", &[]),
    ("SSH_PRIVATE_KEY", &[]),
    ("SUDO_PASS", &[]),
];

/// How tokens of well-known services begin, with a part of the names of the hosts they are for.
const TOKENS: &[(&str, &[&str])] = &[
    ("AKIA", &["amazonaws", "amazon.", "aws."]),
    ("ghp_", &["github"]),
    ("gho_", &["github"]),
    ("github_pat_", &["github"]),
    ("glpat-", &["gitlab"]),
    ("sk-ant-", &["anthropic"]),
    ("sk_live_", &["stripe"]),
    ("xoxb-", &["slack"]),
    ("xoxp-", &["slack"]),
];

/// A well-known service's secret in the body or address of a request to someone else.
pub(super) fn misplaced_secret(args: &[Word]) -> Option<&str> {
    let mut header = false;
    for word in args {
        let skipped = std::mem::replace(&mut header, false);
        let text = word.text.as_str();
        if matches!(
            text,
            "-H" | "--header" | "-u" | "--user" | "--oauth2-bearer"
        ) {
            header = true;
        }
        let authorises = skipped || text.to_ascii_lowercase().contains("authorization");
        if authorises {
            continue;
        }
        let owner = |name: &&str| {
            let known = OWNERS.iter().find(|(owned, _)| name.starts_with(owned));
            known.is_some_and(|(owned, hosts)| {
                let secret = !owned.ends_with('_') || is_secret_name(name);
                secret && !args.iter().any(|word| is_meant(&word.text, hosts))
            })
        };
        if let Some(name) = word.variables().find(owner) {
            return Some(name);
        }
        let token = TOKENS.iter().find(|(start, hosts)| {
            let begins = text.split(['=', '"', '\'', ' ', '&', '/', ':']);
            let mut long = begins.filter(|part| part.len() > start.len() + 8);
            let there = long.any(|part| part.starts_with(start));
            there && !args.iter().any(|word| is_meant(&word.text, hosts))
        });
        if let Some((start, _)) = token {
            return Some(start);
        }
    }
    None
}

/// Whether an address is one of a service's own: by the name that was registered, not by what
/// anyone may put before or after it.
fn is_meant(text: &str, owners: &[&str]) -> bool {
    if text.starts_with('$') {
        return owners.iter().any(|owner| text.starts_with(owner));
    }
    let text = text.trim_start_matches("url=");
    if !hosts::is_url(text) && text.contains([' ', '=', '@']) {
        return false;
    }
    let Some(host) = hosts::host_of(text).filter(|host| host.contains('.')) else {
        return false;
    };
    let mut labels = host.rsplit('.');
    let (top, name) = (labels.next(), labels.next());
    let registered = format!("{}.{}", name.unwrap_or_default(), top.unwrap_or_default());
    owners.iter().any(|owner| registered.contains(owner))
}

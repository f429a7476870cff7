//! What an agent gets, given the variables and the credentials that there are.

use crate::host::HostPattern;
use crate::profile::Mask;

use super::base_url::BaseUrl;
use super::{Agent, AgentError, Api};

/// What to add to a policy for an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentGrants {
    /// Paths that are hidden from every other program; changes there are dropped.
    pub reveal: Vec<String>,
    /// Paths to hide.
    pub deny_read: Vec<String>,
    /// Paths to write.
    pub write: Vec<String>,
    /// Paths that must stay as they are.
    pub deny_write: Vec<String>,
    /// Hosts to allow.
    pub allow: Vec<HostPattern>,
    /// Ports of the host's loopback to reach.
    pub host_port: Vec<u16>,
    /// Variables that stay outside.
    pub mask: Vec<Mask>,
    /// Variables to hand on.
    pub keep_env: Vec<String>,
    /// Variables to set, `NAME=VALUE`.
    pub env: Vec<String>,
    /// How the agent proves to its services who it is.
    pub key: KeyUse,
}

/// How an agent proves to its services who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no other way")]
pub enum KeyUse {
    /// There is neither a key nor a login.
    #[default]
    Missing,
    /// The agent reads its login from these files.
    Login(Vec<String>),
    /// The variables, masked or handed on as `mask` and `keep_env` say.
    Variables(Vec<String>),
}

impl Agent {
    /// What the agent gets, if `variable` looks variables up and `exists` says whether a file of
    /// its login exists.
    ///
    /// # Errors
    /// If a host or an address can't be read.
    pub fn grants(
        &self,
        variable: impl Fn(&str) -> Option<String>,
        exists: impl Fn(&str) -> bool,
    ) -> Result<AgentGrants, AgentError> {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let mut grants = AgentGrants {
            reveal: self.settings.clone(),
            write: self.state.clone(),
            deny_write: self.protect.clone(),
            keep_env: self.keep.clone(),
            env: self
                .set
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            ..AgentGrants::default()
        };
        let with_key: Vec<&Api> = self.api.iter().filter(|api| is_set(&api.key)).collect();
        for api in &with_key {
            grants.add_api(api, &variable)?;
        }
        if !with_key.is_empty() {
            let names = with_key.iter().map(|api| api.key.clone());
            grants.key = KeyUse::Variables(names.collect());
            grants.deny_read.clone_from(&self.login.files);
            return Ok(grants);
        }
        let files = self.login.files.iter().filter(|file| exists(file));
        let files: Vec<String> = files.cloned().collect();
        let hosts = if files.is_empty() {
            self.api.first().map(|api| &api.hosts)
        } else {
            Some(&self.login.hosts)
        };
        grants.add_hosts(hosts.into_iter().flatten())?;
        if !files.is_empty() {
            // Tokens are renewed: what is not written back locks the user out.
            grants.write.extend(files.clone());
            grants.key = KeyUse::Login(files);
        }
        Ok(grants)
    }
}

impl AgentGrants {
    fn add_api(
        &mut self,
        api: &Api,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), AgentError> {
        let stated = api.base_url.as_ref().and_then(|name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some((name, value))
        });
        let Some((name, value)) = stated else {
            self.add_hosts(&api.hosts)?;
            let mask = format!("{}={}", api.key, api.hosts.join(","));
            self.mask.push(mask.parse()?);
            return Ok(());
        };
        let url = BaseUrl::parse(&value).ok_or_else(|| AgentError::BaseUrl {
            variable: name.clone(),
        })?;
        if !self.keep_env.contains(name) {
            self.keep_env.push(name.clone());
        }
        if url.is_loopback() {
            // The port leads to the host without a proxy in between that could put the key in.
            self.host_port.push(url.port);
            self.keep_env.push(api.key.clone());
            return Ok(());
        }
        self.add_hosts([&url.pattern()])?;
        self.mask
            .push(format!("{}={}", api.key, url.pattern()).parse()?);
        Ok(())
    }

    fn add_hosts<'a>(
        &mut self,
        hosts: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), AgentError> {
        for host in hosts {
            let host = HostPattern::parse(host)?;
            if !self.allow.contains(&host) {
                self.allow.push(host);
            }
        }
        Ok(())
    }
}

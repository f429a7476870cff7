//! Every item that `docs/compat-apis.md` names. Written by `table.rs`.

#![expect(unused_imports, reason = "they are here to be found")]

use stockade::compat::Door;

mod errata {
    use stockade::compat::errata::Config;
    use stockade::compat::errata::build_cmd;
    use stockade::compat::errata::config_from_context;
    use stockade::compat::errata::with_config;
}

mod hawk {
    use stockade::compat::hawk::AdversaryInspector;
    use stockade::compat::hawk::CONTAINER_IMAGE_TAG;
    use stockade::compat::hawk::CachedImage;
    use stockade::compat::hawk::CodeVerifier;
    use stockade::compat::hawk::Config;
    use stockade::compat::hawk::ContainerSandbox;
    use stockade::compat::hawk::DevEnvManager;
    use stockade::compat::hawk::EgressInspector;
    use stockade::compat::hawk::Finding;
    use stockade::compat::hawk::InspectionResult;
    use stockade::compat::hawk::IsolationLevel;
    use stockade::compat::hawk::LandlockSandbox;
    use stockade::compat::hawk::Mode;
    use stockade::compat::hawk::NetworkProxy;
    use stockade::compat::hawk::ProxyConfig;
    use stockade::compat::hawk::ProxyLogEntry;
    use stockade::compat::hawk::ProxyStats;
    use stockade::compat::hawk::Sandbox;
    use stockade::compat::hawk::SandboxConfig;
    use stockade::compat::hawk::SandboxManager;
    use stockade::compat::hawk::SandboxSelection;
    use stockade::compat::hawk::SandboxState;
    use stockade::compat::hawk::SeatbeltPolicy;
    use stockade::compat::hawk::SwapRequest;
    use stockade::compat::hawk::ThreatLevel;
    use stockade::compat::hawk::VerificationResult;
    use stockade::compat::hawk::Violation;
    use stockade::compat::hawk::apply_seccomp;
    use stockade::compat::hawk::context_with_mode;
    use stockade::compat::hawk::default_config;
    use stockade::compat::hawk::default_development_config;
    use stockade::compat::hawk::default_hawk_policy;
    use stockade::compat::hawk::default_seccomp_profile;
    use stockade::compat::hawk::docker_available;
    use stockade::compat::hawk::format_result;
    use stockade::compat::hawk::generate_seatbelt_profile;
    use stockade::compat::hawk::gvisor_available;
    use stockade::compat::hawk::gvisor_docker_args;
    use stockade::compat::hawk::landlock_available;
    use stockade::compat::hawk::mode_from_context;
    use stockade::compat::hawk::new_code_verifier;
    use stockade::compat::hawk::run_seatbelted;
    use stockade::compat::hawk::seatbelt_available;
    use stockade::compat::hawk::select_sandbox;
    use stockade::compat::hawk::wrap_command;
}

mod vtcode {
    use stockade::compat::vtcode::AdditionalPermissions;
    use stockade::compat::vtcode::BLOCKED_SYSCALLS;
    use stockade::compat::vtcode::CommandSpec;
    use stockade::compat::vtcode::DEFAULT_SENSITIVE_PATHS;
    use stockade::compat::vtcode::DebugSubcommand;
    use stockade::compat::vtcode::ExecEnv;
    use stockade::compat::vtcode::ExecExpiration;
    use stockade::compat::vtcode::FILTERED_ENV_VARS;
    use stockade::compat::vtcode::FILTERED_SYSCALLS;
    use stockade::compat::vtcode::NetworkAllowlistEntry;
    use stockade::compat::vtcode::PRESERVED_ENV_VARS;
    use stockade::compat::vtcode::ResourceLimits;
    use stockade::compat::vtcode::SandboxDebugResult;
    use stockade::compat::vtcode::SandboxManager;
    use stockade::compat::vtcode::SandboxPermissions;
    use stockade::compat::vtcode::SandboxPolicy;
    use stockade::compat::vtcode::SandboxTransformError;
    use stockade::compat::vtcode::SandboxType;
    use stockade::compat::vtcode::SeccompProfile;
    use stockade::compat::vtcode::SensitivePath;
    use stockade::compat::vtcode::VTCODE_SANDBOX_ACTIVE;
    use stockade::compat::vtcode::VTCODE_SANDBOX_NETWORK_DISABLED;
    use stockade::compat::vtcode::VTCODE_SANDBOX_TYPE;
    use stockade::compat::vtcode::VTCODE_SANDBOX_WRITABLE_ROOTS;
    use stockade::compat::vtcode::WritableRoot;
    use stockade::compat::vtcode::build_sanitized_env;
    use stockade::compat::vtcode::debug_sandbox;
    use stockade::compat::vtcode::default_sensitive_paths;
    use stockade::compat::vtcode::filter_sensitive_env;
    use stockade::compat::vtcode::sandbox_capabilities_summary;
    use stockade::compat::vtcode::setup_parent_death_signal;
    use stockade::compat::vtcode::should_filter_env_var;
    use stockade::compat::vtcode::test_network_blocked;
    use stockade::compat::vtcode::test_path_writable;
}

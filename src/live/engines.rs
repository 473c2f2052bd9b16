//! Which engines this build has.

use headway_runtime::engine::ServerKind;
use headway_shared::config::Config;

use crate::failure::Failure;

/// The engine of a policy in this process, of the feature `torch`.
pub(crate) const TCH: &str = "tch";

/// This build has the engines of a configuration, and they go together.
///
/// # Errors
/// Which one is not there, or what does not go with it.
pub(crate) fn check(config: &Config) -> Result<(), Failure> {
    let (serving, training) = (&config.policy_serving.engine, &config.policy_training.engine);
    engine("policy_serving", serving, &ServerKind::ALL.map(|(name, _)| name))?;
    engine("policy_training", training, &["megatron"])?;
    if serving == TCH && training != TCH {
        return Err(Failure::input(format!(
            "policy_serving.engine is \"{TCH}\" and policy_training.engine is \"{training}\": what \
             serves in this process takes weights from this process alone\nhelp: set \
             policy_training.engine to \"{TCH}\", too"
        )));
    }
    Ok(())
}

/// There is such an engine in this build; `others` are those that every build has.
fn engine(section: &str, name: &str, others: &[&str]) -> Result<(), Failure> {
    let has_tch = cfg!(feature = "torch");
    if others.contains(&name) || (has_tch && name == TCH) {
        return Ok(());
    }
    if name == TCH {
        return Err(Failure::input(format!(
            "{section}.engine: engine \"{TCH}\" needs a build with libtorch: run \
             scripts/libtorch.sh, then cargo build --release --features torch"
        )));
    }
    let all = others.iter().copied().chain(has_tch.then_some(TCH));
    let all: Vec<String> = all.map(|name| format!("\"{name}\"")).collect();
    Err(Failure::input(format!(
        "{section}.engine: there is no engine \"{name}\"\nhelp: there is {}",
        all.join(", ")
    )))
}

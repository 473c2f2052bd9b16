//! Which engines this build has.

use headway_runtime::engine::ServerKind;
use headway_shared::config::{Config, Diagnostic, Layers, nearest};

use crate::failure::Failure;

/// The engine of a policy in this process, of the feature `torch`.
pub(crate) const TCH: &str = "tch";

/// This build has the engines of a configuration, and they go together. `layers`: its texts.
///
/// # Errors
/// Which one is not there, or what does not go with it.
pub(crate) fn check(config: &Config, layers: &Layers) -> Result<(), Failure> {
    let (serving, training) = (&config.policy_serving.engine, &config.policy_training.engine);
    engine(layers, "policy_serving", serving, &ServerKind::ALL.map(|(name, _)| name))?;
    engine(layers, "policy_training", training, &["megatron"])?;
    if serving == TCH && training != TCH {
        return Err(wrong(
            layers,
            "policy_serving",
            &format!(
                "policy_serving.engine is \"{TCH}\" and policy_training.engine is \"{training}\": \
                 what serves in this process takes weights from this process alone"
            ),
            &format!("set policy_training.engine to \"{TCH}\", too"),
        ));
    }
    Ok(())
}

/// There is such an engine in this build; `others` are those that every build has.
fn engine(layers: &Layers, section: &str, name: &str, others: &[&str]) -> Result<(), Failure> {
    let has_tch = cfg!(feature = "torch");
    if others.contains(&name) || (has_tch && name == TCH) {
        return Ok(());
    }
    if name == TCH {
        let what = format!("engine \"{TCH}\" needs a build with libtorch");
        let help = "run scripts/libtorch.sh, then cargo build --release --features torch";
        return Err(wrong(layers, section, &what, help));
    }
    let all: Vec<&str> = others.iter().copied().chain(has_tch.then_some(TCH)).collect();
    let help = match nearest(name, &all) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => {
            let all: Vec<String> = all.iter().map(|name| format!("\"{name}\"")).collect();
            format!("write one of {}", all.join(", "))
        }
    };
    Err(wrong(layers, section, &format!("there is no engine \"{name}\""), &help))
}

/// Says it where the section names its engine.
fn wrong(layers: &Layers, section: &str, what: &str, help: &str) -> Failure {
    let key = format!("{section}.engine");
    let document = match layers.merge() {
        Ok(document) => document,
        Err(diagnostics) => return diagnostics.into(),
    };
    let Some(entry) = document.root.find(&key) else {
        return Failure::input(format!("{key}: {what}\nhelp: {help}"));
    };
    document.findings.push(Diagnostic::error(entry.node.origin, what).help(help));
    let (Ok(diagnostics) | Err(diagnostics)) = document.finish();
    diagnostics.into()
}

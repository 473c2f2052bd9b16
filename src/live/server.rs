//! Servers that serve a policy: each kind that there is.

use headway_runtime::clock::Clock;
use headway_runtime::engine::sglang::{self, SglangEngine};
use headway_runtime::engine::vllm::{self, VllmEngine};
use headway_runtime::engine::{self, EngineLink, NoModel};
use headway_runtime::secret::Secret;
use headway_runtime::shared::version::DeployVersion;
use headway_shared::id::ReplicaId;

use super::policy::COMMAND_ROOM;

/// A kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sglang,
    Vllm,
}

impl Kind {
    /// All, by their names in `policy_serving.engine`.
    pub(crate) const ALL: [(&str, Self); 2] = [("sglang", Self::Sglang), ("vllm", Self::Vllm)];

    /// The one of this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(other, _)| *other == name).map(|(_, kind)| kind)
    }

    /// The model that a server was started with.
    pub(super) async fn served_model(
        self,
        url: &str,
        key: Option<Secret>,
    ) -> Result<String, NoModel> {
        match self {
            Self::Sglang => sglang::served_model(url, key).await,
            Self::Vllm => vllm::served_model(url, key).await,
        }
    }

    /// Starts what speaks with a server.
    pub(super) fn spawn(
        self,
        replica: ReplicaId,
        clock: Clock,
        url: &str,
        key: Option<Secret>,
        newest: DeployVersion,
    ) -> std::io::Result<EngineLink> {
        match self {
            Self::Sglang => {
                engine::spawn(replica, clock, COMMAND_ROOM, SglangEngine::new(url, key, newest))
            }
            Self::Vllm => {
                engine::spawn(replica, clock, COMMAND_ROOM, VllmEngine::new(url, key, newest))
            }
        }
    }
}

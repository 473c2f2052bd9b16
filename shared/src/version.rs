//! Three roles of one version number, as three types that do not mix.
//!
//! A weight version is the number of train steps that made it. It plays three roles: the policy
//! that generated a token ([`RolloutVersion`]), the parameters being updated ([`LearnerVersion`]),
//! and the parameters a serving replica now holds ([`DeployVersion`]). Differences between roles
//! have names; there is no other way to subtract them:
//!
//! | difference | name |
//! |---|---|
//! | learner - rollout | [staleness](LearnerVersion::staleness_of) |
//! | learner - deploy | [publish lag](LearnerVersion::publish_lag_of) |
//! | deploy - rollout | [serving skew](DeployVersion::skew_of) |
//!
//! ```compile_fail,E0308
//! use headway_shared::version::{DeployVersion, LearnerVersion};
//! let learner = LearnerVersion::new(5);
//! // A deploy version is no rollout version: this does not compile.
//! learner.staleness_of(DeployVersion::new(3));
//! ```
//!
//! ```compile_fail,E0308
//! use headway_shared::version::{LearnerVersion, RolloutVersion};
//! // Nor can two roles be compared.
//! assert!(LearnerVersion::new(1) == RolloutVersion::new(1));
//! ```
//!
//! ```
//! use headway_shared::version::{DeployVersion, LearnerVersion, RolloutVersion};
//! let learner = LearnerVersion::new(5);
//! let deploy = DeployVersion::of(LearnerVersion::new(4));
//! let rollout = RolloutVersion::stamped_by(deploy);
//! assert_eq!(learner.staleness_of(rollout), Some(1));
//! assert_eq!(learner.staleness_of(RolloutVersion::new(6)), None, "negative is an error");
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! role {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(u32);

        impl $name {
            /// The version with this number.
            #[must_use]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The number of train steps that made this version.
            #[must_use]
            pub const fn number(self) -> u32 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

role! {
    /// The policy that generated a token (`pi_rollout`). Stamped once, by the engine that
    /// generated the token, and only read after that.
    RolloutVersion, "r"
}
role! {
    /// The parameters being updated (`pi_learner`): the number of finished train steps.
    LearnerVersion, "l"
}
role! {
    /// The parameters that a serving replica now holds (`pi_deploy`); replicas can differ.
    DeployVersion, "d"
}

impl LearnerVersion {
    /// The version after one more train step.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Staleness of a token of version `rollout`, in learner versions; `None` if it would be
    /// negative, which is an error: no policy generates before it exists.
    #[must_use]
    pub const fn staleness_of(self, rollout: RolloutVersion) -> Option<u32> {
        self.0.checked_sub(rollout.0)
    }

    /// How many versions a replica at `deploy` is behind; `None` if it is ahead (an error).
    #[must_use]
    pub const fn publish_lag_of(self, deploy: DeployVersion) -> Option<u32> {
        self.0.checked_sub(deploy.0)
    }

    /// How many versions passed since `earlier`; zero if it is not earlier.
    #[must_use]
    pub const fn steps_since(self, earlier: LearnerVersion) -> u32 {
        self.0.saturating_sub(earlier.0)
    }
}

impl DeployVersion {
    /// The deployed copy of the learner's version.
    #[must_use]
    pub const fn of(learner: LearnerVersion) -> Self {
        Self(learner.0)
    }

    /// Serving skew: how much newer the replica is than the token; `None` if it is older.
    #[must_use]
    pub const fn skew_of(self, rollout: RolloutVersion) -> Option<u32> {
        self.0.checked_sub(rollout.0)
    }
}

impl RolloutVersion {
    /// The stamp of an engine that holds `deploy`.
    #[must_use]
    pub const fn stamped_by(deploy: DeployVersion) -> Self {
        Self(deploy.0)
    }
}

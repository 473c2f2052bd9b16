//! What the loops of a world take of a cluster, and how `[plan]` says to split one.

use crate::plan::constraint::Constraint;

/// GPUs by loop, as `[world]` says. None of it changes what a run does: it is what `headway plan`
/// counts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// GPUs of one serving replica.
    pub serving_gpus: u32,
    /// GPUs of one judge replica; 0: the judge is an endpoint elsewhere.
    pub judge_gpus: u32,
    /// Judge replicas that the scenario has, each with its `quota`.
    pub judge_replicas: u32,
}

impl Default for Resources {
    fn default() -> Self {
        Self { serving_gpus: 1, judge_gpus: 0, judge_replicas: 1 }
    }
}

/// How serving and training share a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    /// Each on GPUs of its own.
    Disaggregated,
    /// Both on the same GPUs at the same time, each slower while a train step runs.
    Colocated,
    /// All GPUs serve, then all train: synchronous.
    TimeShared,
}

impl Layout {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Disaggregated, Self::Colocated, Self::TimeShared];

    /// Its name in files and tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Disaggregated => "disaggregated",
            Self::Colocated => "colocated",
            Self::TimeShared => "time_shared",
        }
    }
}

/// `[plan]`
#[derive(Clone, Debug, PartialEq)]
pub struct PlanSettings {
    /// Layouts that are tried.
    pub layouts: Vec<Layout>,
    /// The trainer takes multiples of so many GPUs.
    pub gpus_multiple: u32,
    /// The trainer does not fit on fewer.
    pub min_trainer_gpus: u32,
    /// What a split must keep.
    pub constraints: Vec<Constraint>,
    /// What is tried at each split, each as `key=values`.
    pub over: Vec<String>,
    /// Price of a GPU for an hour; 0: costs are in GPU-hours.
    pub price_per_gpu_hour: f64,
    /// Speed of serving and of training while both work on the same GPUs, as a share of the full
    /// speed; `None`: not said, and `colocated` is not tried.
    pub colocated_speed: Option<f64>,
    /// Speed of training where GPUs are shared in time, as a share of the full speed.
    pub time_shared_speed: f64,
    /// What one change between serving and training costs where they share time, in seconds.
    pub switch_sec: f64,
    /// `max_concurrent_rollouts` is so many times the serving replicas; 0: as the scenario has it.
    pub rollouts_per_replica: u32,
}

impl PlanSettings {
    /// The fewest GPUs that a trainer takes.
    #[must_use]
    pub fn least_trainer_gpus(&self) -> u32 {
        self.min_trainer_gpus.max(1).next_multiple_of(self.gpus_multiple)
    }
}

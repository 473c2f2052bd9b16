//! What each system calls what.

/// A trainer whose logs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// verl, synchronous, one step off or fully asynchronous.
    Verl,
    /// slime, and what is made of it.
    Slime,
    /// AReaL.
    Areal,
}

/// How a column comes out of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The first of these that is there.
    First(&'static [&'static str]),
    /// This one, and those of the others that are there.
    Sum {
        /// Without it there is no value.
        needs: &'static str,
        /// What else there may be.
        with: &'static [&'static str],
    },
    /// The first less the second.
    Difference(&'static str, &'static str),
}

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub struct MetricColumn {
    /// Its name.
    pub name: &'static str,
    /// It is a count, written as a whole number.
    pub whole: bool,
    /// Where it comes from. A `*` at the beginning stands for any scopes.
    pub how: How,
}

const fn column(name: &'static str, how: How) -> MetricColumn {
    MetricColumn { name, whole: false, how }
}

const fn count(name: &'static str, how: How) -> MetricColumn {
    MetricColumn { name, whole: true, how }
}

const VERL: &[MetricColumn] = &[
    column("rollout_sec", How::First(&["timing_s/gen"])),
    column(
        "step_sec",
        How::Sum {
            needs: "timing_s/update_actor",
            with: &[
                "timing_s/old_log_prob",
                "timing_s/ref",
                "timing_s/values",
                "timing_s/adv",
                "timing_s/update_critic",
            ],
        },
    ),
    column("update_sec", How::First(&["timing_s/update_actor"])),
    column(
        "transfer_sec",
        How::First(&[
            "timing_s/param_sync",
            "timing_s/update_weights",
            "timing_s/sync_rollout_weights",
        ]),
    ),
    column("reward_sec", How::First(&["timing_s/reward"])),
    column("environment_sec", How::First(&["timing_s/agent_loop/tool_calls/mean"])),
    column("sample_sec", How::First(&["fully_async/processing_time/avg"])),
    column("checkpoint_sec", How::First(&["timing_s/save_checkpoint"])),
    column("eval_sec", How::First(&["timing_s/testing"])),
    column("iteration_sec", How::First(&["timing_s/step"])),
    count("prompt_tokens", How::First(&["prompt_length/mean"])),
    count("output_tokens", How::First(&["response_length/mean"])),
    count("version", How::First(&["fully_async/count/current_param_version"])),
];

const SLIME: &[MetricColumn] = &[
    column("rollout_sec", How::First(&["perf/rollout_time"])),
    column("step_sec", How::First(&["perf/train_time"])),
    column("update_sec", How::First(&["perf/actor_train_time"])),
    column("transfer_sec", How::First(&["perf/update_weights_time"])),
    column("checkpoint_sec", How::First(&["perf/save_model_time"])),
    column("iteration_sec", How::First(&["perf/step_time"])),
    count("output_tokens", How::First(&["rollout/response_len/mean"])),
    column("logprob_abs_diff", How::First(&["train/train_rollout_logprob_abs_diff"])),
];

const AREAL: &[MetricColumn] = &[
    column("rollout_sec", How::First(&["timeperf/rollout"])),
    column(
        "step_sec",
        How::Sum {
            needs: "timeperf/train_step",
            with: &[
                "timeperf/critic_values",
                "timeperf/ref_logp",
                "timeperf/teacher_logp",
                "timeperf/recompute_logp",
                "timeperf/compute_advantage",
                "timeperf/critic_train_step",
            ],
        },
    ),
    column("update_sec", How::First(&["timeperf/train_step"])),
    column("transfer_sec", How::First(&["timeperf/update_weights"])),
    column("checkpoint_sec", How::First(&["timeperf/save"])),
    column("eval_sec", How::First(&["timeperf/eval"])),
    count("prompt_tokens", How::First(&["ppo_actor/prompt_len/avg"])),
    count("output_tokens", How::Difference("ppo_actor/seq_len/avg", "ppo_actor/prompt_len/avg")),
    column("staleness_mean", How::First(&["*/version_stats/sample_staleness_theta_avg"])),
    column("staleness_max", How::First(&["*/version_stats/sample_staleness_theta_max"])),
    count("version", How::First(&["*/version_stats/v_theta"])),
];

impl System {
    /// What it is called on a command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Verl => "verl",
            Self::Slime => "slime",
            Self::Areal => "areal",
        }
    }

    /// The columns that its logs may have, in the order of the table.
    #[must_use]
    pub const fn columns(self) -> &'static [MetricColumn] {
        match self {
            Self::Verl => VERL,
            Self::Slime => SLIME,
            Self::Areal => AREAL,
        }
    }

    /// What may number the steps, the best first.
    pub(super) const fn steps(self) -> &'static [&'static str] {
        match self {
            Self::Verl => &["step", "training/global_step", "Step", "_step"],
            // wandb's own counter counts calls here, of which a rollout has several.
            Self::Slime => &["rollout/step", "train/step", "Step"],
            Self::Areal => &["global_step", "step", "Step", "_step"],
        }
    }

    /// The metrics that its columns are made of.
    pub(super) fn metrics(self) -> impl Iterator<Item = &'static str> {
        self.columns().iter().flat_map(|column| column.how.names())
    }

    /// A column is made of this metric.
    pub(super) fn knows(self, name: &str) -> bool {
        self.metrics().any(|metric| is(metric, name))
    }
}

impl How {
    /// The metrics that it reads.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let (some, more): (&[&str], [Option<&'static str>; 2]) = match self {
            Self::First(names) => (names, [None, None]),
            Self::Sum { needs, with } => (with, [Some(needs), None]),
            Self::Difference(all, part) => (&[], [Some(all), Some(part)]),
        };
        more.into_iter().flatten().chain(some.iter().copied())
    }
}

/// This is the metric that is meant.
pub(super) fn is(metric: &str, name: &str) -> bool {
    match metric.strip_prefix('*') {
        Some(end) => name.ends_with(end) || name == &end[1..],
        None => name == metric,
    }
}

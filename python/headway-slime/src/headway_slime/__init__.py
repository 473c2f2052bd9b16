"""slime trains, Headway schedules.

`--rollout-function-path headway_slime.generate_rollout` and `--data-source-path headway_slime.DataSource` put
Headway in the place of slime's own rollouts. The README has the arguments that slime needs with them.
"""

from headway_slime.client import (
    Client,
    Conflict,
    Correction,
    HeadwayError,
    LeaseLost,
    OtherBatch,
    OtherVersion,
    Refused,
    SaveTask,
    State,
    TrainSample,
    TrainTask,
    Unreachable,
)
from headway_slime.metrics import measure
from headway_slime.rollout import DataSource, OutOfStep, WrongArguments, generate_rollout

__all__ = [
    "Client",
    "Conflict",
    "Correction",
    "DataSource",
    "HeadwayError",
    "LeaseLost",
    "OtherBatch",
    "OtherVersion",
    "OutOfStep",
    "Refused",
    "SaveTask",
    "State",
    "TrainSample",
    "TrainTask",
    "Unreachable",
    "WrongArguments",
    "generate_rollout",
    "measure",
]

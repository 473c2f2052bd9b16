"""The pipeline of benches/slots.toml on simpy: pipeline.py SLOTS BATCH ETA SAMPLES.

Slots generate, a judge scores, a queue holds what is scored, a trainer takes batches, and a gate
holds a slot back while too much is outstanding. Log-normal lengths, exponential votes and steps of
constant length, as there. A sample keeps when it went through each stage and under which version,
from which staleness and its parts are summed up. It does less than Headway: there are no replicas
and no weights to load, and of 100 metrics it has seven.
"""

import json
import math
import random
import sys
import time

import simpy

TOKEN_SEC = 0.02
MEDIAN = 800
SIGMA = math.log(4000 / 800) / 2.3263478740408408
STEP_SEC = 5


class Run:
    def __init__(self, slots, batch, eta, samples):
        self.env = simpy.Environment()
        self.random = random.Random(1)
        self.batch = batch
        self.samples = samples
        self.gate = simpy.Container(self.env, capacity=(eta + 1) * batch, init=(eta + 1) * batch)
        self.judge = simpy.Resource(self.env, capacity=1_000_000)
        self.output = simpy.Store(self.env)
        self.version = 0
        self.trained = 0
        self.parts = [[0, 0] for _ in range(4)]
        self.done = self.env.event()
        for _ in range(slots):
            self.env.process(self.slot())
        self.env.process(self.trainer())

    def stamp(self, sample):
        sample.append((self.env.now, self.version))

    def slot(self):
        env, draw = self.env, self.random
        mean = math.log(MEDIAN)
        while True:
            yield self.gate.get(1)
            sample = []
            self.stamp(sample)
            yield env.timeout(max(1, round(draw.lognormvariate(mean, SIGMA))) * TOKEN_SEC)
            self.stamp(sample)
            env.process(self.judged(sample))

    def judged(self, sample):
        with self.judge.request() as place:
            yield place
            self.stamp(sample)
            yield self.env.timeout(self.random.expovariate(1))
        self.stamp(sample)
        yield self.output.put(sample)

    def trainer(self):
        parts = self.parts
        while True:
            batch = []
            while len(batch) < self.batch:
                batch.append((yield self.output.get()))
            for sample in batch:
                self.stamp(sample)
            yield self.env.timeout(STEP_SEC)
            for sample in batch:
                for stage in range(4):
                    (began, before), (ended, after) = sample[stage], sample[stage + 1]
                    parts[stage][0] += ended - began
                    parts[stage][1] += after - before
            self.version += 1
            self.trained += self.batch
            yield self.gate.put(self.batch)
            if self.trained >= self.samples:
                self.done.succeed()
                return


if __name__ == "__main__":
    run = Run(*(int(word) for word in sys.argv[1:]))
    began = time.process_time()
    run.env.run(run.done)
    taken = time.process_time() - began
    print(json.dumps({
        "trained": run.trained,
        "simulated_sec": run.env.now,
        "staleness_mean": sum(versions for _, versions in run.parts) / run.trained,
        "cpu_sec": taken,
    }))

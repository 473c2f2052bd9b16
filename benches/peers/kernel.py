"""The kernel benchmark's models on simpy: kernel.py MODEL EVENTS.

Events are timeouts with callbacks: simpy's fastest form, without processes.
"""

import json
import math
import random
import sys
import time

import simpy

DRAWS = 1 << 16
SERVERS = 64
CUSTOMERS = 1024
THINK = 20


def run(model, events):
    env = simpy.Environment()
    timeout = simpy.Timeout
    rng = random.Random(1)
    draws = [-math.log((cell + 0.5) / DRAWS) for cell in range(DRAWS)]
    rng.shuffle(draws)
    targets = [rng.randrange(SERVERS) for _ in range(DRAWS)]
    waiting = [0] * SERVERS
    place = 0
    left = events
    served = 0

    def draw():
        nonlocal place
        place = (place + 1) % DRAWS
        return draws[place]

    def later(delay, callback, value=None):
        timeout(env, delay, value).callbacks.append(callback)

    def come(server):
        waiting[server] += 1
        if waiting[server] == 1:
            later(draw(), on_served, server)

    def on_served(event):
        nonlocal left, served
        if left == 0:
            return
        left -= 1
        served += 1
        server = event.value
        waiting[server] -= 1
        if waiting[server] > 0:
            later(draw(), on_served, server)
        if model == "network":
            later(THINK * draw(), on_come)

    def on_come(_event):
        nonlocal left
        if left == 0:
            return
        left -= 1
        if model == "queue":
            later(1.25 * draw(), on_come)
            come(0)
        else:
            draw()
            come(targets[place])

    if model == "queue":
        later(0, on_come)
    else:
        for _ in range(CUSTOMERS):
            later(THINK * draw(), on_come)
    began = time.process_time()
    env.run()
    return {"events": events, "served": served, "cpu_sec": time.process_time() - began}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))

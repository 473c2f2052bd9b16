#!/usr/bin/env python3
"""A judge for rehearsals: an OpenAI-compatible endpoint that grades turns of the task `lookup`, and
takes a given time for it. It needs nothing but Python.

    python3 scripts/rehearsal_judge.py --port 30100 --median-sec 0.05 --p99-sec 0.2 --log votes.csv

A vote takes a log-normal time. It is 1 with the probability that is the share of right characters, else
0: a policy that knows nothing is right here and there. `--log` writes a row for each vote, with its
seconds.
"""

import argparse
import asyncio
import hashlib
import json
import math
import random
import statistics


def grade(shown):
    """The share of characters that are right, from the text that Headway shows a judge."""
    conversation, _, turn = shown.partition("[the assistant's turn]\n")
    answer = turn.partition("\n\n[what followed]")[0]
    role, _, said = conversation.strip().rpartition("[")[2].partition("]\n")
    right = "?" + said.strip() if role == "user" else said.strip()
    return sum(a == b for a, b in zip(answer, right)) / max(len(right), 1)


class Judge:
    def __init__(self, options):
        self.options = options
        quantile = statistics.NormalDist().inv_cdf(0.99)
        spread = options.p99_sec / options.median_sec
        self.sigma = math.log(spread) / quantile
        self.votes = 0

    def vote(self, question):
        self.votes += 1
        key = hashlib.sha256(f"{self.options.seed}/{self.votes}/{question}".encode()).digest()
        luck = random.Random(key)
        seconds = self.options.median_sec * luck.lognormvariate(0.0, self.sigma)
        return seconds, int(luck.random() < grade(question))

    async def serve(self, reader, writer):
        loop = asyncio.get_running_loop()
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                began = loop.time()
                fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:-2])
                body = json.loads(await reader.readexactly(int(fields.get(b"content-length", 0))))
                seconds, vote = self.vote(body["messages"][-1]["content"])
                await asyncio.sleep(seconds - (loop.time() - began))
                answer = {
                    "choices": [{"message": {"role": "assistant", "content": f"\\boxed{{{vote}}}"}}],
                    "usage": {"total_tokens": 0},
                }
                text = json.dumps(answer).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    + f"Content-Length: {len(text)}\r\n\r\n".encode()
                    + text
                )
                await writer.drain()
                if self.options.log:
                    self.options.log.write(f"{loop.time() - began:.6f},{vote}\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=30100)
    parser.add_argument("--median-sec", type=float, default=0.05)
    parser.add_argument("--p99-sec", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=argparse.FileType("w", bufsize=1), help="a CSV file: vote_sec,vote")
    options = parser.parse_args()
    if options.log:
        options.log.write("vote_sec,vote\n")
    server = await asyncio.start_server(Judge(options).serve, "127.0.0.1", options.port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass

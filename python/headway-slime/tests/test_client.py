"""The client against a gateway that answers well, badly and not at all."""

import socket
import unittest
from typing import Any

from headway_slime import Client, LeaseLost, OtherBatch, OtherVersion, Refused, SaveTask, TrainTask, Unreachable
from headway_slime.heartbeat import Heartbeat
from tests.gateway import Answer, Gateway, error, task


class ClientTest(unittest.TestCase):
    def gateway(self, **answers: list[Answer]) -> tuple[Gateway, Client]:
        gateway = Gateway(**answers)
        self.addCleanup(gateway.close)
        self.pauses: list[float] = []
        return gateway, Client(gateway.url + "/", "secret", "node-0", sleep=self.pauses.append)

    def test_a_task_is_read_with_all_its_parts(self) -> None:
        gateway, client = self.gateway(pull=[(200, task(3, deploy_version=None))])
        found = client.pull(3, wait_sec=5)
        assert isinstance(found, TrainTask)
        self.assertEqual((found.version, found.batch, found.deploy_version), (3, "b0", None))
        self.assertEqual((found.correction.name, found.correction.low), ("ppo_clip", 0.8))
        self.assertEqual(found.samples[0].rollout_log_probs, [0.0, 0.0, -0.5, -0.25])
        self.assertEqual(gateway.asked, [("pull", {"trainer": "node-0", "version": 3, "wait_sec": 5})])
        self.assertEqual(gateway.tokens, ["Bearer secret"])

    def test_no_task_is_none_and_weights_are_asked_for(self) -> None:
        save = {"task": "save", "version": 4, "lease": "save-1", "lease_sec": 600.0}
        _, client = self.gateway(pull=[(204, None), (200, save)])
        self.assertIsNone(client.pull())
        self.assertEqual(client.pull(), SaveTask(version=4, lease="save-1", lease_sec=600.0))

    def test_what_may_pass_is_tried_again_and_retry_after_is_heeded(self) -> None:
        gateway, client = self.gateway(
            report=[error(503, "ended"), error(429, "busy"), (502, b"<html>"), (200, b"{"), (200, {"counted": True})]
        )
        self.assertTrue(client.report(0, "b0", "l", metrics={"loss": 0.5}, weights="/w"))
        self.assertEqual(len(set(map(str, gateway.bodies("report")))), 1, "the same call each time")
        self.assertEqual(self.pauses, [0.5, 7.0, 2.0, 4.0])

    def test_conflicts_are_not_tried_again(self) -> None:
        for code, kind in [("lease_lost", LeaseLost), ("other_batch", OtherBatch), ("other_version", OtherVersion)]:
            gateway, client = self.gateway(pull=[error(409, code, "load version 7")])
            with self.assertRaisesRegex(kind, "load version 7"):
                client.pull(1)
            self.assertEqual(len(gateway.asked), 1)

    def test_a_wrong_token_and_a_wrong_call_end_at_once(self) -> None:
        for status in (400, 401, 404):
            gateway, client = self.gateway(pull=[error(status, "x", "because")])
            with self.assertRaisesRegex(Refused, "because"):
                client.pull()
            self.assertEqual(len(gateway.asked), 1)

    def test_answers_that_are_not_of_this_api_are_refused(self) -> None:
        short = task()
        short["samples"][1]["loss_mask"] = [0, 1]
        wrong: list[Any] = [[], 3, {"task": "train"}, {**task(), "task": "dance"}, {**task(), "samples": []}, short]
        for key in ("version", "batch", "lease", "lease_sec", "updates", "correction"):
            wrong += [{**task(), key: None}, {**task(), key: [True]}]
        for key in ("id", "tokens", "loss_mask", "rollout_log_probs", "versions", "reward"):
            broken = task()
            broken["samples"][2][key] = {"x": 1}
            wrong.append(broken)
        for said in wrong:
            _, client = self.gateway(pull=[(200, said)])
            with self.subTest(said=said), self.assertRaises(Refused):
                client.pull()

    def test_a_gateway_that_is_not_there_is_waited_for_and_then_named(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        pauses: list[float] = []
        client = Client(f"http://127.0.0.1:{port}", "t", "x", patience_sec=3.0, sleep=pauses.append)
        with self.assertRaisesRegex(Unreachable, f"127.0.0.1:{port}/trainer/state"):
            # The pauses pass in no time here: the one that would not fit ends the attempts.
            client.state()
        self.assertEqual(pauses, [0.5, 1.0, 2.0])

    def test_state_names_the_newest_weights(self) -> None:
        _, client = self.gateway(
            state=[
                (200, {"version": 2, "weights": {"version": 1, "path": "/w"}, "step": True, "leased": None}),
                (200, {"version": 0, "weights": None, "step": False, "leased": None}),
            ]
        )
        self.assertEqual(client.state().weights, (1, "/w"))
        self.assertIsNone(client.state().weights)

    def test_heartbeats_go_on_until_the_lease_is_lost(self) -> None:
        gateway, client = self.gateway(
            heartbeat=[(200, {"lease_sec": 0.03}), error(503, "ended"), (200, {"lease_sec": 0.03}), error(409, "lease_lost")]
        )
        with self.assertLogs("headway_slime", "WARNING") as said:
            heartbeat = Heartbeat(client, "train-1", 0.03)
            heartbeat._thread.join(20)
        self.assertFalse(heartbeat._thread.is_alive(), "a lost lease needs no more beats")
        self.assertEqual([body["lease"] for body in gateway.bodies("heartbeat")], ["train-1"] * 4)
        self.assertEqual([record.levelname for record in said.records], ["WARNING", "ERROR"])

    def test_heartbeats_end_when_they_are_told_to(self) -> None:
        gateway, client = self.gateway(heartbeat=[(200, {"lease_sec": 60.0})])
        heartbeat = Heartbeat(client, "train-1", 60.0)
        heartbeat.stop()
        heartbeat._thread.join(20)
        self.assertFalse(heartbeat._thread.is_alive())
        self.assertEqual(gateway.asked, [])


if __name__ == "__main__":
    unittest.main()

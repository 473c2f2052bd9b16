"""The dashboard in a browser: `dashboard.py BASE_URL TOKEN BROWSER`.

The Rust test starts the run in a process of its own. Where this program prints `kill` or `start`, that test does so with the
run, and answers with a line. What is wrong here ends the program with a traceback. HEADWAY_TEST_SHOTS names a folder for
pictures of the page.
"""

import json
import os
import sys
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

BASE, TOKEN, BROWSER = sys.argv[1:]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
SHOTS = os.environ.get("HEADWAY_TEST_SHOTS")


def http(path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(BASE + path, data, {"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return response.read().decode()


def state():
    return json.loads(http("/admin/state"))


def metrics():
    lines = (line.rsplit(" ", 1) for line in http("/metrics").splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def outside(order):
    print(order, flush=True)
    assert sys.stdin.readline().strip() == "done", order


def play(page, name, count):
    """So many sessions of a turn, and the steps that they make."""
    before = state()["learner_version"]
    for number in range(count):
        text = f"hello {number}"
        http(
            "/v1/chat/completions",
            {
                "messages": [{"role": "user", "content": text}],
                "session_id": f"{name}-{number}",
                "turn_type": "main",
                "metadata": {"answer": text if number % 3 else "another"},
            },
        )
    version = page.locator('[data-field="state.learner_version"]')
    expect(version).to_have_text(str(before + count // 2), timeout=20_000)
    # The replica loads them, and then nothing moves any more.
    expect(page.locator("#replicas li")).to_have_text(f"replica 0 v{before + count // 2}", timeout=20_000)


def seen(page):
    return int(page.locator("#run").get_attribute("data-seen"))


def fresh(page):
    """Waits until everything on the page is from after this call."""
    # Not by a function: the page's policy lets no text become code.
    page.wait_for_selector(f"xpath=//main[@data-seen >= {seen(page) + 2}]")


def raw(page):
    found = page.eval_on_selector_all("[data-field]", "all => all.map(e => [e.dataset.field, e.dataset.raw, e.textContent])")
    assert len(found) > 25, found
    return found


def values(page):
    """What the page shows is what the admin API and the metrics say."""
    before, numbers = state(), metrics()
    fresh(page)
    shown = raw(page)
    after, later = state(), metrics()
    for field, value, text in shown:
        assert text, field
        kind, _, rest = field.partition(".")
        if kind == "state":
            expected = before
            again = after
            for name in rest.split("."):
                expected, again = expected[name], again[name]
            assert expected == again and value == str(expected), (field, value, expected, again)
        elif kind == "metrics" and value:
            ends = sorted([numbers[f"headway_run_{rest}"], later[f"headway_run_{rest}"]])
            assert ends[0] - 1e-9 <= float(value) <= ends[1] + 1e-9, (field, value, ends)
    by_name = {field: value for field, value, _ in shown}
    assert float(by_name["trained"]) == numbers["headway_trained_total"] > 0
    assert float(by_name["steps_total"]) == numbers["headway_steps_total"]
    refused = {429: ["stale", "queue_full", "concurrency", "hold_expired"], 503: ["weight_sync", "no_replica", "paused", "ended"]}
    for code, reasons in refused.items():
        counted = sum(numbers[f'headway_refused_total{{reason="{reason}"}}'] for reason in reasons)
        assert float(by_name[f"refused.{code}"]) == counted, (code, counted)
    replicas = page.locator("#replicas li").all_text_contents()
    assert replicas == [f"replica 0 v{after['learner_version']}"], replicas


def bars(page, refused):
    """The bars say that so many requests got a 503, whenever the page was opened."""
    said = f"In the last ten minutes: 0 answers with 429, {refused} with 503."
    expect(page.locator("#c-refused")).to_have_attribute("aria-label", said)
    assert page.locator("#c-refused rect.r503").count() == min(refused, 1)


def refuse():
    http("/admin/pause", {})
    turn = {"messages": [{"role": "user", "content": "hello"}], "session_id": "refused", "turn_type": "main"}
    try:
        http("/v1/chat/completions", turn)
        raise AssertionError("it was served")
    except urllib.error.HTTPError as error:
        assert error.code == 503, error
    http("/admin/resume", {})


def points(page, chart):
    line = page.locator(f"#{chart} polyline").first.get_attribute("points")
    return len(line.split())


def looks(page, name):
    for scheme in ["light", "dark"]:
        page.emulate_media(color_scheme=scheme)
        for width in [1280, 390]:
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{name} is {wide} wide at {width}"
            if SHOTS:
                if page.locator("#run").is_visible():
                    fresh(page)
                page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 900})


def quiet(page):
    """Ticks are not announced: the live region changes where the state does."""
    page.evaluate(
        """() => {
            window.announced = 0;
            new MutationObserver(() => { window.announced += 1; })
                .observe(document.getElementById('status'), {childList: true, characterData: true, subtree: true});
        }"""
    )
    fresh(page)
    assert page.evaluate("window.announced") == 0
    live = page.eval_on_selector_all("[aria-live], [role=status], [role=alert], output", "all => all.map(e => e.id)")
    assert live == ["status", "wrong"], live
    unnamed = page.eval_on_selector_all("svg[role=img]:not([aria-label])", "all => all.map(e => e.id)")
    assert not unnamed, unnamed
    http("/admin/pause", {})
    expect(page.locator("#status")).to_have_text("an operator has paused the run")
    http("/admin/resume", {})
    expect(page.locator("#status")).to_have_text("running")
    assert page.evaluate("window.announced") == 2


def main():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(20_000)
        errors, asked = [], []
        page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))

        page.goto(f"{BASE}/dashboard")
        looks(page, "login")
        expect(page.get_by_label("Admin token")).to_be_focused()
        assert errors == [], errors
        page.keyboard.type("another")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("That is not the token of this run.")
        expect(page.locator("#run")).to_be_hidden()
        # The browser itself says that a request got a 401; nothing else may be said.
        assert len(errors) == 1 and "401" in errors[0], errors
        errors.clear()

        expect(page.get_by_label("Admin token")).to_be_focused()
        page.keyboard.type(TOKEN)
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_have_text("running")
        expect(page.locator("#c-reward")).to_contain_text("no step yet")
        play(page, "one", 8)
        assert points(page, "c-reward") == 4
        values(page)
        quiet(page)
        looks(page, "run")
        refuse()
        bars(page, 1)
        page.reload()
        bars(page, 1)
        assert errors == [], errors

        outside("kill")
        expect(page.locator("#status")).to_contain_text("disconnected since", timeout=30_000)
        assert points(page, "c-reward") == 4, "what was known stays"
        looks_gone = page.locator("#run").get_attribute("class")
        assert looks_gone == "old", looks_gone
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/gone.png", full_page=True)
        outside("start")
        expect(page.locator("#status")).to_have_text("running", timeout=30_000)
        assert page.locator("#run").get_attribute("class") == ""
        assert points(page, "c-reward") == 4, "the record knows them"
        fresh(page)
        bars(page, 1)
        play(page, "two", 4)
        assert points(page, "c-reward") == 6
        # What the browser itself says of connections that are refused meanwhile.
        others = [error for error in errors if "net::ERR_" not in error]
        assert others == [], others
        errors.clear()

        # The tab keeps the token, and another page of the same run has the whole history.
        page.reload()
        expect(page.locator("#status")).to_have_text("running")
        page.wait_for_selector("#c-reward polyline")
        assert points(page, "c-reward") == 6
        bars(page, 0)
        values(page)
        page.get_by_role("button", name="Forget the token").click()
        expect(page.get_by_label("Admin token")).to_be_visible()
        page.reload()
        expect(page.get_by_label("Admin token")).to_be_visible()
        assert errors == [], errors
        elsewhere = [url for url in asked if not url.startswith((BASE, "data:"))]
        assert elsewhere == [], elsewhere
        assert not any(TOKEN in url for url in asked), "the token stands in no address"
        browser.close()


main()

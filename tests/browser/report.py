"""Every report.html of a folder in a headless Chromium: report.py BROWSER FOLDER.

Prints what is wrong, a line each; exit code 1 if anything is. HEADWAY_TEST_SHOTS names a folder for pictures of the pages.
"""

import csv
import os
import pathlib
import sys

from playwright.sync_api import sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

SHOTS = os.environ.get("HEADWAY_TEST_SHOTS")

# The table of each page, and the file whose numbers it has.
TABLES = {
    "sweep": ("The points of the sweep", "sweep.csv"),
    "tune": ("What was tried", "candidates.csv"),
    "plan": ("The splits that were simulated", "plan.csv"),
    "validate": ("Predicted and measured", "validation.csv"),
    "tournament": ("Every row of small", "tournament.csv"),
}

# Colours of text, and of what is drawn; what each needs beside the ground.
CONTRASTS = [(["--ink", "--soft", "--link"], 4.5), ([f"--c{n}" for n in range(4)] + ["--ref"], 3.0)]
CONTRASTS.append(([f"--k{n}" for n in range(7)], 3.0))

COLOURS = """(names) => {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(name).trim()]));
}"""

COLUMNS = """(table) => [...table.tHead.rows[0].cells].map((head, at) => [
  (head.title || head.textContent).split(/[:,]/)[0].trim(),
  [...table.tBodies[0].rows].map((row) => row.cells[at].dataset.v ?? row.cells[at].textContent.trim()),
])"""

# What is wrong with the texts of a drawing: too small, outside of it, or on another.
TEXTS = """(svg) => {
  const whole = svg.getBoundingClientRect();
  const scale = whole.width / svg.viewBox.baseVal.width;
  const boxes = [...svg.querySelectorAll('text')].filter((text) => text.textContent)
    .map((text) => [text.textContent, text.getBoundingClientRect(), parseFloat(getComputedStyle(text).fontSize) * scale]);
  const found = [];
  boxes.forEach(([name, box, size], at) => {
    if (size < 11) found.push(`${name} is ${size.toFixed(1)} px high`);
    if (box.left < whole.left - 1 || box.right > whole.right + 1 || box.top < whole.top - 1 || box.bottom > whole.bottom + 1) {
      found.push(`${name} leaves it`);
    }
    for (const [other, there] of boxes.slice(at + 1)) {
      const wide = Math.min(box.right, there.right) - Math.max(box.left, there.left);
      const high = Math.min(box.bottom, there.bottom) - Math.max(box.top, there.top);
      if (wide > 2 && high > 4) found.push(`${name} lies on ${other}`);
    }
  });
  return found;
}"""

# The place on the screen of the value that is drawn last on a phone.
LAST = """(svg) => {
  const place = svg.dataset.at.split(' ').filter((at) => at !== '-').at(-1).split(',');
  const there = new DOMPoint(...place.map(Number)).matrixTransform(svg.getScreenCTM());
  return [there.x, there.y];
}"""

wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def check_colours(page, kind, scheme):
    names = [name for group, _ in CONTRASTS for name in group]
    colours = page.evaluate(COLOURS, ["--page", *names])
    for group, least in CONTRASTS:
        for name in group:
            found = contrast(colours[name], colours["--page"])
            check(found >= least, f"{kind}, {scheme}: {name} has a contrast of {found:.2f}")
    return colours["--page"]


def check_names(page, kind):
    check(page.locator("html").get_attribute("lang") == "en", f"{kind}: no language")
    check(page.locator("h1").count() == 1, f"{kind}: not one h1")
    check(page.locator("main").count() == 1, f"{kind}: not one main")
    named = "[tabindex='0'], svg[role=img], nav"
    for element in page.locator(named).all():
        check(element.get_attribute("aria-label"), f"{kind}: {element} has no name")
    for button in page.locator("button").all():
        check(button.text_content().strip(), f"{kind}: a button has no name")
    for table in page.locator("table").all():
        check(table.locator("caption").text_content().strip(), f"{kind}: a table has no caption")


def check_plots(page, kind, folder):
    drawn = sorted(path.stem for path in folder.glob("*.svg"))
    shown = [figure.get_attribute("data-name") for figure in page.locator("figure").all()]
    check(sorted(shown) == drawn, f"{kind}: plots {shown}, files {drawn}")
    for figure in page.locator("figure").all():
        name = f"{kind}: {figure.get_attribute('data-name')}"
        check(figure.locator("svg path").count() > 2, f"{name}: nothing is drawn")
        check(figure.locator(".v").count() > 0, f"{name}: it says no value")
        figure.locator("details > summary").first.click()
        check(figure.locator("table").first.is_visible(), f"{name}: its table does not open")
        figure.locator("details > summary").first.click()


def check_pointer_and_keys(page, kind):
    plot = page.locator(".plot").first
    tip = plot.locator(".tip")
    dots = plot.locator(".v")
    plot.scroll_into_view_if_needed()
    box = dots.nth(dots.count() - 1).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    check(": " in tip.text_content(), f"{kind}: the pointer reads no value")
    page.mouse.move(0, 0)
    check(tip.text_content() == "", f"{kind}: a value stays when the pointer leaves")
    page.locator("body").click(position={"x": 1, "y": 1})
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.keyboard.press("Tab")
    check(page.evaluate("document.activeElement.className") == "skip", f"{kind}: no skip link first")
    page.keyboard.press("Enter")
    check(page.evaluate("document.activeElement.id") == "answer", f"{kind}: it skips to nowhere")
    for _ in range(12):
        if page.evaluate("document.activeElement.className") == "plot":
            break
        page.keyboard.press("Tab")
    check(page.evaluate("document.activeElement.className") == "plot", f"{kind}: Tab finds no plot")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    check(outline != "none", f"{kind}: the focus is not seen")
    said = []
    for key in ["ArrowRight", "ArrowRight", "End", "Home"]:
        page.keyboard.press(key)
        said.append(tip.text_content())
    check(all(said) and said[0] == said[3], f"{kind}: keys read {said}")
    if dots.count() > 1:
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        check(tip.text_content() != said[0], f"{kind}: keys stay where they are")
    page.keyboard.press("Escape")
    check(tip.text_content() == "", f"{kind}: Escape does not end it")


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def check_sorting(page, kind):
    table = page.locator("#tables > .scroll table").first
    heads = table.locator("thead th")
    for at in range(heads.count()):
        head = heads.nth(at)
        column = lambda: page.evaluate(COLUMNS, table.element_handle())[at][1]
        before = column()
        head.locator("button").focus()
        page.keyboard.press("Enter")
        check(head.get_attribute("aria-sort") == "ascending", f"{kind}: column {at} is not sorted")
        up = column()
        page.keyboard.press("Enter")
        check(head.get_attribute("aria-sort") == "descending", f"{kind}: column {at} does not turn")
        down = column()
        check(sorted(up) == sorted(before) == sorted(down), f"{kind}: sorting loses cells")
        values = [number(text) for text in up if text]
        if values and None not in values:
            check(values == sorted(values), f"{kind}: column {at} rises like {up}")
            turned = [number(text) for text in down if text]
            check(turned == values[::-1], f"{kind}: column {at} falls like {down}")
        check("" not in up or up.index("") == len([text for text in up if text]), f"{kind}: empty cells first")
    check(page.locator("th[aria-sort=ascending], th[aria-sort=descending]").count() == 1, f"{kind}: sorted twice")


def check_values(page, kind, folder):
    if kind == "simulate":
        check_run(page, folder)
    if kind not in TABLES:
        return
    caption, name = TABLES[kind]
    table = page.locator(f"table:has(caption:text-is('{caption}'))").element_handle()
    rows = list(csv.DictReader((folder / name).open()))
    found = 0
    for column, cells in page.evaluate(COLUMNS, table):
        if column not in rows[0]:
            continue
        found += 1
        file = [row[column] for row in rows]
        check(sorted(cells) == sorted(file), f"{kind}: {column} is {cells}, in {name} {file}")
        if kind == "sweep":
            check(cells == file, f"{kind}: {column} is in another order")
    check(found >= 5, f"{kind}: {found} columns of {name} were found")


def check_run(page, folder):
    [row] = list(csv.DictReader((folder / "run.csv").open()))
    for caption in ["The run", "Every metric"]:
        table = page.locator(f"table:has(caption:text-is('{caption}'))").element_handle()
        columns = page.evaluate(COLUMNS, table)
        if caption == "The run":
            names = [text.split(":")[0].split(",")[0] for text in columns[2][1]]
            values = columns[1][1]
        else:
            names, values = columns[0][1], columns[2][1]
        check(len(names) >= 11, f"simulate: {caption} has {len(names)} rows")
        for name, value in zip(names, values):
            check(value == row[name], f"simulate: {name} is {value}, in run.csv {row[name]}")


def check_phone(page, kind):
    """A plot is read without scrolling sideways, by touch and by keys."""
    for figure in page.locator("figure").all():
        name = f"{kind} on a phone: {figure.get_attribute('data-name')}"
        plot = figure.locator(".plot")
        check(plot.evaluate("plot => plot.scrollWidth <= plot.clientWidth"), f"{name} scrolls sideways")
        check(not plot.locator("svg.wide").is_visible(), f"{name}: the wide drawing is shown")
        svg = plot.locator("svg.narrow")
        check(svg.get_attribute("aria-label"), f"{name} has no name")
        for text in svg.evaluate(TEXTS):
            check(False, f"{name}: {text}")
        tip = plot.locator(".tip")
        svg.scroll_into_view_if_needed()
        page.touchscreen.tap(*svg.evaluate(LAST))
        check(": " in tip.text_content(), f"{name}: a finger reads no value")
        plot.focus()
        for key in ["ArrowRight", "End"]:
            page.keyboard.press(key)
            check(": " in tip.text_content(), f"{name}: {key} reads no value")
            box, ring = tip.bounding_box(), plot.locator(".ring").bounding_box()
            check(box["x"] >= 0 and box["x"] + box["width"] <= 390, f"{name}: a value leaves the screen")
            check(0 <= ring["x"] <= 390, f"{name}: what is read is not on the screen")
        page.keyboard.press("Escape")


def check_page(browser, kind, path):
    grounds = []
    for width, scheme in [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]:
        page = browser.new_page(
            viewport={"width": width, "height": 844},
            color_scheme=scheme,
            reduced_motion="reduce",
            has_touch=width == 390,
        )
        page.on("console", lambda message: check(message.type not in ("error", "warning"), f"{kind}: console: {message.text}"))
        page.on("pageerror", lambda error: check(False, f"{kind}: {error}"))
        page.on("dialog", lambda dialog: (check(False, f"{kind}: a dialog"), dialog.dismiss()))
        url = path.as_uri()
        page.on("request", lambda request: check(request.url in (url, "data:,"), f"{kind}: fetches {request.url}"))
        page.goto(url)
        wide = page.evaluate("document.documentElement.scrollWidth")
        check(wide <= width, f"{kind}: {wide} px wide at {width}")
        if SHOTS:
            page.screenshot(path=f"{SHOTS}/{kind}-{width}-{scheme}.png", full_page=True)
        if width == 390:
            check_phone(page, kind)
            page.close()
            continue
        grounds.append(check_colours(page, kind, scheme))
        if scheme == "light":
            check(page.evaluate("window.broken") is None, f"{kind}: a scenario's text is run")
            check_names(page, kind)
            check_plots(page, kind, path.parent)
            check_values(page, kind, path.parent)
            if page.locator(".plot").count():
                check_pointer_and_keys(page, kind)
            check_sorting(page, kind)
        page.close()
    check(grounds[0] != grounds[1], f"{kind}: dark is as light")


def main():
    program, folder = sys.argv[1:]
    pages = sorted(pathlib.Path(folder).glob("*/report.html"))
    check(len(pages) == 7, f"there are {len(pages)} pages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for path in pages:
            check_page(browser, path.parent.name, path)
        browser.close()
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()

"""Every report.html of a folder in a headless Chromium: report.py BROWSER FOLDER.

Prints what is wrong, a line each; exit code 1 if anything is.
"""

import csv
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

# The table of each page, and the file whose numbers it has.
TABLES = {
    "sweep": ("The points of the sweep", "sweep.csv"),
    "tune": ("What was tried", "candidates.csv"),
    "plan": ("The splits that were simulated", "plan.csv"),
    "validate": ("Predicted and measured", "validation.csv"),
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


def check_page(browser, kind, path):
    grounds = []
    for width, scheme in [(1280, "light"), (1280, "dark"), (390, "light")]:
        page = browser.new_page(
            viewport={"width": width, "height": 844}, color_scheme=scheme, reduced_motion="reduce"
        )
        page.on("console", lambda message: check(message.type not in ("error", "warning"), f"{kind}: console: {message.text}"))
        page.on("pageerror", lambda error: check(False, f"{kind}: {error}"))
        page.on("dialog", lambda dialog: (check(False, f"{kind}: a dialog"), dialog.dismiss()))
        url = path.as_uri()
        page.on("request", lambda request: check(request.url in (url, "data:,"), f"{kind}: fetches {request.url}"))
        page.goto(url)
        wide = page.evaluate("document.documentElement.scrollWidth")
        check(wide <= width, f"{kind}: {wide} px wide at {width}")
        if width == 390:
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
    check(len(pages) == 6, f"there are {len(pages)} pages")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        for path in pages:
            check_page(browser, path.parent.name, path)
        browser.close()
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()

# SPDX-License-Identifier: MPL-2.0
"""The pages of `facetrack view` in a browser: `make test-view`."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ScrollOrigin
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.interaction import POINTER_TOUCH
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

WIDTH, HEIGHT, FRAMES = 640, 360, 400

# The number of a frame, from 1, as blocks of 32 pixels: bright ones are bits, the lowest at the left.
# Without a picture, the number is 0.
BLOCK, BITS = 32, 10
NUMBER = f"16+219*mod(floor((N+1)/pow(2,floor(X/{BLOCK}))),2)"
PICTURE = f"geq=lum='if(lt(Y,{BLOCK})*lt(X,{BLOCK * BITS}),{NUMBER},100)':cb=128:cr=128"

# A face that is at another place in each frame, one that comes and goes, and one that is a finding.
FACES = [
    "face x=0.3 y=0.5 size=0.3 dx=0.0011 dy=0.0004",
    "face x=0.8 y=0.8 size=0.2 from=100 to=300",
    "face x=0.1 y=0.8 size=0.2 from=200 to=202",
]
SCRIPT = "; ".join([*FACES, "landmarks"])

# Positions are rounded to 1/8 px. The middle of a line is found to half a pixel of the canvas.
MOST_PIXELS = 0.5 + 1 / 16

READY = "return 'ready' in document.documentElement.dataset"
NOTICE = "return document.getElementById('notice-text').textContent"
STATE = "return document.getElementById('state').textContent"
SHOWN = "return Number(document.getElementById('picture').dataset.frame)"

# Colors of the boxes by the ids of their faces.
COLORS = {"obj_1": (0x56, 0xB4, 0xE9), "obj_2": (0xE6, 0x9F, 0x00)}

# Reads the number in the picture, and the middles of the lines of the box that has a color.
READ = f"""
const canvas = document.getElementById("picture");
const {{width, height}} = canvas;
const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
const [left, top] = canvas.dataset.corner.split(",").map(Number);
const scale = Number(canvas.dataset.scale.split(",")[1]);
const red = (x, y) => pixels[4 * (Math.round(top + y * scale) * width + Math.round(left + x * scale))];
let number = 0;
for (let bit = 0; bit < {BITS}; bit++) number += (red((bit + 0.5) * {BLOCK}, {BLOCK // 2}) > 128) << bit;
const [r, g, b] = arguments[0];
const isNear = (at, level) => Math.abs(pixels[at] - level) < 20;
const columns = new Uint32Array(width), rows = new Uint32Array(height);
for (let y = 0, at = 0; y < height; y++) for (let x = 0; x < width; x++, at += 4) {{
  if (isNear(at, r) && isNear(at + 1, g) && isNear(at + 2, b)) {{
    columns[x]++;
    rows[y]++;
  }}
}}
// Lines have many pixels, the sides of other lines few.
const middles = (counts, corner) => {{
  const most = Math.max(...counts);
  const places = [...counts.keys()].filter((place) => counts[place] > most / 2);
  const near = places.filter((place) => place < places[0] + 20);
  const far = places.filter((place) => place >= places[0] + 20);
  return [near, far].map((line) => ((line[0] + line[line.length - 1] + 1) / 2 - corner) / scale);
}};
return {{number, shown: Number(canvas.dataset.frame), x: middles(columns, left), y: middles(rows, top)}};
"""


class Browser:
    """A page in a browser, without a window. A pixel of a page has two pixels of the screen in each direction."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.driver = chromium() if name == "chromium" else firefox()
        self.errors: list[str] = []
        self.driver.script.add_javascript_error_handler(lambda entry: self.errors.append(str(entry.text)))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, *arguments: Any) -> None:
        WebDriverWait(self.driver, 20, poll_frequency=0.02).until(lambda _: self.run(script, *arguments))

    def open(self, page: Path, fragment: str = "") -> None:
        self.driver.get(page.as_uri() + fragment)
        self.wait(READY)

    def choose(self, video: Path) -> None:
        self.find("file").send_keys(str(video))
        self.wait("return !document.getElementById('play').disabled")

    def find(self, name: str) -> Any:
        return self.driver.find_element(By.ID, name)

    def text(self, name: str) -> str:
        return str(self.find(name).text)

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def wait_for_frame(self, number: int) -> None:
        self.wait(f"{SHOWN} === arguments[0]", number)

    def requests(self) -> set[str]:
        """The addresses that Chromium asked for since the last call."""
        if self.name != "chromium":
            return set()
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}

    def resize(self, width: int, height: int) -> None:
        context = self.driver.current_window_handle
        self.driver.browsing_context.set_viewport(context, {"width": width, "height": height}, device_pixel_ratio=2)


def chromium() -> Any:
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    options.enable_bidi = True
    for argument in ["--headless=new", "--no-sandbox", "--force-device-scale-factor=2", "--window-size=1300,900"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


def firefox() -> Any:
    options = webdriver.FirefoxOptions()
    options.binary_location = "/usr/bin/firefox-esr"
    options.enable_bidi = True
    for argument in ["-headless", "-width=1300", "-height=900"]:
        options.add_argument(argument)
    options.set_preference("layout.css.devPixelsPerPx", "2.0")
    return webdriver.Firefox(options=options, service=webdriver.FirefoxService(shutil.which("geckodriver")))


@pytest.fixture(scope="module", params=os.environ.get("BROWSERS", "chromium firefox").split())
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    browser = Browser(request.param)
    browser.resize(1280, 720)
    yield browser
    browser.driver.quit()


@pytest.fixture(autouse=True)
def quiet(browser: Browser) -> Iterator[None]:
    """No page complains, or asks for anything but files and what it has."""
    browser.errors.clear()
    yield
    assert browser.errors == []
    if browser.name == "chromium":
        # The tests read pixels again and again, which no page does.
        log = [entry for entry in browser.driver.get_log("browser") if entry["level"] != "INFO"]
        expected = ("willReadFrequently", "ERR_FILE_NOT_FOUND")
        assert [entry for entry in log if not any(words in entry["message"] for words in expected)] == []
    assert {url.split(":")[0] for url in browser.requests()} <= {"file", "blob", "data"}


def run(*words: object, check: bool = True) -> None:
    subprocess.run([str(word) for word in words], check=check, stdout=subprocess.DEVNULL)


def make_clip(path: Path, *options: str, frames: int = FRAMES, rate: str = "24000/1001", times: str = "PTS") -> Path:
    """A video whose frames have their numbers in them."""
    source = f"color=gray:s={WIDTH}x{HEIGHT}:r={rate}"
    picture = f"{PICTURE},setpts={times}"
    lines = ["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine", "-vf", picture, "-frames:v", str(frames), "-shortest"]
    run("ffmpeg", "-hide_banner", "-loglevel", "error", *lines, "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", *options, path)
    return path


def first_number(video: Path) -> int:
    """The number in the first frame of a video."""
    decoded = ["ffmpeg", "-loglevel", "error", "-i", str(video), "-frames:v", "1", "-pix_fmt", "gray", "-f", "rawvideo", "-"]
    pixels = subprocess.check_output(decoded)
    levels = [pixels[BLOCK // 2 * WIDTH + BLOCK * bit + BLOCK // 2] for bit in range(BITS)]
    return sum(1 << bit for bit, level in enumerate(levels) if level > 128)


def track(video: Path, out: Path) -> dict[int, Any]:
    """Writes a record, and returns its frames by their numbers."""
    options = ["--engine", "scripted", "--set", f"script={SCRIPT}", "--set", "fields=box+landmarks+pose+origin"]
    # GStreamer 1.22 loses the last frames of videos with an edit list.
    run("facetrack", "run", video, "--out", out, *options, check="cut" not in str(video))
    record = json.loads((out / f"{video.stem}.json").read_text())
    return {frame["frame"]: frame for frame in record["frames"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tracked video, its record and its page."""
    folder = tmp_path_factory.mktemp("view")
    video = make_clip(folder / "clip #1.mp4", "-c:v", "libx264", "-bf", "3", "-c:a", "aac")
    track(video, folder)
    run("facetrack", "view", folder / "clip #1.json")
    (folder / "pages").mkdir()
    run("facetrack", "view", folder / "clip #1.json", "--video", video, "--out", folder / "pages" / "linked.html")
    return folder


@pytest.fixture
def page(browser: Browser, folder: Path) -> Browser:
    """The page with its video as a file, whose pixels can be read."""
    browser.open(folder / "clip #1.html")
    browser.choose(folder / "clip #1.mp4")
    browser.wait_for_frame(1)
    return browser


def only_boxes(browser: Browser) -> None:
    for button in browser.driver.find_elements(By.CSS_SELECTOR, "#layers [aria-pressed=true]"):
        if button.text != "Boxes" and button.is_enabled():
            button.click()


def assert_frame(browser: Browser, number: int, frames: dict[int, Any], first: int = 1, may_lack: bool = False) -> None:
    browser.run("location.hash = arguments[0]", f"#frame={number}")
    browser.wait_for_frame(number)
    if not may_lack:
        browser.wait(f"{STATE}.includes('no picture') === false")
    face = next(face for face in frames[number]["tracked_objects"] if face["id"] in COLORS)
    read = browser.run(READ, COLORS[face["id"]])
    assert read["number"] == first + number - 1 or (may_lack and read["number"] == 0)
    x, y, width, height = face["box"]
    for found, wanted in zip(read["x"] + read["y"], [x, x + width, y, y + height]):
        assert abs(found - wanted) <= MOST_PIXELS, (number, read, wanted)
    assert browser.run("return document.getElementById('frame').valueAsNumber") == number


# Containers, codecs and rates with times of their own: without an edit list, the first of B-frames is
# late, and Matroska can begin at any time.
VIDEOS: dict[str, tuple[str, list[str], dict[str, str]]] = {
    "23.976": ("clip.mp4", ["-c:v", "libx264", "-bf", "3", "-c:a", "aac"], {}),
    "no-edit-list": ("clip.mp4", ["-c:v", "libx264", "-bf", "3", "-c:a", "aac", "-use_editlist", "0"], {"rate": "30"}),
    "variable": ("clip.mp4", ["-c:v", "libx264", "-bf", "3", "-an"], {"rate": "25", "times": "'PTS+mod(N,3)*0.3/25/TB'"}),
    "webm": ("clip.webm", ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-c:a", "libopus"], {"rate": "25"}),
    "mkv": ("clip.mkv", ["-c:v", "libx264", "-bf", "3", "-c:a", "libopus", "-output_ts_offset", "0.7"], {"rate": "25"}),
    "cut": ("whole.mp4", ["-c:v", "libx264", "-bf", "2", "-g", "24", "-an"], {"rate": "24"}),
    "cut-between-keys": ("whole.mp4", ["-c:v", "libx264", "-bf", "2", "-g", "48", "-an"], {"rate": "24"}),
}

# Videos of which Firefox shows other frames.
MISLEADING = {"mkv", "cut-between-keys"}

# Frames between key frames that x264 sets.
KEY_FRAMES = 250

# Frames of each video that are looked at.
SAMPLE = int(os.environ.get("SAMPLE", "10"))


@pytest.fixture(scope="module", params=VIDEOS)
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, Any]]:
    """A video, whose page is next to it, and the frames of its record."""
    folder = tmp_path_factory.mktemp(request.param)
    name, options, settings = VIDEOS[request.param]
    video = make_clip(folder / name, *options, frames=max(60, SAMPLE), **settings)
    if "cut" in request.param:
        video = folder / "clip.mp4"
        start = 1.0 if request.param == "cut" else 0.5
        run("ffmpeg", "-loglevel", "error", "-ss", start, "-i", folder / name, "-c", "copy", video)
    frames = track(video, folder)
    # A page may not read the pixels of a video that it refers to.
    run("facetrack", "view", folder / "clip.json")
    run("facetrack", "view", folder / "clip.json", "--video", video, "--out", folder / "linked.html")
    return video, frames


def test_picture_number_and_boxes_belong_to_the_same_frame(browser: Browser, clip: tuple[Path, dict[int, Any]]) -> None:
    video, frames = clip
    first = first_number(video)
    if browser.name == "firefox" and any(video.parent.name.startswith(kind) for kind in MISLEADING):
        browser.open(video.parent / "linked.html")
        return browser.wait(f"{NOTICE}.includes('cannot show')")
    browser.open(video.parent / "clip.html")
    browser.choose(video)
    only_boxes(browser)
    lacks = set()
    if "no-edit-list" in str(video):
        # Firefox does not seek beyond the duration in the header, and Chromium misses the last frame before
        # a key frame, whose decoding time is earlier.
        duration = browser.run("return document.getElementById('video').duration")
        lacks = {number for number in frames if (number - 1) / 30 + 2 / 30 > duration - 0.003}
        lacks |= set(range(KEY_FRAMES, len(frames), KEY_FRAMES))
    for number in [len(frames), 1, *random.Random(1).choices(range(1, len(frames) + 1), k=SAMPLE)]:
        assert_frame(browser, number, frames, first, number in lacks)


def turn(video: bytes) -> bytes:
    """An MP4 file with the matrix of a clockwise quarter turn in its first track header."""
    at = video.index(b"tkhd") + 44
    matrix = struct.pack(">5i", 0, 1 << 16, 0, -1 << 16, 0)
    return video[:at] + matrix + video[at + len(matrix) :]


def test_a_turned_video_is_upright(browser: Browser, tmp_path: Path) -> None:
    video = make_clip(tmp_path / "stored.mp4", "-c:v", "libx264", "-an", frames=10)
    turned = tmp_path / "clip.mp4"
    turned.write_bytes(turn(video.read_bytes()))
    frames = track(turned, tmp_path)
    run("facetrack", "view", tmp_path / "clip.json")
    browser.open(tmp_path / "clip.html")
    browser.choose(turned)
    only_boxes(browser)
    browser.wait_for_frame(1)
    assert browser.text("notice") == ""
    assert "360\N{MULTIPLICATION SIGN}640" in browser.text("facts")
    read = browser.run(READ, COLORS["obj_1"])
    x, _, side, _ = frames[1]["tracked_objects"][0]["box"]
    assert all(abs(found - wanted) <= MOST_PIXELS for found, wanted in zip(read["x"], [x, x + side]))


def test_picture_and_boxes_belong_together_while_the_video_plays(page: Browser) -> None:
    only_boxes(page)
    page.find("play").click()
    seen, late = set(), 0
    for _ in range(20):
        read = page.run(READ, COLORS["obj_1"])
        # A browser may have the next picture before it announces it, and Firefox the one before.
        late += abs(read["number"] - read["shown"]) > 1
        seen.add(read["shown"])
    # On a busy computer, Firefox shows several pictures before it announces them.
    assert late <= (10 if page.name == "firefox" else 0)
    page.find("play").click()
    assert len(seen) > 5 and page.run("return document.getElementById('video').paused")
    page.wait(f"const read = (() => {{{READ}}})(); return read.number === read.shown", COLORS["obj_1"])


def test_keys_field_and_tracks_go_to_frames(page: Browser) -> None:
    page.run("document.activeElement.blur(); location.hash = '#frame=50'")
    page.wait_for_frame(50)
    for keys, wanted in [
        ([Keys.ARROW_RIGHT], 51),
        ([Keys.ARROW_LEFT, Keys.ARROW_LEFT], 49),
        ([Keys.END], FRAMES),
        ([Keys.ARROW_RIGHT], FRAMES),
        ([Keys.HOME], 1),
        (["g", "321", Keys.ENTER], 321),
    ]:
        page.press(*keys)
        page.wait_for_frame(wanted)
        assert page.run("return document.getElementById('frame').valueAsNumber") == wanted
    page.run("document.activeElement.blur()")
    webdriver.ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_LEFT).key_up(Keys.SHIFT).perform()
    page.wait_for_frame(311)
    page.press(" ")
    page.wait(f"{SHOWN} > 315")
    page.press(" ")
    page.wait("return document.getElementById('video').paused")
    page.find("previous").click()
    for track in page.driver.find_elements(By.CLASS_NAME, "track")[:3]:
        before = page.run(SHOWN)
        webdriver.ActionChains(page.driver).move_to_element(track).click().perform()
        page.wait(f"{SHOWN} !== arguments[0]", before)
        # The tracks begin right of the names.
        page.wait("return Math.abs(Number(document.getElementById('picture').dataset.frame) - 171) < 10")
        page.press(Keys.HOME)
        page.wait_for_frame(1)


def test_the_timeline_zooms(page: Browser) -> None:
    for keys, wanted in [
        (Keys.HOME + "++", "1\N{EN DASH}100"),
        (Keys.PAGE_DOWN, "81\N{EN DASH}180"),
        ("0", f"1\N{EN DASH}{FRAMES}"),
    ]:
        page.press(*keys)
        page.wait("return document.getElementById('range').textContent === arguments[0]", wanted)


ZOOM = "return Number(document.getElementById('picture').dataset.scale.split(',')[0])"


def middle(page: Browser, name: str) -> tuple[float, float]:
    box = page.find(name).rect
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def shown_range(page: Browser) -> tuple[int, int]:
    first, last = page.text("range").split("\N{EN DASH}")
    return int(first), int(last)


def test_the_wheel_zooms_and_drags_move(page: Browser) -> None:
    def drag(name: str, x: int, y: int) -> None:
        webdriver.ActionChains(page.driver).click_and_hold(page.find(name)).move_by_offset(x, y).release().perform()

    for name in ["lanes", "picture"]:
        wide = page.run(ZOOM)
        origin = ScrollOrigin.from_element(page.find(name))
        webdriver.ActionChains(page.driver).scroll_from_origin(origin, 0, -400).perform()
        if name == "lanes":
            page.wait(f"return document.getElementById('range').textContent !== '1\N{EN DASH}{FRAMES}'")
            first, last = shown_range(page)
            # Around the pointer.
            assert last - first < FRAMES / 1.5 and first > 50 and last < FRAMES - 50
            drag("lanes", 100, 0)
            page.wait(f"return document.getElementById('range').textContent !== '{first}\N{EN DASH}{last}'")
            moved, end = shown_range(page)
            assert moved < first and abs((end - moved) - (last - first)) <= 1
        else:
            page.wait(ZOOM + " > arguments[0] * 1.5", wide)
            corner = page.run("return document.getElementById('picture').dataset.corner")
            drag("picture", 40, 20)
            page.wait("return document.getElementById('picture').dataset.corner !== arguments[0]", corner)
    page.run("document.activeElement.blur()")
    page.press("f0")
    page.wait(f"return document.getElementById('range').textContent === '1\N{EN DASH}{FRAMES}'")
    before = page.run(SHOWN)
    drag("ruler", 150, 0)
    page.wait(f"{SHOWN} !== arguments[0]", before)


def test_two_fingers_zoom_and_one_moves(page: Browser) -> None:
    wide = page.run(ZOOM)
    x, y = middle(page, "picture")
    actions = ActionBuilder(page.driver, mouse=PointerInput(POINTER_TOUCH, "one"))
    one = actions.pointer_action
    second = actions.add_pointer_input(POINTER_TOUCH, "two")
    one.move_to_location(int(x) - 20, int(y)).pointer_down().move_to_location(int(x) - 80, int(y)).pointer_up()
    second.create_pointer_move(x=int(x) + 20, y=int(y))
    second.create_pointer_down(button=0)
    second.create_pointer_move(x=int(x) + 80, y=int(y))
    second.create_pointer_up(button=0)
    actions.perform()
    page.wait(ZOOM + " > arguments[0] * 2", wide)
    corner = page.run("return document.getElementById('picture').dataset.corner")
    actions = ActionBuilder(page.driver, mouse=PointerInput(POINTER_TOUCH, "one"))
    actions.pointer_action.move_to_location(int(x), int(y)).pointer_down().move_to_location(int(x) + 60, int(y)).pointer_up()
    actions.perform()
    page.wait("return document.getElementById('picture').dataset.corner !== arguments[0]", corner)
    page.press("f")
    page.wait(ZOOM + " === arguments[0]", wide)


def test_the_timeline_keeps_the_height_that_it_is_given(page: Browser, folder: Path) -> None:
    height = "return document.getElementById('timeline').getBoundingClientRect().height"
    before = page.run(height)
    drag = webdriver.ActionChains(page.driver).click_and_hold(page.find("splitter"))
    drag.move_by_offset(0, -60).release().perform()
    page.wait(height + " > arguments[0] + 40", before)
    higher = page.run(height)
    page.driver.refresh()
    page.wait(READY)
    assert abs(page.run(height) - higher) < 1
    page.find("splitter").send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    page.wait(height + " < arguments[0] - 16", higher)
    page.run("localStorage.clear()")


def test_number_keys_switch_layers(page: Browser) -> None:
    page.run("document.activeElement.blur()")
    layers = page.driver.find_elements(By.CSS_SELECTOR, "#layers button[id^=layer-]")
    pressed = [layer.get_attribute("aria-pressed") for layer in layers]
    assert len(layers) == 7
    for number, layer in enumerate(layers, 1):
        if not layer.is_enabled():
            continue
        page.press(str(number))
        assert layer.get_attribute("aria-pressed") != pressed[number - 1]
        page.press(str(number))
    assert [layer.get_attribute("aria-pressed") for layer in layers] == pressed


def test_values_and_a_link_are_copied(page: Browser) -> None:
    page.run("navigator.clipboard.writeText = async (text) => void (window.copied = text)")
    page.run("location.hash = '#frame=150'")
    page.wait_for_frame(150)
    for name, wanted in [("copy-values", "yaw"), ("copy-link", "#frame=150")]:
        page.find(name).click()
        page.wait("return (window.copied ?? '').includes(arguments[0])", wanted)
        assert page.text(name) == "Copied"


def test_faces_and_curves_have_the_values_of_the_frame(page: Browser) -> None:
    page.run("location.hash = '#frame=150&curves=pose.yaw'")
    page.wait_for_frame(150)
    assert chips(page) == ["score 0.90", "score 0.90", "not here"]
    page.find("search").send_keys("box.x")
    (row,) = (row for row in page.driver.find_elements(By.CLASS_NAME, "channel") if row.is_displayed())
    row.click()
    page.wait("return document.querySelectorAll('.curve').length === 2")
    page.wait("return document.querySelectorAll('.curve output')[1].textContent.includes('476.0 px')")
    page.driver.find_elements(By.CLASS_NAME, "chip")[1].click()
    assert page.text("values-title") == "Face 2" and row.text.split() == ["box.x", "476.0", "px"]


def chips(page: Browser) -> list[str]:
    return [output.text for output in page.driver.find_elements(By.CSS_SELECTOR, ".chip output")]


def test_a_curve_leads_to_its_maximum(page: Browser, folder: Path) -> None:
    frames = json.loads((folder / "clip #1.json").read_text())["frames"]
    page.run("location.hash = '#frame=1&curves=box.x&hidden=2,3'")
    page.wait("return document.querySelectorAll('.curve').length === 1")
    page.driver.find_element(By.CSS_SELECTOR, ".curve button").click()
    widest = max(frames, key=lambda frame: frame["tracked_objects"][0]["box"][0])
    page.wait_for_frame(widest["frame"])


def test_a_link_shows_the_same(page: Browser, folder: Path) -> None:
    page.run("location.hash = '#frame=120&range=101-200&curves=box.y&hidden=1&names=2+Anna+B&follow=2'")
    page.wait_for_frame(120)
    wanted = "#frame=120&range=101-200&curves=box.y&hidden=1&names=2+Anna+B&follow=2"
    page.wait("return location.hash === arguments[0]", wanted)
    page.driver.get("about:blank")
    page.open(folder / "clip #1.html", wanted)
    page.wait_for_frame(120)
    page.wait("return location.hash === arguments[0]", wanted)
    assert page.text("range") == "101\N{EN DASH}200"
    assert page.text("values-title") == "2 Anna B"
    hidden, shown = page.driver.find_elements(By.CSS_SELECTOR, ".chip")[:2]
    assert (
        "off" in str(hidden.get_attribute("class")) and shown.find_element(By.TAG_NAME, "input").get_attribute("value") == "Anna B"
    )
    page.run("location.hash = '#frame=120&names=&hidden=&follow=0'")


def test_a_face_is_hidden_named_and_followed(page: Browser) -> None:
    page.run("location.hash = '#frame=150'")
    page.wait_for_frame(150)
    name, (follow, eye) = (
        page.driver.find_element(By.CSS_SELECTOR, ".chip input"),
        page.driver.find_elements(By.CSS_SELECTOR, ".chip button")[:2],
    )
    name.send_keys("Anna", Keys.ENTER)
    eye.click()
    page.wait("return location.hash.includes('hidden=1&names=1+Anna')")
    eye.click()
    follow.click()
    zoom = "return Number(document.getElementById('picture').dataset.scale.split(',')[0])"
    close = page.run(zoom)
    page.run("document.activeElement.blur()")
    page.press("f")
    page.wait(zoom + " < arguments[0]", close)
    page.wait("return !location.hash.includes('follow')")


def test_findings_lead_to_their_frames(page: Browser) -> None:
    (row,) = (row for row in page.driver.find_elements(By.CSS_SELECTOR, "#findings .finding") if "Face 3 " in row.text)
    assert row.text.startswith("200\N{EN DASH}202")
    row.click()
    page.wait_for_frame(200)
    page.run("document.activeElement.blur()")
    page.press(Keys.HOME)
    page.wait_for_frame(1)
    page.press("n")
    page.wait_for_frame(200)


def test_the_linked_video_is_shown(browser: Browser, folder: Path) -> None:
    browser.requests()
    browser.open(folder / "pages" / "linked.html", "#frame=77")
    browser.wait_for_frame(77)
    browser.wait("return !document.getElementById('play').disabled")
    browser.wait(f"{STATE} === 'tracked'")
    page, video = (folder / name for name in ["pages/linked.html", "clip #1.mp4"])
    assert browser.requests() - {page.as_uri() + "#frame=77"} <= {page.as_uri(), video.as_uri()}


def test_the_page_says_which_video_it_cannot_play(browser: Browser, folder: Path) -> None:
    other = folder / "it's no video.avi"
    other.write_bytes(bytes(1000))
    browser.open(folder / "clip #1.html")
    assert "Choose the video" in browser.text("notice")
    browser.find("file").send_keys(str(other))
    browser.wait(f"{NOTICE}.includes('cannot show')")
    assert r"ffmpeg -i 'it'\''s no video.avi' " in browser.text("notice")
    # The boxes are there without it.
    browser.press(Keys.END)
    browser.wait_for_frame(FRAMES)


def damage(video: Path, number: int) -> None:
    """Takes its content from a frame, of a video whose frames are in order."""
    show = ["ffprobe", "-loglevel", "error", "-show_packets", "-of", "json", str(video)]
    packet = json.loads(subprocess.check_output(show))["packets"][number - 1]
    with video.open("r+b") as file:
        # The length of the first unit stays.
        file.seek(int(packet["pos"]) + 4)
        file.write(bytes(int(packet["size"]) - 4))


def test_no_picture_is_shown_under_the_number_of_another_frame(browser: Browser, tmp_path: Path) -> None:
    video = make_clip(tmp_path / "clip.mp4", "-c:v", "libx264", "-an", "-g", "30", "-bf", "0", frames=90)
    frames = track(video, tmp_path)
    damage(video, 45)
    run("facetrack", "view", tmp_path / "clip.json")
    browser.open(tmp_path / "clip.html")
    browser.choose(video)
    only_boxes(browser)
    notices = set()
    for number in [9, *range(44, 48), 9, 80, 45, 1]:
        browser.run("location.hash = arguments[0]", f"#frame={number}")
        browser.wait("const video = document.getElementById('video'); return video.error || !video.seeking && video.readyState > 1")
        browser.wait_for_frame(number)
        read = browser.run(READ, COLORS["obj_1"])
        assert read["number"] in (0, number)
        x, _, width, _ = frames[number]["tracked_objects"][0]["box"]
        assert all(abs(found - wanted) <= MOST_PIXELS for found, wanted in zip(read["x"], [x, x + width]))
        assert browser.run("return document.getElementById('frame').valueAsNumber") == number
        notices.add(browser.text("notice").split(".")[0])
    if browser.name == "chromium":
        assert "This browser cannot decode clip" in notices
    # Going back gives the picture again.
    browser.run("location.hash = '#frame=9'")
    browser.wait(f"return (function () {{{READ}}})(arguments[0]).number === 9", COLORS["obj_1"])
    assert browser.text("notice") == ""
    assert_frame(browser, 80, frames)


def test_a_video_with_squeezed_pixels_is_the_video_of_its_record(browser: Browser, tmp_path: Path) -> None:
    video = make_clip(tmp_path / "clip.mp4", "-c:v", "libx264", "-an", "-aspect", "32:9", frames=10)
    track(video, tmp_path)
    run("facetrack", "view", tmp_path / "clip.json")
    browser.open(tmp_path / "clip.html")
    scale = "return document.getElementById('picture').dataset.scale.split(',').map(Number)"
    for _ in range(2):
        x, y = browser.run(scale)
        assert abs(x * WIDTH / (y * HEIGHT) - 32 / 9) < 0.02
        browser.choose(video)
        assert browser.text("notice") == ""


def test_the_command_on_the_page_makes_a_video_that_the_browser_plays(browser: Browser, tmp_path: Path) -> None:
    source = ["-f", "lavfi", "-i", "testsrc=s=321x181:r=25", "-frames:v", "12"]
    run("ffmpeg", "-loglevel", "error", *source, "-c:v", "mjpeg", tmp_path / "odd.avi")
    track(tmp_path / "odd.avi", tmp_path)
    run("facetrack", "view", tmp_path / "odd.json", "--video", tmp_path / "odd.avi")
    browser.open(tmp_path / "odd.html")
    browser.wait("return document.getElementById('command').textContent")
    subprocess.run(browser.text("command"), shell=True, check=True, cwd=tmp_path)
    browser.choose(tmp_path / "odd-browser.mp4")
    browser.run("location.hash = '#frame=7'")
    browser.wait_for_frame(7)
    browser.wait(f"{STATE} === 'tracked'")


@pytest.mark.parametrize("missing", ["Window.DecompressionStream", "HTMLVideoElement.requestVideoFrameCallback"])
def test_the_page_says_what_a_browser_lacks(browser: Browser, folder: Path, missing: str) -> None:
    owner, name = missing.split(".")
    script: Any = browser.driver.script.add_preload_script(f"() => {{ delete window.{name}; delete {owner}.prototype.{name}; }}")
    try:
        browser.driver.get((folder / "clip #1.html").as_uri())
        notice = browser.text("notice")
    finally:
        browser.driver.script.remove_preload_script(script["script"])
    assert notice.startswith(f"This browser has no {name}. ") and "Firefox 132" in notice


def test_a_folder_has_a_list_of_pages(browser: Browser, folder: Path) -> None:
    run("facetrack", "view", folder, "--out", folder / "all")
    browser.driver.get((folder / "all" / "index.html").as_uri())
    (link,) = browser.driver.find_elements(By.CSS_SELECTOR, "tbody a")
    assert browser.driver.find_element(By.TAG_NAME, "tbody").text.split() == ["clip", "#1", "0:17", "3", "1", "complete"]
    assert browser.text("count") == "1 video"
    browser.wait("return 'drawn' in document.querySelector('tbody canvas').dataset")
    link.click()
    browser.wait(READY)
    browser.wait("return !document.getElementById('play').disabled")


def test_the_list_of_a_folder_is_sorted_and_filtered(browser: Browser, tmp_path: Path) -> None:
    for name, frames in [("a", 20), ("b", 60), ("c", 40)]:
        size = "640x180" if name == "c" else "128x72"
        source = ["-f", "lavfi", "-i", f"testsrc=s={size}:r=20", "-frames:v", frames, "-c:v", "libx264", "-pix_fmt", "yuv420p"]
        run("ffmpeg", "-loglevel", "error", *source, tmp_path / f"{name}.mp4")
    (tmp_path / "d.mp4").write_bytes(bytes(100))
    run("facetrack", "run", tmp_path, "--out", tmp_path / "out", "--engine", "scripted", check=False)
    run("facetrack", "view", tmp_path / "out")
    browser.driver.get((tmp_path / "out" / "view" / "index.html").as_uri())
    names = "return [...document.querySelectorAll('tbody tr:not([hidden]) th')].map((name) => name.textContent)"
    assert browser.run(names) == ["a", "b", "c", "d"]
    length = browser.driver.find_elements(By.CSS_SELECTOR, "thead button")[1]
    length.click()
    assert browser.run(names) == ["d", "a", "c", "b"]
    length.click()
    assert browser.run(names) == ["b", "c", "a", "d"]
    Select(browser.find("status")).select_by_visible_text("complete")
    assert browser.run(names) == ["b", "c", "a"] and browser.text("count") == "3 of 4 videos"
    browser.wait("return document.querySelectorAll('tbody canvas[data-drawn]').length === 3")
    # A wide video does not push the other columns away.
    assert browser.run("return document.documentElement.scrollWidth") <= 1280
    assert browser.run("return [...document.querySelectorAll('tbody canvas')].map((it) => it.offsetHeight)") == [54] * 3


# Videos with sound whose pictures browsers cannot decode. Some say nothing, and play the sound.
UNPLAYABLE = {
    "hevc": ["clip.mp4", "-c:v", "libx265", "-x265-params", "log-level=none", "-tag:v", "hvc1", "-c:a", "aac"],
    "prores": ["clip.mov", "-c:v", "prores", "-c:a", "aac"],
    "mpeg4": ["clip.mp4", "-c:v", "mpeg4", "-c:a", "aac"],
}


@pytest.mark.parametrize("kind", UNPLAYABLE)
def test_a_video_that_cannot_be_shown_is_a_message_with_a_command(browser: Browser, tmp_path: Path, kind: str) -> None:
    name, *options = UNPLAYABLE[kind]
    video = make_clip(tmp_path / name, *options, frames=12, rate="25")
    track(video, tmp_path)
    run("facetrack", "view", tmp_path / "clip.json", "--video", video)
    browser.open(tmp_path / "clip.html")
    browser.wait(f"{NOTICE}.includes('cannot show') || !document.getElementById('play').disabled")
    if browser.name == "firefox" and not browser.text("notice"):
        pytest.skip("this Firefox has a decoder")
    assert name in browser.text("notice-text") and browser.text("command").startswith(f"ffmpeg -i '{name}'")
    assert browser.find("notice-file").is_displayed() and browser.find("copy-command").is_displayed()
    # The faces are there without it.
    browser.press(Keys.END)
    browser.wait_for_frame(12)
    assert chips(browser)[0] == "score 0.90"


def test_a_missing_video_is_a_message(browser: Browser, tmp_path: Path) -> None:
    video = make_clip(tmp_path / "clip.mp4", "-c:v", "libx264", "-an", frames=5)
    track(video, tmp_path)
    run("facetrack", "view", tmp_path / "clip.json", "--video", video)
    video.rename(tmp_path / "moved.mp4")
    browser.open(tmp_path / "clip.html")
    browser.wait(f"{NOTICE}.includes('not where the page')")
    browser.choose(tmp_path / "moved.mp4")
    assert browser.text("notice") == ""


def write_record(path: Path, faces: list[list[dict[str, Any]]]) -> Path:
    """Writes a record with the faces of each frame, and its page, which it returns."""
    frames = [
        {"frame": number, "status": "tracked" if own else "no-face", "tracked_objects": own} for number, own in enumerate(faces, 1)
    ]
    metadata = {"tracking_engine": "scripted", "width": 640, "height": 360, "fps": 25}
    path.write_text(json.dumps({"metadata": metadata, "frames": frames}))
    run("facetrack", "view", path)
    return path.with_suffix(".html")


def face(number: int, x: float) -> dict[str, Any]:
    box = {"bbox_xmin": x, "bbox_ymin": 100, "bbox_width": 80, "bbox_height": 80}
    return {"id": f"obj_{number}", "centroid_x": x + 40, "centroid_y": 140, "confidence": 0.5, **box}


def test_layers_without_data_have_a_reason(browser: Browser, tmp_path: Path) -> None:
    browser.open(write_record(tmp_path / "clip.json", [[face(2, 100)]] * 3))
    assert "1 face" in browser.text("facts").split(" · ") and browser.text("values-title") == "Face 2"
    assert "Recorded without landmarks and head pose" in browser.text("lacks")
    for layer, is_enabled in [("boxes", True), ("contours", False), ("mesh", False), ("axes", False)]:
        assert browser.find(f"layer-{layer}").is_enabled() == is_enabled
    assert "verbose=true" in str(browser.find("layer-mesh").get_attribute("title"))


def test_a_record_without_faces_says_what_to_try(browser: Browser, tmp_path: Path) -> None:
    browser.open(write_record(tmp_path / "clip.json", [[]] * 3))
    assert browser.text("findings").startswith("1\N{EN DASH}3") and "Try another engine" in browser.text("findings")
    assert browser.text("faces") == "No face in any frame"


def test_a_record_without_frames_is_a_message(browser: Browser, tmp_path: Path) -> None:
    browser.driver.get(write_record(tmp_path / "clip.json", []).as_uri())
    assert browser.text("notice") == "The record has no frames."


def test_thousands_of_findings_are_grouped(browser: Browser, tmp_path: Path) -> None:
    jumps = [[face(1, 500 * (place // 20 % 2))] for place in range(30000)]
    browser.open(write_record(tmp_path / "clip.json", jumps))
    (group,) = browser.driver.find_elements(By.CSS_SELECTOR, "#findings details")
    assert group.text == "Jumps (1499)"
    group.click()
    browser.wait("return document.querySelectorAll('#findings .finding').length === 1499")


def test_the_theme_is_chosen_and_paper_is_light(page: Browser) -> None:
    theme = "return document.documentElement.dataset.theme"
    before = page.run(theme)
    page.find("theme").click()
    assert {before, page.run(theme)} == {"light", "dark"}
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run(theme) == "light"
    page.run("dispatchEvent(new Event('afterprint')); localStorage.clear()")
    assert page.driver.print_page()


def test_texts_of_a_record_are_no_markup(browser: Browser, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=alert(1)>"
    face = {"id": "obj_1", "centroid_x": 3, "centroid_y": 3, "bbox_xmin": 1, "bbox_ymin": 1, "bbox_width": 4, "bbox_height": 4}
    face |= {"confidence": 0.5, "blendshapes": {bad: 0.5}}
    metadata = {"tracking_engine": bad, "width": 8, "height": 8, "fps": 25}
    record = {"metadata": metadata, "frames": [{"frame": 1, "tracked_objects": [face]}]}
    path = tmp_path / "<b>.json"
    path.write_text(json.dumps(record))
    run("facetrack", "view", path)
    browser.open(tmp_path / "<b>.html")
    assert browser.text("title") == "<b>.json" and bad in browser.text("facts")
    assert browser.run("return document.querySelectorAll('img').length") == 0


def test_picture_transport_and_timeline_fit_on_one_screen(page: Browser) -> None:
    assert page.run("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]") == [1280, 720]
    for name in ["picture", "transport", "ruler", "lanes"]:
        box = page.run("return document.getElementById(arguments[0]).getBoundingClientRect().toJSON()", name)
        assert box["top"] >= 0 and box["bottom"] <= 720, name


def test_a_narrow_page_does_not_scroll_sideways(page: Browser) -> None:
    page.resize(360, 800)
    try:
        assert page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    finally:
        page.resize(1280, 720)


CONTRAST = """
const luminance = (color) => {
  const parts = color.match(/[\\d.]+/g).map((part) => part / 255);
  const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  for (let it = element; it; it = it.parentElement) {
    const color = getComputedStyle(it).backgroundColor;
    if (!/, 0\\)$|transparent/.test(color)) return color;
  }
};
const texts = [...document.querySelectorAll("body *")].filter((it) => it.checkVisibility() && it.tagName !== "VIDEO"
  && [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
return Math.min(...texts.map((it) => {
  const [high, low] = [getComputedStyle(it).color, ground(it)].map(luminance).sort((one, other) => other - one);
  return (high + 0.05) / (low + 0.05);
}));
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_have_contrast_and_controls_have_names(page: Browser, theme: str) -> None:
    while page.run("return document.documentElement.dataset.theme") != theme:
        page.find("theme").click()
    assert page.run(CONTRAST) >= 4.5
    page.run("localStorage.clear()")
    names = "return [...document.querySelectorAll('button, input, select, canvas')].filter((it) => !it.hidden && !it.ariaHidden)"
    for element in page.run(names):
        assert element.accessible_name or element.aria_role in ("none", "generic", "Canvas"), element.get_attribute("outerHTML")


# The screenshot in the documentation, and the mean difference of its pixels to another one, of 255 levels: fonts differ.
PICTURE_FILE = Path(__file__).parents[3] / "docs" / "pictures" / "view.jpg"
MOST_OTHERS = 6

COMPARE = """
const [sources, done] = arguments;
const read = async (source) => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const context = new OffscreenCanvas(64, 64).getContext("2d");
  context.drawImage(image, 0, 0, 64, 64);
  return context.getImageData(0, 0, 64, 64).data;
};
Promise.all(sources.map(read)).then(([one, other]) => {
  done(one.reduce((sum, level, index) => sum + Math.abs(level - other[index]), 0) / one.length);
});
"""


def test_the_documentation_shows_the_page(browser: Browser, tmp_path: Path) -> None:
    if browser.name != "chromium":
        pytest.skip("the screenshot is from Chromium")
    portrait = subprocess.check_output(["facetrack", "path", "astronaut.png"], text=True).strip()
    clip = tmp_path / "clip.mkv"
    run(PICTURE_FILE.parents[2] / "scripts" / "portrait-clip.sh", portrait, clip)
    run("facetrack", "run", clip, "--out", tmp_path, "--set", "verbose=true")
    run("facetrack", "view", tmp_path / "clip.json", "--video", clip, "--proxy")
    browser.open(tmp_path / "clip.html", "#frame=26")
    browser.wait_for_frame(26)
    browser.wait(f"{STATE} === 'tracked'")
    browser.wait("return document.querySelector('.chip canvas').width > 32")
    area = {"x": 0, "y": 0, "width": 1280, "height": 720, "scale": 0.5}
    drawn = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "jpeg", "quality": 75, "clip": area})["data"]
    if "UPDATE_PICTURES" in os.environ:
        PICTURE_FILE.write_bytes(base64.b64decode(drawn))
    sources = [drawn, base64.b64encode(PICTURE_FILE.read_bytes()).decode()]
    others = browser.driver.execute_async_script(COMPARE, ["data:image/jpeg;base64," + source for source in sources])
    assert others < MOST_OTHERS, "run UPDATE_PICTURES=1 make test-view"

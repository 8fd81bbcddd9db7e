# SPDX-License-Identifier: MPL-2.0
"""The pages of `facetrack view` in a browser: `make test-view`."""

from __future__ import annotations

import base64
import json
import os
import random
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

WIDTH, HEIGHT, FRAMES = 640, 360, 400

# The number of a frame, from 0, as blocks of 32 pixels: bright ones are bits, the lowest at the left.
BLOCK, BITS = 32, 10
NUMBER = f"16+219*mod(floor(N/pow(2,floor(X/{BLOCK}))),2)"
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
SHOWN = "return Number(document.getElementById('picture').dataset.frame)"

# Colors of the boxes by the ids of their faces.
COLORS = {"obj_1": (0x56, 0xB4, 0xE9), "obj_2": (0xE6, 0x9F, 0x00)}

# Reads the number in the picture, and the middles of the lines of the box that has a color.
READ = f"""
const canvas = document.getElementById("picture");
const {{width, height}} = canvas;
const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
const red = (x, y) => pixels[4 * (Math.round(y) * width + Math.round(x))];
const scale = width / {WIDTH};
let number = 0;
for (let bit = 0; bit < {BITS}; bit++) number += (red((bit + 0.5) * {BLOCK} * scale, {BLOCK // 2} * scale) > 128) << bit;
const color = arguments[0];
const isLine = (x, y) => {{
  const at = 4 * (y * width + x);
  return color.every((level, index) => Math.abs(pixels[at + index] - level) < 20);
}};
const columns = [], rows = [];
for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (isLine(x, y)) {{
  columns[x] = (columns[x] ?? 0) + 1;
  rows[y] = (rows[y] ?? 0) + 1;
}}
// Lines have many pixels, the sides of other lines few.
const middles = (counts) => {{
  const most = Math.max(...Object.values(counts));
  const places = Object.keys(counts).map(Number).filter((place) => counts[place] > most / 2);
  const near = places.filter((place) => place < places[0] + 20);
  const far = places.filter((place) => place >= places[0] + 20);
  return [near, far].map((line) => (line[0] + line[line.length - 1] + 1) / 2 / scale);
}};
return {{number, shown: Number(canvas.dataset.frame), scale, x: middles(columns), y: middles(rows)}};
"""

# Reads the numbers in the five pictures of a strip.
READ_STRIP = f"""
const [source, done] = arguments;
const image = new Image();
image.onload = () => {{
  const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
  context.drawImage(image, 0, 0);
  const width = image.width / 5;
  const read = (picture) => {{
    let number = 0;
    for (let bit = 0; bit < {BITS}; bit++) {{
      const x = width * (picture + (bit + 0.5) * {BLOCK / WIDTH});
      number += (context.getImageData(x, image.height * {BLOCK / 2 / HEIGHT}, 1, 1).data[0] > 128) << bit;
    }}
    return number;
  }};
  done([0, 1, 2, 3, 4].map(read));
}};
image.src = source;
"""


class Browser:
    """A page in Chromium, without a window."""

    def __init__(self) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ["--headless=new", "--no-sandbox", "--force-device-scale-factor=2", "--window-size=1300,900"]:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))

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
        """The addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.driver.quit()


@pytest.fixture(autouse=True)
def quiet(browser: Browser) -> Iterator[None]:
    """No page complains, or asks for anything but files and what it has."""
    yield
    # The tests read pixels again and again, which no page does.
    log = browser.driver.get_log("browser")
    assert [entry for entry in log if "willReadFrequently" not in entry["message"]] == []
    assert {url.split(":")[0] for url in browser.requests()} <= {"file", "blob", "data"}


def run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def make_clip(path: Path, *options: str, frames: int = FRAMES, rate: str = "24000/1001") -> Path:
    """A video whose frames have their numbers in them."""
    source = f"color=gray:s={WIDTH}x{HEIGHT}:r={rate}"
    lines = ["-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine", "-vf", PICTURE, "-frames:v", str(frames), "-shortest"]
    run("ffmpeg", "-hide_banner", "-loglevel", "error", *lines, "-pix_fmt", "yuv420p", *options, path)
    return path


def track(video: Path, out: Path) -> dict[int, Any]:
    """Writes a record, and returns its frames by their numbers."""
    options = ["--engine", "scripted", "--set", f"script={SCRIPT}", "--set", "fields=box+landmarks+pose+origin"]
    run("facetrack", "run", video, "--out", out, *options)
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
    for box in browser.driver.find_elements(By.CSS_SELECTOR, "#layers label"):
        if box.text not in ("Picture", "Boxes") and box.find_element(By.TAG_NAME, "input").is_selected():
            box.click()


def assert_frame(browser: Browser, number: int, frames: dict[int, Any]) -> None:
    browser.run("location.hash = arguments[0]", f"#frame={number}")
    browser.wait_for_frame(number)
    face = next(face for face in frames[number]["tracked_objects"] if face["id"] in COLORS)
    read = browser.run(READ, COLORS[face["id"]])
    assert read["number"] == number - 1
    x, y, width, height = face["box"]
    for found, wanted in zip(read["x"] + read["y"], [x, x + width, y, y + height]):
        assert abs(found - wanted) <= MOST_PIXELS, (number, read, wanted)


def test_every_frame_has_its_own_boxes(page: Browser, folder: Path) -> None:
    frames = {frame["frame"]: frame for frame in json.loads((folder / "clip #1.json").read_text())["frames"]}
    only_boxes(page)
    for number in random.Random(1).sample(range(1, FRAMES + 1), 300):
        assert_frame(page, number, frames)


# Containers, codecs and rates with times of their own: without an edit list, the first of B-frames is
# late, and Matroska can begin at any time.
VIDEOS = {
    "mp4": ("clip.mp4", ["-c:v", "libx264", "-bf", "3", "-c:a", "aac", "-use_editlist", "0"], "30"),
    "webm": ("clip.webm", ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-c:a", "libopus"], "24000/1001"),
    "mkv": ("clip.mkv", ["-c:v", "libx264", "-bf", "3", "-c:a", "libopus", "-output_ts_offset", "0.7"], "25"),
}


@pytest.mark.parametrize("kind", VIDEOS)
def test_frames_are_right_in_other_files(browser: Browser, tmp_path: Path, kind: str) -> None:
    name, options, rate = VIDEOS[kind]
    video = make_clip(tmp_path / name, *options, frames=60, rate=rate)
    frames = track(video, tmp_path)
    run("facetrack", "view", tmp_path / "clip.json")
    browser.open(tmp_path / "clip.html")
    browser.choose(video)
    only_boxes(browser)
    for number in [60, 1, 2, 31, 30, 59]:
        assert_frame(browser, number, frames)


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
    width, height = browser.run("const canvas = document.getElementById('picture'); return [canvas.width, canvas.height]")
    assert abs(width / height - HEIGHT / WIDTH) < 0.01
    read = browser.run(READ.replace(f"width / {WIDTH}", f"width / {HEIGHT}"), COLORS["obj_1"])
    x, _, side, _ = frames[1]["tracked_objects"][0]["box"]
    assert all(abs(found - wanted) <= MOST_PIXELS for found, wanted in zip(read["x"], [x, x + side]))


def test_picture_and_boxes_belong_together_while_the_video_plays(page: Browser) -> None:
    only_boxes(page)
    page.find("play").click()
    seen = set()
    for _ in range(20):
        read = page.run(READ, COLORS["obj_1"])
        # A browser may have the next picture before it announces it.
        assert read["number"] in (read["shown"] - 1, read["shown"])
        seen.add(read["shown"])
    page.find("play").click()
    assert len(seen) > 5 and page.text("play") == "Play"


def test_keys_field_and_tracks_go_to_frames(page: Browser) -> None:
    page.find("lanes").click()
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
    page.wait("return document.getElementById('play').textContent === 'Play'")
    page.find("previous").click()
    for track in page.driver.find_elements(By.CLASS_NAME, "track"):
        before = page.run(SHOWN)
        webdriver.ActionChains(page.driver).move_to_element(track).click().perform()
        page.wait(f"{SHOWN} !== arguments[0]", before)
        page.wait("return Math.abs(Number(document.getElementById('picture').dataset.frame) - 185) < 25")
        page.press(Keys.HOME)
        page.wait_for_frame(1)


def test_the_timeline_zooms(page: Browser) -> None:
    for keys, wanted in [(Keys.HOME + "++", "1 to 100"), (Keys.PAGE_DOWN, "81 to 180"), ("0", f"1 to {FRAMES}")]:
        page.press(*keys)
        page.wait("return document.getElementById('range').textContent === arguments[0]", f"frames {wanted}")


def test_faces_and_curves_have_the_values_of_the_frame(page: Browser) -> None:
    page.run("location.hash = '#frame=150'")
    page.wait_for_frame(150)
    rows = page.text("faces").splitlines()
    assert [row.split()[:3] for row in rows] == [["1", "found", "0.90"], ["2", "found", "0.90"]]
    page.run("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    page.find("filter").send_keys("box.x")
    boxes = [box for box in page.driver.find_elements(By.CSS_SELECTOR, "#channels label") if box.is_displayed()]
    assert [box.text for box in boxes] == ["box.x"]
    boxes[0].click()
    page.wait("return document.querySelectorAll('#curves figure').length === 4")
    caption = page.driver.find_elements(By.TAG_NAME, "figcaption")[3].text
    assert caption.startswith("box.x") and "frame 150" in caption and "face 2: 476.0" in caption


def test_findings_lead_to_their_frames(page: Browser) -> None:
    (row,) = (row for row in page.driver.find_elements(By.CSS_SELECTOR, "#finding-rows tr") if " 3 " in row.text)
    assert "202 3" in row.text
    row.find_element(By.TAG_NAME, "a").click()
    page.wait_for_frame(200)
    page.press(Keys.HOME)
    page.wait_for_frame(1)
    page.press("n")
    page.wait_for_frame(200)


def test_the_linked_video_is_shown(browser: Browser, folder: Path) -> None:
    browser.requests()
    browser.open(folder / "pages" / "linked.html", "#frame=77")
    browser.wait_for_frame(77)
    browser.wait("return !document.getElementById('play').disabled")
    browser.wait("return document.getElementById('state').textContent === 'Frame 77: tracked.'")
    page, video = (folder / name for name in ["pages/linked.html", "clip #1.mp4"])
    assert browser.requests() - {page.as_uri() + "#frame=77"} <= {page.as_uri(), video.as_uri()}


def test_the_page_says_which_video_it_cannot_play(browser: Browser, folder: Path) -> None:
    other = folder / "it's no video.avi"
    other.write_bytes(bytes(1000))
    browser.open(folder / "clip #1.html")
    assert "Choose the video" in browser.text("notice")
    browser.find("file").send_keys(str(other))
    browser.wait("return document.getElementById('notice').textContent.includes('cannot play')")
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
        # Nothing has the number 0, as the first frame.
        assert read["number"] in (0, number - 1)
        x, _, width, _ = frames[number]["tracked_objects"][0]["box"]
        assert all(abs(found - wanted) <= MOST_PIXELS for found, wanted in zip(read["x"], [x, x + width]))
        assert browser.run("return document.getElementById('frame').valueAsNumber") == number
        notices.add(browser.text("notice").split(".")[0])
    assert "This browser cannot decode the video here" in notices
    # Going back gives the picture again.
    browser.run("location.hash = '#frame=9'")
    browser.wait(f"return (function () {{{READ}}})(arguments[0]).number === 8", COLORS["obj_1"])
    assert browser.text("notice") == ""
    assert_frame(browser, 80, frames)


def test_a_video_with_squeezed_pixels_is_the_video_of_its_record(browser: Browser, tmp_path: Path) -> None:
    video = make_clip(tmp_path / "clip.mp4", "-c:v", "libx264", "-an", "-aspect", "32:9", frames=10)
    track(video, tmp_path)
    run("facetrack", "view", tmp_path / "clip.json")
    browser.open(tmp_path / "clip.html")
    ratio = "const screen = document.getElementById('screen'); return screen.clientWidth / screen.clientHeight"
    for _ in range(2):
        assert abs(browser.run(ratio) - 32 / 9) < 0.02
        browser.choose(video)
        assert browser.text("notice") == ""


def test_the_command_on_the_page_makes_a_video_that_the_browser_plays(browser: Browser, tmp_path: Path) -> None:
    source = ["-f", "lavfi", "-i", "testsrc=s=321x181:r=25", "-frames:v", "12"]
    run("ffmpeg", "-loglevel", "error", *source, "-c:v", "mjpeg", tmp_path / "odd.avi")
    track(tmp_path / "odd.avi", tmp_path)
    run("facetrack", "view", tmp_path / "odd.json", "--video", tmp_path / "odd.avi")
    browser.open(tmp_path / "odd.html")
    browser.wait("return document.querySelector('#notice code')")
    subprocess.run(browser.driver.find_element(By.CSS_SELECTOR, "#notice code").text, shell=True, check=True, cwd=tmp_path)
    browser.choose(tmp_path / "odd-browser.mp4")
    browser.run("location.hash = '#frame=7'")
    browser.wait("return document.getElementById('state').textContent === 'Frame 7: tracked.'")


@pytest.mark.parametrize("missing", ["Window.DecompressionStream", "HTMLVideoElement.requestVideoFrameCallback"])
def test_the_page_says_what_a_browser_lacks(browser: Browser, folder: Path, missing: str) -> None:
    owner, name = missing.split(".")
    lacks = {"source": f"delete window.{name}; delete {owner}.prototype.{name}"}
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", lacks)
    try:
        browser.driver.get((folder / "clip #1.html").as_uri())
        notice = browser.text("notice")
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    assert notice.startswith(f"This browser has no {name}. ") and "Firefox 132" in notice


def test_a_folder_has_a_list_of_pages(browser: Browser, folder: Path) -> None:
    run("facetrack", "view", folder, "--out", folder / "all")
    browser.driver.get((folder / "all" / "index.html").as_uri())
    (link,) = browser.driver.find_elements(By.CSS_SELECTOR, "tbody a")
    assert browser.driver.find_element(By.TAG_NAME, "tbody").text.startswith(f"clip #1 1 complete {FRAMES}")
    browser.wait("return 'drawn' in document.querySelector('tbody canvas').dataset")
    # A page cannot read the pixels of files. A screenshot of the page has them.
    strip = browser.driver.find_element(By.CSS_SELECTOR, "tbody canvas").screenshot_as_base64
    numbers = browser.driver.execute_async_script(READ_STRIP, "data:image/png;base64," + strip)
    middles = [FRAMES * (index + 0.5) / 5 for index in range(5)]
    assert all(abs(number - middle) <= 2 for number, middle in zip(numbers, middles, strict=True)), numbers
    link.click()
    browser.wait(READY)
    browser.wait("return !document.getElementById('play').disabled")


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
    assert browser.text("title") == "<b>.json" and bad in browser.text("about")
    assert browser.run("return document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_narrow_page_does_not_scroll_sideways(page: Browser, theme: str) -> None:
    size = {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    page.run("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert page.run("return document.documentElement.scrollWidth") == 360
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    names = "return [...document.querySelectorAll('button, input, select, canvas')].filter((it) => !it.hidden)"
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
    portrait = subprocess.check_output(["facetrack", "path", "astronaut.png"], text=True).strip()
    clip = tmp_path / "clip.mkv"
    run(PICTURE_FILE.parents[2] / "scripts" / "portrait-clip.sh", portrait, clip)
    run("facetrack", "run", clip, "--out", tmp_path, "--set", "verbose=true")
    run("facetrack", "view", tmp_path / "clip.json", "--video", clip, "--proxy")
    theme = {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", theme)
    browser.open(tmp_path / "clip.html", "#frame=26")
    browser.wait_for_frame(26)
    browser.wait("return document.getElementById('state').textContent === 'Frame 26: tracked.'")
    options = {"format": "jpeg", "quality": 75, "captureBeyondViewport": True}
    options["clip"] = {"x": 0, "y": 0, "width": 1300, "height": 1440, "scale": 0.307}
    drawn = browser.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    if "UPDATE_PICTURES" in os.environ:
        PICTURE_FILE.write_bytes(base64.b64decode(drawn))
    sources = [drawn, base64.b64encode(PICTURE_FILE.read_bytes()).decode()]
    others = browser.driver.execute_async_script(COMPARE, ["data:image/jpeg;base64," + source for source in sources])
    assert others < MOST_OTHERS, "run UPDATE_PICTURES=1 make test-view"

// The page: one place is shown, and every part follows it.

// Channels that the picture needs.
const DRAWN = [
  ..."x y width height".split(" ").map((name) => `box.${name}`),
  "confidence",
  ..."yaw pitch roll".split(" ").map((name) => `pose.${name}`),
  ...["right", "left"].flatMap((side) => ["x", "y", "confidence"].map((name) => `gaze.${side}.${name}`)),
];

// What older browsers lack, and tests for it. The page has the versions.
const NEEDED = [
  ["DecompressionStream", () => new DecompressionStream("deflate-raw")],
  ["requestVideoFrameCallback", () => "requestVideoFrameCallback" in HTMLVideoElement.prototype],
];

// Time from a change to the address, in milliseconds. Browsers limit how often it changes.
const ADDRESS_DELAY = 300;

// Size of the picture without a video and a size in the record.
const ANY_SIZE = { width: 640, height: 360 };

// Least height of the timeline, and the one of the rest of the page, in pixels.
const LEAST_TIMELINE = 96;
const LEAST_REST = 260;

class Page {
  static async open() {
    const header = JSON.parse($("header").textContent);
    $("title").textContent = document.title = header.videoName ?? header.title;
    const theme = new Theme($("theme"));
    const missing = NEEDED.find(([, test]) => !works(test));
    if (missing) return $("notice-text").prepend(`This browser has no ${missing[0]}. `);
    if (header.frames === 0) return notify("The record has no frames.");
    notify("Loading …");
    const record = await FaceRecord.open(header);
    const drawn = await Promise.all(DRAWN.map((name) => record.values(name)));
    const channels = Object.fromEntries(DRAWN.map((name, index) => [name, drawn[index]]));
    document.documentElement.dataset.open = "";
    notify("");
    const page = new Page(header, record, channels, theme);
    await page.start();
    document.documentElement.dataset.ready = "";
    await page.values.load();
    page.tellValues();
  }

  constructor(header, record, channels, theme) {
    this.header = header;
    this.record = record;
    // With the places of their frames.
    this.findings = header.findings.map((finding) => ({ ...finding, place: record.placeOf(finding.first) }));
    this.axis = new TimeAxis(record.frames);
    this.clock = new Clock(record, header.fps);
    this.people = new People(record);
    this.picture = new Picture($("picture"), record, channels, this.people);
    this.chips = new Chips($("faces"), this.people, this.picture);
    this.ruler = new Ruler($("ruler"), record, this.axis, this.findings, this.clock);
    this.lanes = new Lanes($("lanes"), record, this.axis, this.people);
    this.values = new Values($("channels"), record, (name) => this.toggleCurve(name));
    this.list = new FindingList($("findings"), this.findings, (place) => this.player.show(place));
    this.curves = new Map();
    this.player = new Player($("video"), record);
    this.describe();
    this.fillLayers();
    this.listen();
    this.listenPlayer();
    this.listenTimeline();
    theme.addEventListener("change", () => this.redrawTimeline());
  }

  // Shows what the address says, or the first frame.
  async start() {
    const { header, record } = this;
    this.setTimelineHeight(Number(kept("timeline")) || null);
    this.resize();
    const address = new URLSearchParams(location.hash.slice(1));
    if (!address.has("frame")) address.set("frame", record.number[0]);
    if (!address.has("curves")) address.set("curves", FIRST_CHANNELS.filter((name) => record.channels.has(name)));
    await this.follow(address);
    if (header.video) this.openVideo(header.video, header.videoName, true);
    else notify("Choose the video of this record, or drop it on the page.", { file: "Choose the video" });
  }

  describe() {
    const { record, header } = this;
    const { width, height } = this.size;
    const facts = [
      width > 1 ? `${width}×${height}` : "",
      this.clock.rate ? `${Number(header.fps.toFixed(3))} fps` : "variable frame rate",
      counted(record.frames, "frame"),
      header.engine,
      counted(header.ids.length, "face"),
      counted(this.findings.length, "finding"),
      header.finished ? "" : "not finished",
    ];
    $("facts").textContent = facts.filter(Boolean).join(" · ");
    $("frame").max = record.number[record.frames - 1];
    $("count").textContent = `/ ${$("frame").max}`;
    $("findings-count").textContent = this.findings.length || "";
    $("ruler").setAttribute("aria-valuemin", record.number[0]);
    $("ruler").setAttribute("aria-valuemax", $("frame").max);
    $("accuracy").textContent =
      `The page has rounded values: positions are right to ${header.points.step / 2} px of the frame, ` +
      `scores to 0.0005, angles to 0.01°. The record has the exact ones.`;
  }

  // The size that positions refer to. A record of another program may lack it.
  get size() {
    const { width, height, pixelAspectRatio } = this.header;
    if (width > 1) return { width, height, aspect: pixelAspectRatio };
    const video = $("video");
    return video.videoWidth ? { width: video.videoWidth, height: video.videoHeight, aspect: 1 } : { ...ANY_SIZE, aspect: 1 };
  }

  // --- The place

  showNumber(number) {
    if (Number.isFinite(number)) this.player.show(this.record.placeOf(number));
  }

  onPlace() {
    const { record, chips, player } = this;
    const { place } = player;
    const number = record.number[place];
    if (player.isPlaying) this.axis.follow(place);
    if (document.activeElement !== $("frame")) $("frame").value = number;
    $("time").textContent = this.clock.text(place);
    $("ruler").setAttribute("aria-valuenow", number);
    $("ruler").setAttribute("aria-valuetext", `frame ${number}`);
    this.moveCursors();
    chips.tell(place);
    this.tellValues();
    for (const curve of this.curves.values()) curve.tell(place);
    this.draw();
    this.saveAddress();
  }

  // The row of the selected face, or of the first one; null without a face.
  get row() {
    const rows = this.record.rowsAt(this.player.place);
    return rows.find((row) => this.record.rowId[row] === this.people.selected) ?? null;
  }

  tellValues() {
    const { people } = this;
    $("values").hidden = people.ids.length === 0;
    if (people.ids.length === 0) return;
    $("values-title").textContent = people.name(people.selected);
    $("copy-values").disabled = this.row === null;
    this.values.tell(this.row);
  }

  // --- Drawing

  draw() {
    const { record, picture, player, people } = this;
    const { place } = player;
    // The video may have the next picture already.
    if (player.target !== null && player.target !== place) return;
    const part = record.pointsAt(place);
    // Parts that follow are decoded before the video reaches them.
    record.pointsAt(Math.min(place + this.header.points.frames / 4, record.frames - 1));
    const followed = record.rowsAt(place).find((row) => record.rowId[row] === people.followed);
    if (followed !== undefined) picture.follow(followed);
    picture.draw(place, player.isShown(place) ? $("video") : null, part.points);
    if (!part.points) {
      part.promise.then(() => place === player.place && this.draw());
      return;
    }
    const canvas = $("picture");
    canvas.dataset.frame = record.number[place];
    canvas.setAttribute("aria-label", `Frame ${record.number[place]}, ${record.state[place]}, ${counted(record.rowsAt(place).length, "face")}`);
    this.tellState();
  }

  tellState() {
    const { record, player } = this;
    const { place } = player;
    const texts = [STATES[record.state[place]] ?? record.state[place]];
    if (record.cuts.includes(place)) texts.push("first frame after a cut");
    if (player.isReady && !player.isShown(place)) texts.push("the browser has no picture of this frame");
    $("state").textContent = texts.join(", ");
  }

  moveCursors() {
    const { axis, player } = this;
    for (const track of document.querySelectorAll(".track")) {
      const x = axis.x((player.target ?? player.place) + 0.5, track.clientWidth);
      const cursor = track.querySelector(".cursor");
      cursor.style.transform = `translateX(${x}px)`;
      cursor.hidden = x < GUTTER || x > track.clientWidth;
    }
  }

  // Draws ruler, lanes and curves once before the next screen.
  redrawTimeline() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      const { axis, record } = this;
      this.ruler.draw();
      this.lanes.draw();
      for (const curve of this.curves.values()) curve.draw();
      this.moveCursors();
      const last = Math.min(Math.ceil(axis.to), record.frames) - 1;
      $("range").textContent = `${record.number[Math.floor(axis.from)]}–${record.number[last]}`;
    });
  }

  resize() {
    this.picture.resize(this.size);
    // Below other parts, the picture is as high as the video is.
    $("screen").style.setProperty("--ratio", (this.size.width * this.size.aspect) / this.size.height);
    this.redrawTimeline();
    this.draw();
  }

  // --- Video

  openVideo(source, name, isLinked = false) {
    notify("");
    this.source = source;
    this.player.open(source, name, isLinked);
  }

  openFile(file) {
    if (file) this.openVideo(URL.createObjectURL(file), file.name);
  }

  onVideo() {
    const { player } = this;
    $("play").disabled = false;
    notify("");
    const video = $("video");
    const { width, height, aspect } = this.size;
    const ratio = video.videoWidth / video.videoHeight / ((width * aspect) / height);
    this.resize();
    this.chips.drawThumbnails(this.source, (place) => player.timeOf(place) + 0.5 / this.header.fps, this.size);
    // Records of earlier versions have no pixel aspect ratio, which is up to a half.
    if (ratio < 0.6 || ratio > 1.7) {
      notify(`The video has ${video.videoWidth}×${video.videoHeight} px, the frames of the record ${width}×${height}: it is another video, or one that is turned.`);
    }
  }

  onFail(reason) {
    $("play").disabled = true;
    const { name } = this.player;
    const texts = {
      missing: `${name} is not where the page expects it, or this browser cannot show it.`,
      unplayable: `This browser cannot show ${name}.`,
      damaged: `This browser cannot decode ${name} here.`,
    };
    const copyName = quoted(`${name.replace(/\.[^.]*$/, "")}-browser.mp4`);
    const command = `ffmpeg -i ${quoted(name)} -map 0:v:0 -fps_mode passthrough -vf 'scale=ceil(iw/2)*2:ceil(ih/2)*2' -c:v libx264 -pix_fmt yuv420p ${copyName}`;
    notify(`${texts[reason]} Write the page with --proxy, or make a copy with the same frames and choose it:`, { command, file: "Choose another file" });
  }

  // --- Parts that are filled once

  fillLayers() {
    LAYERS.forEach(([name, title], index) => {
      const button = element("button", "text", title);
      button.dataset.key = index + 1;
      button.setAttribute("aria-pressed", this.picture.layers[name]);
      button.disabled = !this.hasLayer(name);
      button.id = `layer-${name}`;
      $("layers").insertBefore(button, $("layers").querySelector(".space"));
    });
    const lacking = [
      ["landmarks", this.hasLayer("contours")],
      ["head pose", this.hasLayer("axes")],
    ];
    const texts = lacking.filter(([, has]) => !has).map(([what]) => what);
    this.lack = texts.length > 0 ? `Recorded without ${texts.join(" and ")}. For all that the engine measures, run with --set verbose=true.` : "";
    if (this.people.ids.length === 0) this.lack = "No face in any frame";
    $("lacks").textContent = this.lack;
    $("lacks").hidden = this.lack === "";
  }

  // True if the record has what a layer draws.
  hasLayer(name) {
    const { channels, header } = this.record;
    const tests = {
      contours: () => header.points.sets.some((set) => set.contours?.length),
      mesh: () => header.points.sets.some((set) => set.mesh?.length),
      points: () => header.points.sets.length > 0,
      axes: () => channels.has("pose.yaw"),
      gaze: () => channels.has("gaze.right.x"),
    };
    return tests[name]?.() ?? true;
  }

  toggleLayer(name) {
    if (!this.hasLayer(name)) return;
    this.picture.layers[name] = !this.picture.layers[name];
    $(`layer-${name}`).setAttribute("aria-pressed", this.picture.layers[name]);
    this.draw();
  }

  // --- Curves

  toggleCurve(name) {
    if (this.curves.has(name)) this.closeCurve(name);
    else this.openCurve(name).then(() => this.curves.get(name).track.scrollIntoView({ block: "nearest" }));
  }

  async openCurve(name) {
    const actions = { close: () => this.closeCurve(name), peak: (curve) => this.showPeak(curve) };
    const curve = new Curve(name, this.record, this.axis, this.people, actions);
    this.curves.set(name, curve);
    $("curves").append(curve.track);
    this.values.press(name, true);
    await curve.load();
    this.listenTrack(curve.track, curve);
    curve.tell(this.player.place);
    this.redrawTimeline();
    this.saveAddress();
  }

  closeCurve(name) {
    this.curves.get(name)?.track.remove();
    this.curves.delete(name);
    this.values.press(name, false);
    this.saveAddress();
  }

  showPeak(curve) {
    const place = curve.peak();
    if (place !== null) this.player.show(place);
  }

  // Goes to the next finding in a direction, 1 or −1.
  showFinding(direction) {
    const { place } = this.player;
    const places = this.findings.map((finding) => finding.place).filter((other) => direction * (other - place) > 0);
    if (places.length) this.player.show(direction > 0 ? Math.min(...places) : Math.max(...places));
  }

  // --- The address, which has everything that a link should show

  // Follows an address: what it lacks stays.
  async follow(address) {
    const { record, people, axis } = this;
    const list = (name) => address.get(name).split(",").filter(Boolean);
    const face = (id) => people.ids.indexOf(parseInt(id, 10));
    const isKnown = (id) => face(id) >= 0;
    if (address.has("curves")) {
      const names = list("curves").filter((name) => record.channels.has(name));
      for (const name of [...this.curves.keys()].filter((name) => !names.includes(name))) this.closeCurve(name);
      await Promise.all(names.filter((name) => !this.curves.has(name)).map((name) => this.openCurve(name)));
    }
    if (address.has("names")) {
      const pairs = list("names").filter(isKnown);
      people.set({ names: new Map(pairs.map((pair) => [face(pair), pair.replace(/^\d+ /, "")])) });
    }
    if (address.has("hidden")) people.set({ hidden: new Set(list("hidden").filter(isKnown).map(face)) });
    if (address.has("follow")) {
      const followed = isKnown(address.get("follow")) ? face(address.get("follow")) : null;
      people.set({ followed, selected: followed ?? people.selected });
    }
    if (address.has("range")) {
      const [first, last] = address.get("range").split("-").map((number) => record.placeOf(Number(number)));
      axis.set(first, last + 1);
    }
    if (address.has("frame")) this.showNumber(parseInt(address.get("frame"), 10));
  }

  get address() {
    const { record, people, axis, player } = this;
    const id = (face) => people.ids[face];
    const address = new URLSearchParams({ frame: record.number[player.place] });
    if (axis.to - axis.from < axis.frames) {
      address.set("range", `${record.number[Math.floor(axis.from)]}-${record.number[Math.ceil(axis.to) - 1]}`);
    }
    address.set("curves", [...this.curves.keys()]);
    if (people.hidden.size) address.set("hidden", [...people.hidden].map(id));
    if (people.names.size) address.set("names", [...people.names].map(([face, name]) => `${id(face)} ${name.replaceAll(",", " ")}`));
    if (people.followed !== null) address.set("follow", id(people.followed));
    return `#${String(address).replaceAll("%2C", ",")}`;
  }

  saveAddress() {
    clearTimeout(this.saving);
    this.saving = setTimeout(() => history.replaceState(null, "", this.address), ADDRESS_DELAY);
  }

  // --- Events

  listen() {
    this.keys = new Map(this.actions().map(([key, name, text, action]) => [key, { name, text, action }]));
    for (const { name, text } of this.keys.values()) $("keys").querySelector("dl").append(element("dt", "", name), element("dd", "", text));
    for (const button of document.querySelectorAll("[data-key]")) {
      const { name, text, action } = this.keys.get(button.dataset.key);
      button.title = button.disabled && button.id.startsWith("layer-") ? this.lack || "The engine does not measure it" : `${text} (${name})`;
      if (!button.textContent) button.setAttribute("aria-label", text);
      button.addEventListener("click", action);
    }
    for (const button of document.querySelectorAll("[data-icon]")) setIcon(button, button.dataset.icon);
    setIcon($("choose"), "folder");
    const press = (id, action) => $(id).addEventListener("click", action);
    press("actual", () => this.view((picture) => picture.showActual()));
    press("sound", () => this.toggleSound());
    press("unit", () => this.toggleUnit());
    press("add-curve", () => $("search").select());
    press("copy-link", () => copy($("copy-link"), new URL(this.address, location.href).href));
    press("copy-command", () => copy($("copy-command"), $("command").textContent));
    press("copy-values", () => copy($("copy-values"), this.values.text(this.row)));
    $("frame").addEventListener("change", () => this.showNumber($("frame").valueAsNumber));
    $("speed").addEventListener("change", () => ($("video").playbackRate = Number($("speed").value)));
    $("file").addEventListener("change", () => this.openFile($("file").files[0]));
    $("search").addEventListener("input", () => this.values.filter($("search").value.toLowerCase()));
    for (const id of ["choose", "notice-file"]) {
      $(id).addEventListener("keydown", ({ key }) => (key === "Enter" || key === " ") && $("file").click());
    }
    this.people.addEventListener("change", () => this.onPeople());
    // The page may have changed the address since then.
    window.addEventListener("hashchange", ({ newURL }) => this.follow(new URLSearchParams(new URL(newURL).hash.slice(1))));
    new ResizeObserver(() => this.resize()).observe($("screen"));
    new ResizeObserver(() => this.redrawTimeline()).observe($("tracks"));
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      this.openFile(event.dataTransfer.files[0]);
    });
    this.listenPicture();
  }

  onPeople() {
    this.draw();
    this.tellValues();
    for (const curve of this.curves.values()) curve.tell(this.player.place);
    this.redrawTimeline();
    this.saveAddress();
  }

  listenPlayer() {
    const { player } = this;
    player.addEventListener("place", () => this.onPlace());
    player.addEventListener("target", () => {
      this.axis.follow(player.target);
      this.moveCursors();
    });
    player.addEventListener("video", () => this.onVideo());
    player.addEventListener("fail", ({ detail }) => this.onFail(detail));
    player.addEventListener("play", () => setIcon($("play"), $("video").paused ? "play" : "pause"));
  }

  // Changes the view of the picture, which follows no face any more.
  view(change) {
    if (this.people.followed !== null) this.people.set({ followed: null });
    change(this.picture);
    this.draw();
  }

  listenPicture() {
    const { picture } = this;
    const hover = $("hover");
    listenGestures($("picture"), {
      click: () => this.player.togglePlay(),
      drag: (x, y) => this.view(() => picture.move(x, y)),
      zoom: (factor, point) => this.view(() => picture.zoom(factor, point)),
      hover: (point) => {
        const text = point && picture.nearest(point);
        hover.hidden = !text;
        hover.textContent = text ?? "";
      },
    });
  }

  listenTimeline() {
    this.axis.addEventListener("change", () => {
      this.redrawTimeline();
      this.saveAddress();
    });
    this.listenTrack($("ruler"), null);
    this.listenTrack($("lanes"), null);
    const splitter = $("splitter");
    const height = () => $("timeline").getBoundingClientRect().height;
    splitter.addEventListener("pointerdown", (event) => splitter.setPointerCapture(event.pointerId));
    splitter.addEventListener("pointermove", (event) => {
      if (event.buttons) this.setTimelineHeight(height() + splitter.getBoundingClientRect().top - event.clientY);
    });
    splitter.addEventListener("keydown", ({ key }) => {
      const step = { ArrowUp: 16, ArrowDown: -16 }[key];
      if (step) this.setTimelineHeight(height() + step);
    });
  }

  // Sets the height of the timeline, and remembers it. Without one, the style sheet decides.
  setTimelineHeight(height) {
    if (!height) return;
    const most = Math.max(LEAST_TIMELINE, innerHeight - LEAST_REST);
    const pixels = Math.round(Math.min(Math.max(height, LEAST_TIMELINE), most));
    document.documentElement.style.setProperty("--timeline", `${pixels}px`);
    keep("timeline", pixels);
  }

  // A press goes to a frame. The ruler scrubs, other tracks move; over a curve, its values are told.
  listenTrack(track, curve) {
    const { axis, player } = this;
    const place = ({ x }) => axis.placeAt(x, track.clientWidth);
    const isRuler = track.id === "ruler";
    listenGestures(track, {
      gutter: GUTTER,
      click: (point) => point.x >= GUTTER && player.show(place(point)),
      drag: (x, _, point) => {
        if (isRuler) player.show(place(point));
        else axis.move(-x / (track.clientWidth - GUTTER));
      },
      zoom: (factor, point) => axis.zoom(factor, place(point)),
      hover: (point) => {
        if (!curve) return;
        curve.hover.hidden = !point || point.x < GUTTER;
        if (point) curve.hover.style.transform = `translateX(${axis.x(place(point) + 0.5, track.clientWidth)}px)`;
        curve.tell(point && point.x >= GUTTER ? place(point) : player.place);
      },
    });
  }

  toggleSound() {
    const video = $("video");
    video.muted = !video.muted;
    setIcon($("sound"), video.muted ? "muted" : "sound");
    $("sound").setAttribute("aria-pressed", !video.muted);
  }

  toggleUnit() {
    this.ruler.unit = this.ruler.unit === "time" ? "frames" : "time";
    $("unit").setAttribute("aria-pressed", this.ruler.unit === "time");
    this.redrawTimeline();
  }

  // Keys with their names, what they do, and how.
  actions() {
    const { player, axis, record } = this;
    const zoom = (factor) => axis.zoom(factor, player.place);
    const layers = LAYERS.map(([name, title], index) => [`${index + 1}`, `${index + 1}`, `${title} on or off`, () => this.toggleLayer(name)]);
    return [
      [" ", "Space", "Play or pause", () => player.togglePlay()],
      ["ArrowLeft", "Left", "Previous frame; with Shift, ten frames", ({ shiftKey }) => player.step(shiftKey ? -10 : -1)],
      ["ArrowRight", "Right", "Next frame; with Shift, ten frames", ({ shiftKey }) => player.step(shiftKey ? 10 : 1)],
      ["Home", "Home", "First frame", () => player.show(0)],
      ["End", "End", "Last frame", () => player.show(record.frames - 1)],
      ["g", "G", "Enter the number of a frame", () => $("frame").select()],
      ["n", "N", "Next finding", () => this.showFinding(1)],
      ["p", "P", "Previous finding", () => this.showFinding(-1)],
      ...layers,
      ["+", "+", "Zoom into the timeline", () => zoom(2)],
      ["-", "−", "Zoom out of the timeline", () => zoom(1 / 2)],
      ["0", "0", "Whole timeline", () => axis.set(0, axis.frames)],
      ["PageUp", "Page up", "Earlier part of the timeline", () => axis.move(-0.8)],
      ["PageDown", "Page down", "Later part of the timeline", () => axis.move(0.8)],
      ["f", "F", "Fit the picture", () => this.view((picture) => picture.fit())],
      ["?", "?", "Keys", () => $("keys").showModal()],
    ];
  }

  onKey(event) {
    const { target, key } = event;
    const isText = target.matches("select, input:not([type=file])");
    if (isText || event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    // Buttons have keys of their own.
    if (key === " " && target.matches("button, [role=button], summary")) return;
    if (target.id === "splitter" && key.startsWith("Arrow")) return;
    const found = this.keys.get(key) ?? this.keys.get(key.toLowerCase());
    if (!found) return;
    event.preventDefault();
    found.action(event);
  }
}

// States of frames as the page writes them.
const STATES = { tracked: "tracked", "no-face": "no face", skipped: "not analysed", gap: "missing in the stream", error: "analysis failed" };

// True if a test of the browser succeeds.
function works(test) {
  try {
    return Boolean(test());
  } catch {
    return false;
  }
}

// A message, with a command to copy and a way to choose a file; an empty one goes away.
function notify(text, { command = "", file = "" } = {}) {
  $("notice").hidden = text === "";
  $("notice-text").textContent = text;
  $("notice-command").hidden = command === "";
  $("command").textContent = command;
  $("notice-file").hidden = file === "";
  $("notice-file").textContent = file;
}

// A name as a shell and ffmpeg read it.
function quoted(name) {
  const path = name.startsWith("-") ? `./${name}` : name;
  return `'${path.replaceAll("'", "'\\''")}'`;
}

Page.open();

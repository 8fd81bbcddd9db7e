// The page: one place is shown, and every part follows it.

const $ = (id) => document.getElementById(id);

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

// Time to wait for a frame of the video, in milliseconds. Then the record is shown without it.
const MAX_WAIT = 1000;

// Size of the picture without a video and a size in the record.
const ANY_SIZE = { width: 640, height: 360 };

class Page {
  static async open() {
    const header = JSON.parse($("header").textContent);
    $("title").textContent = document.title = header.title;
    const missing = NEEDED.find(([, test]) => !works(test));
    if (missing) return $("notice").prepend(`This browser has no ${missing[0]}. `);
    notify("");
    if (header.frames === 0) return notify("The record has no frames.");
    const record = await FaceRecord.open(header);
    const drawn = await Promise.all(DRAWN.map((name) => record.values(name)));
    const channels = Object.fromEntries(DRAWN.map((name, index) => [name, drawn[index]]));
    const page = new Page(header, record, channels);
    page.followHash() || page.show(0);
    page.openCurves(FIRST_CHANNELS.filter((name) => record.channels.has(name)));
    if (header.video) page.openVideo(header.video, header.videoName);
    else notify("Choose the video of this record, or drop it on the page.");
    document.documentElement.dataset.ready = "";
  }

  constructor(header, record, channels) {
    this.header = header;
    this.record = record;
    // With the places of their frames.
    this.findings = header.findings.map((finding) => ({ ...finding, place: record.placeOf(finding.first) }));
    this.axis = new TimeAxis(record.frames);
    this.picture = new Picture($("picture"), record, channels);
    this.lanes = new Lanes($("lanes"), record, this.axis, this.findings);
    this.curves = new Map();
    this.place = 0;
    // The place that was asked for, while the video is paused.
    this.target = null;
    // Time of the video's first frame, once it was shown.
    this.origin = null;
    // The place of the frame that the video shows; null without a video, and after an error.
    this.videoPlace = null;
    this.describe();
    this.fillLayers();
    this.fillChannels();
    this.fillFindings();
    this.listen();
    this.resize();
  }

  describe() {
    const { record, header } = this;
    const seconds = timeText(record.time[record.frames - 1]);
    const end = header.finished ? "" : ", not finished";
    $("about").textContent = `${header.engine}, ${record.frames} frames, ${seconds}, ${header.ids.length} faces${end}`;
    $("frame").max = record.number[record.frames - 1];
    $("lanes").setAttribute("aria-valuemin", record.number[0]);
    $("lanes").setAttribute("aria-valuemax", $("frame").max);
    $("accuracy").textContent =
      `The page has rounded values: positions are right to ${header.points.step / 2} px of the frame, ` +
      `scores to 0.0005, angles to 0.01°. The record has the exact ones.`;
  }

  // Width per height of the picture on the screen, whose pixels are square.
  get ratio() {
    const { width, height } = this.size;
    return (width * this.header.pixelAspectRatio) / height;
  }

  // The size that positions refer to. A record of another program may lack it.
  get size() {
    const { width, height } = this.header;
    if (width > 1) return { width, height };
    const video = $("video");
    return video.videoWidth ? { width: video.videoWidth, height: video.videoHeight } : ANY_SIZE;
  }

  // --- The place

  // Goes to a place once the video has its frame, so that all parts of the page show the same frame.
  show(place) {
    this.target = Math.min(Math.max(place, 0), this.record.frames - 1);
    this.axis.follow(this.target);
    const video = $("video");
    video.pause();
    // After an error, it may still have other frames.
    if (video.error && this.origin !== null) this.load();
    clearTimeout(this.waiting);
    if (this.videoPlace === null || this.isShown(this.target)) return this.arrive();
    this.waiting = setTimeout(() => this.arrive(), MAX_WAIT);
    this.seek();
    this.moveCursors();
  }

  // Shows the target, with the picture if the video has one.
  arrive() {
    clearTimeout(this.waiting);
    this.setPlace(this.target);
    this.draw();
  }

  // True if the video shows the frame at a place. Frames of damaged videos may have the same time.
  isShown(place) {
    const { record, videoPlace } = this;
    return videoPlace !== null && record.time[videoPlace] === record.time[place];
  }

  // Goes a number of frames on from where the page is going.
  step(frames) {
    this.show((this.target ?? this.place) + frames);
  }

  showNumber(number) {
    if (Number.isFinite(number)) this.show(this.record.placeOf(number));
  }

  setPlace(place) {
    const { record } = this;
    this.place = place;
    const number = record.number[place];
    if (document.activeElement !== $("frame")) $("frame").value = number;
    $("time").textContent = timeText(record.time[place]);
    $("lanes").setAttribute("aria-valuenow", number);
    $("lanes").setAttribute("aria-valuetext", `frame ${number}`);
    this.moveCursors();
    this.fillFaces();
    for (const curve of this.curves.values()) curve.tell(place);
  }

  // Time of the video at a place.
  videoTime(place) {
    const { record, header } = this;
    return this.origin + record.time[place] - (header.startsAtZero ? 0 : record.time[0]);
  }

  // Seeks to the middle of the frame, since times of videos are rounded. One seek at a time.
  seek() {
    const video = $("video");
    if (video.seeking) return;
    const { target, record, header } = this;
    const start = this.videoTime(target);
    const end = target + 1 < record.frames ? this.videoTime(target + 1) : start + 1 / header.fps;
    this.sought = target;
    video.currentTime = (start + end) / 2;
  }

  // True if the video has no other frame for the target than the one that it shows.
  hasSought() {
    return !$("video").seeking && this.sought === this.target;
  }

  // A frame of the video is on the screen.
  onVideoFrame(mediaTime) {
    const { record, header } = this;
    if (this.videoPlace === null) {
      this.origin ??= mediaTime;
      notify("");
      this.checkSize();
    }
    this.videoPlace = record.placeAt(mediaTime - this.origin + (header.startsAtZero ? 0 : record.time[0]));
    if (this.target === null) {
      this.axis.follow(this.videoPlace);
      this.setPlace(this.videoPlace);
      this.draw();
    } else if (this.isShown(this.target) || this.hasSought()) {
      this.arrive();
    } else {
      this.seek();
    }
  }

  // --- Drawing

  draw() {
    const { place, record } = this;
    // The video may have the next picture already.
    if (this.target !== null && this.target !== place) return;
    const part = record.pointsAt(place);
    // Parts that follow are decoded before the video reaches them.
    record.pointsAt(Math.min(place + this.header.points.frames / 4, record.frames - 1));
    this.picture.draw(place, this.isShown(place) ? $("video") : null, part.points, this.size);
    if (!part.points) {
      part.promise.then(() => place === this.place && this.draw());
      return;
    }
    const canvas = $("picture");
    canvas.dataset.frame = record.number[place];
    canvas.setAttribute("aria-label", `Frame ${record.number[place]}, ${record.state[place]}, ${record.rowsAt(place).length} faces`);
    this.tellState();
  }

  tellState() {
    const { place, record } = this;
    const texts = [`Frame ${record.number[place]}: ${record.state[place]}`];
    if (record.cuts.includes(place)) texts.push("first frame after a cut");
    const isMissing = this.videoPlace !== null && !this.isShown(place);
    if (isMissing) texts.push("the browser has no picture of it");
    $("state").textContent = `${texts.join("; ")}.`;
  }

  fillFaces() {
    const { record, place, picture } = this;
    const rows = record.rowsAt(place).map((row) => {
      const { x, y, width, height } = picture.box(row);
      const angles = ["yaw", "pitch", "roll"].map((name) => picture.value(`pose.${name}`, row));
      const score = picture.value("confidence", row);
      return [
        record.idOf(row),
        KINDS[record.rowKind[row]],
        Number.isNaN(score) ? "–" : score.toFixed(2),
        `${Math.round(width)}×${Math.round(height)} at ${Math.round(x)}, ${Math.round(y)}`,
        angles.some(Number.isNaN) ? "–" : angles.map((angle) => `${Math.round(angle)}°`).join(", "),
      ];
    });
    $("faces").replaceChildren(...rows.map((cells) => tableRow(cells)));
  }

  moveCursors() {
    for (const track of document.querySelectorAll(".track")) {
      const x = this.axis.x((this.target ?? this.place) + 0.5, track.clientWidth);
      const cursor = track.querySelector(".cursor");
      cursor.style.transform = `translateX(${x}px)`;
      cursor.hidden = x < GUTTER;
    }
  }

  // Draws lanes and curves once before the next screen.
  redrawTimeline() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      const { axis, record } = this;
      this.lanes.draw();
      for (const curve of this.curves.values()) curve.draw();
      this.moveCursors();
      const last = Math.min(Math.ceil(axis.to), record.frames) - 1;
      $("range").textContent = `frames ${record.number[Math.floor(axis.from)]} to ${record.number[last]}`;
    });
  }

  resize() {
    const video = $("video");
    const ratio = video.videoWidth ? video.videoWidth / video.videoHeight : this.ratio;
    $("screen").style.aspectRatio = ratio;
    $("screen").style.maxWidth = `calc(75vh * ${ratio})`;
    this.redrawTimeline();
    this.draw();
  }

  // --- Video

  openVideo(source, name) {
    const video = $("video");
    this.videoName = name;
    this.origin = this.videoPlace = null;
    this.target ??= this.place;
    this.sought = undefined;
    notify("");
    video.src = source;
    this.load();
  }

  // Loads the video, and waits for its frames, no longer for those of the one before.
  load() {
    const video = $("video");
    const wait = () => {
      this.callback = video.requestVideoFrameCallback((_, { mediaTime }) => {
        wait();
        this.onVideoFrame(mediaTime);
      });
    };
    if (this.callback) video.cancelVideoFrameCallback(this.callback);
    video.load();
    wait();
  }

  openFile(file) {
    if (file) this.openVideo(URL.createObjectURL(file), file.name);
  }

  checkSize() {
    $("play").disabled = false;
    const video = $("video");
    const { width, height } = this.size;
    const ratio = video.videoWidth / video.videoHeight / this.ratio;
    this.resize();
    // Records of earlier versions have no pixel aspect ratio, which is up to a half.
    if (ratio < 0.6 || ratio > 1.7) {
      notify(`The video has ${video.videoWidth}×${video.videoHeight} px, the frames of the record ${width}×${height}: it is another video, or one that is turned.`);
    }
  }

  // Goes on without the video, which shows no frames after an error.
  cannotPlay() {
    this.videoPlace = null;
    this.sought = undefined;
    this.target ??= this.place;
    $("play").disabled = true;
    $("video").pause();
    this.arrive();
    const name = quoted(this.videoName);
    const copy = quoted(`${this.videoName.replace(/\.[^.]*$/, "")}-browser.mp4`);
    const fault = this.origin !== null ? "cannot decode the video here" : "cannot play the video, or it is not there";
    notify(
      `This browser ${fault}. Choose the file again, write the page with --proxy, or choose a copy in another format with the same frames:`,
      `ffmpeg -i ${name} -map 0:v:0 -fps_mode passthrough -vf 'scale=ceil(iw/2)*2:ceil(ih/2)*2' -c:v libx264 -pix_fmt yuv420p ${copy}`,
    );
  }

  togglePlay() {
    const video = $("video");
    if (this.videoPlace === null || video.error) return;
    if (!video.paused) return this.show(this.videoPlace ?? this.place);
    clearTimeout(this.waiting);
    this.target = null;
    video.play();
  }

  // --- Parts that are filled once

  fillLayers() {
    for (const [name, title] of LAYERS) {
      const box = checkbox(title, this.picture.layers[name], (isOn) => {
        this.picture.layers[name] = isOn;
        this.draw();
      });
      $("layers").append(box);
    }
  }

  fillChannels() {
    for (const name of this.record.channels.keys()) {
      const box = checkbox(name, FIRST_CHANNELS.includes(name), (isOn) => (isOn ? this.openCurves([name]) : this.closeCurve(name)));
      $("channels").append(box);
    }
  }

  async openCurves(names) {
    for (const name of names) {
      const curve = new Curve(name, this.record, this.axis);
      await curve.load();
      this.curves.set(name, curve);
      $("curves").append(curve.figure);
      this.listenTrack(curve.track, curve);
      curve.tell(this.place);
    }
    this.redrawTimeline();
  }

  closeCurve(name) {
    this.curves.get(name)?.figure.remove();
    this.curves.delete(name);
  }

  fillFindings() {
    $("findings").hidden = this.findings.length === 0;
    const rows = this.findings.map(({ first, last, face, text }) => {
      const link = document.createElement("a");
      link.textContent = first === last ? first : `${first}–${last}`;
      link.href = `#frame=${first}`;
      return tableRow([link, face ?? "", text]);
    });
    $("finding-rows").replaceChildren(...rows);
  }

  // Goes to the next finding in a direction, 1 or −1.
  showFinding(direction) {
    const places = this.findings.map(({ place }) => place).filter((place) => direction * (place - this.place) > 0);
    if (places.length) this.show(direction > 0 ? Math.min(...places) : Math.max(...places));
  }

  followHash() {
    const found = /^#frame=(\d+)$/.exec(location.hash);
    if (found) this.showNumber(Number(found[1]));
    return Boolean(found);
  }

  // --- Events

  listen() {
    const { axis } = this;
    const press = (id, action) => $(id).addEventListener("click", action);
    const middle = () => (axis.from + axis.to) / 2;
    press("previous", () => this.step(-1));
    press("next", () => this.step(1));
    press("play", () => this.togglePlay());
    press("zoom-in", () => axis.zoom(1 / 2, this.place));
    press("zoom-out", () => axis.zoom(2, middle()));
    press("zoom-all", () => axis.set(0, axis.frames));
    press("earlier", () => axis.move(-0.8));
    press("later", () => axis.move(0.8));
    $("frame").addEventListener("change", () => this.showNumber($("frame").valueAsNumber));
    $("speed").addEventListener("change", () => ($("video").playbackRate = Number($("speed").value)));
    $("sound").addEventListener("change", () => ($("video").muted = !$("sound").checked));
    $("file").addEventListener("change", () => this.openFile($("file").files[0]));
    $("filter").addEventListener("input", () => this.filterChannels($("filter").value.toLowerCase()));
    axis.addEventListener("change", () => this.redrawTimeline());
    window.addEventListener("hashchange", () => this.followHash());
    window.addEventListener("resize", () => this.resize());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redrawTimeline());
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      this.openFile(event.dataTransfer.files[0]);
    });
    this.listenTrack($("lanes"), null);
    this.listenVideo();
  }

  listenVideo() {
    const video = $("video");
    const showPlay = () => ($("play").textContent = video.paused ? "Play" : "Pause");
    for (const name of ["play", "pause"]) video.addEventListener(name, showPlay);
    video.addEventListener("error", () => this.cannotPlay());
    video.addEventListener("seeked", () => {
      if (this.target !== null && this.sought !== this.target) this.seek();
    });
  }

  // A press on a track seeks, also while the pointer moves; over a curve, the values are told.
  listenTrack(track, curve) {
    const hover = track.querySelector(".hover");
    const place = (event) => this.axis.placeAt(event.clientX - track.getBoundingClientRect().left, track.clientWidth);
    track.addEventListener("pointerdown", (event) => {
      track.setPointerCapture(event.pointerId);
      this.show(place(event));
    });
    track.addEventListener("pointermove", (event) => {
      if (event.buttons) return this.show(place(event));
      if (!curve) return;
      hover.hidden = false;
      hover.style.transform = `translateX(${this.axis.x(place(event) + 0.5, track.clientWidth)}px)`;
      curve.tell(place(event));
    });
    track.addEventListener("pointerleave", () => {
      if (!curve) return;
      hover.hidden = true;
      curve.tell(this.place);
    });
    track.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.axis.zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event));
      },
      { passive: false },
    );
  }

  filterChannels(text) {
    for (const box of $("channels").children) box.hidden = !box.textContent.toLowerCase().includes(text);
  }

  onKey(event) {
    const { target, key } = event;
    const isText = target.matches("select, input:not([type=checkbox]):not([type=file])");
    if (isText || event.ctrlKey || event.metaKey || event.altKey) return;
    // Buttons and links have keys of their own.
    if (key === " " && target.matches("button, input, summary, a")) return;
    const step = event.shiftKey ? 10 : 1;
    const { axis, record } = this;
    const actions = {
      " ": () => this.togglePlay(),
      ArrowLeft: () => this.step(-step),
      ArrowRight: () => this.step(step),
      Home: () => this.show(0),
      End: () => this.show(record.frames - 1),
      PageUp: () => axis.move(-0.8),
      PageDown: () => axis.move(0.8),
      g: () => $("frame").select(),
      n: () => this.showFinding(1),
      p: () => this.showFinding(-1),
      "+": () => axis.zoom(1 / 2, this.place),
      "-": () => axis.zoom(2, this.place),
      0: () => axis.set(0, axis.frames),
    };
    const action = actions[key] ?? actions[key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  }
}

function tableRow(cells) {
  const row = document.createElement("tr");
  for (const content of cells) {
    const cell = document.createElement("td");
    cell.append(content);
    row.append(cell);
  }
  return row;
}

function checkbox(title, isOn, onChange) {
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = isOn;
  box.addEventListener("change", () => onChange(box.checked));
  label.append(box, ` ${title}`);
  return label;
}

// True if a test of the browser succeeds.
function works(test) {
  try {
    return Boolean(test());
  } catch {
    return false;
  }
}

// A message, with a command to copy; an empty one goes away.
function notify(text, command = "") {
  const notice = $("notice");
  notice.hidden = text === "";
  notice.textContent = text;
  if (!command) return;
  const code = document.createElement("code");
  code.textContent = command;
  notice.append(document.createElement("br"), code);
}

// A name as a shell and ffmpeg read it.
function quoted(name) {
  const path = name.startsWith("-") ? `./${name}` : name;
  return `'${path.replaceAll("'", "'\\''")}'`;
}

Page.open();

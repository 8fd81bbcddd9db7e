// The time axis, which lanes and curves share, and the lanes of the faces.

// Sizes in CSS pixels.
const GUTTER = 60;
const LANE = 16;
const BAR = 12;
const AXIS = 34;

// Lanes of a view at most: more would not be told apart.
const MOST_LANES = 100;

// Frames of the closest zoom.
const LEAST_FRAMES = 10;

const MARKS = { gap: "×", skipped: "…", error: "!" };

// Heights of bars for the kinds found, held, predicted.
const BAR_HEIGHTS = [BAR, BAR / 2, 2];

class TimeAxis extends EventTarget {
  constructor(frames) {
    super();
    this.frames = frames;
    this.set(0, frames);
  }

  set(from, to) {
    const span = Math.min(Math.max(to - from, Math.min(LEAST_FRAMES, this.frames)), this.frames);
    this.from = Math.min(Math.max(0, from), this.frames - span);
    this.to = this.from + span;
    this.dispatchEvent(new Event("change"));
  }

  // Zooms around a place: above 1 further away.
  zoom(factor, around) {
    const span = (this.to - this.from) * factor;
    const share = (around - this.from) / (this.to - this.from);
    this.set(around - share * span, around + (1 - share) * span);
  }

  move(share) {
    const way = share * (this.to - this.from);
    this.set(this.from + way, this.to + way);
  }

  // Moves so that a place is seen.
  follow(place) {
    if (place >= this.from && place < this.to) return;
    const span = this.to - this.from;
    this.set(place - span / 10, place + (span * 9) / 10);
  }

  x(place, width) {
    return GUTTER + ((place - this.from) / (this.to - this.from)) * (width - GUTTER);
  }

  placeAt(x, width) {
    const place = this.from + ((x - GUTTER) / (width - GUTTER)) * (this.to - this.from);
    return Math.min(Math.max(Math.floor(place), 0), this.frames - 1);
  }
}

// Sets the size of a canvas in CSS pixels, and returns its context.
function sized(canvas, height) {
  const pixels = window.devicePixelRatio || 1;
  const width = canvas.parentElement.clientWidth;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * pixels);
  canvas.height = Math.round(height * pixels);
  const context = canvas.getContext("2d");
  context.setTransform(pixels, 0, 0, pixels, 0, 0);
  context.font = "12px system-ui, sans-serif";
  return { context, width };
}

function themeColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

function timeText(seconds) {
  const minutes = Math.floor(seconds / 60);
  return `${minutes}:${(seconds - 60 * minutes).toFixed(3).padStart(6, "0")}`;
}

class Lanes {
  constructor(element, record, axis, findings) {
    this.canvas = element.querySelector("canvas");
    this.record = record;
    this.axis = axis;
    this.findings = findings;
  }

  // The faces that are in the view, by their indices.
  visible() {
    const { from, to } = this.axis;
    const isSeen = (runs) => runs.some((run) => run.to > from && run.from < to);
    const all = this.record.runs.map((runs, id) => (isSeen(runs) ? id : -1)).filter((id) => id >= 0);
    return { shown: all.slice(0, MOST_LANES), hidden: Math.max(0, all.length - MOST_LANES) };
  }

  draw() {
    const { shown, hidden } = this.visible();
    const height = AXIS + LANE * (shown.length + Math.sign(hidden)) + 4;
    const { context, width } = sized(this.canvas, height);
    this.context = context;
    this.width = width;
    this.ticks();
    this.marks();
    shown.forEach((id, index) => this.lane(id, AXIS + LANE * index));
    context.fillStyle = themeColor("--fore");
    if (hidden) context.fillText(`${hidden} more faces: zoom in`, GUTTER, height - 6);
  }

  ticks() {
    const { context, width, axis, record } = this;
    context.fillStyle = themeColor("--faint");
    context.textBaseline = "alphabetic";
    const count = Math.max(1, Math.floor((width - GUTTER) / 110));
    for (let tick = 0; tick < count; tick++) {
      const place = Math.floor(axis.from + (tick / count) * (axis.to - axis.from));
      const x = axis.x(place, width);
      context.fillRect(x, 14, 1, 4);
      context.fillText(timeText(record.time[place]), x, 11);
    }
  }

  // Marks of frames; two that would fall on each other are drawn once.
  marks() {
    const { context, axis, record, width } = this;
    context.fillStyle = themeColor("--fore");
    let free = -Infinity;
    for (let place = Math.floor(axis.from); place < Math.min(axis.to, axis.frames); place++) {
      const mark = MARKS[record.state[place]];
      const x = axis.x(place, width);
      if (!mark || x < free) continue;
      context.fillText(mark, x, 30);
      free = x + 8;
    }
    for (const place of record.cuts) this.mark(place, () => context.fillRect(axis.x(place, width), 18, 2, this.canvas.height));
    for (const { place } of this.findings) this.mark(place, () => context.fillText("▾", axis.x(place, width) - 4, 24));
  }

  mark(place, draw) {
    if (place >= this.axis.from && place < this.axis.to) draw();
  }

  lane(id, top) {
    const { context, axis, width, record } = this;
    const face = record.header.ids[id];
    context.fillStyle = themeColor("--fore");
    context.fillText(`face ${face}`, 4, top + BAR);
    context.fillStyle = colorOf(face, record.header.palette);
    context.strokeStyle = themeColor("--fore");
    for (const { from, to, kind } of record.runs[id]) {
      if (to <= axis.from || from >= axis.to) continue;
      const left = Math.max(GUTTER, axis.x(from, width));
      const right = Math.max(left + 1, axis.x(to, width));
      const height = BAR_HEIGHTS[kind];
      context.fillRect(left, top + BAR - height + 2, right - left, height);
    }
    // The id begins and ends here.
    const runs = record.runs[id];
    for (const end of [runs[0].from, runs[runs.length - 1].to]) {
      const x = axis.x(end, width);
      if (x >= GUTTER) context.strokeRect(x, top + 2, 0, BAR);
    }
  }
}

// The time axis, which the ruler, lanes and curves share, and the ruler and the lanes of the faces.

// Sizes in CSS pixels.
const GUTTER = 160;
const RULER = 30;
const LANE = 20;
const BAR = 12;

// Distance from tick to tick at least, for a frame and for a time.
const TICKS = { frames: 64, time: 96 };

// Width of a mark, within which the marks of others are not drawn.
const MARK = 7;

// Lanes of a view at most: more would not be told apart.
const MOST_LANES = 100;

// Frames of the closest zoom.
const LEAST_FRAMES = 10;

const MARKS = { gap: "×", skipped: "…", error: "!" };

// Seconds from tick to tick.
const SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];

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

  // Zooms around a place: above 1 closer.
  zoom(factor, around) {
    const span = (this.to - this.from) / factor;
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

// The first number of a series 1, 2, 5, 10 and so on that is not below a limit.
function roundStep(limit) {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(limit)));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= limit) ?? 10 * power;
}

class Ruler {
  constructor(element, record, axis, findings, clock) {
    Object.assign(this, { canvas: element.querySelector("canvas"), record, axis, findings, clock });
    this.unit = "frames";
  }

  draw() {
    const { context, width } = sized(this.canvas, RULER);
    Object.assign(this, { context, width });
    context.beginPath();
    context.rect(GUTTER, 0, width, RULER);
    context.clip();
    context.fillStyle = themeColor("--faint");
    context.textBaseline = "top";
    for (const [place, text] of this.ticks()) {
      const x = Math.round(this.axis.x(place, width));
      context.fillRect(x, 2, 1, 12);
      if (x + 4 + context.measureText(text).width < width) context.fillText(text, x + 4, 2);
    }
    context.fillStyle = themeColor("--fore");
    this.marks(this.states());
    context.fillStyle = themeColor("--warn");
    this.marks(this.findings.map(({ place }) => [place, "▾"]));
  }

  // The least distance from tick to tick, in frames.
  get least() {
    const { axis, width } = this;
    return (TICKS[this.unit] * (axis.to - axis.from)) / (width - GUTTER);
  }

  // The places of the ticks with their texts.
  ticks() {
    if (this.unit === "frames") return this.frameTicks(roundStep(this.least), 0, String);
    const { rate } = this.clock;
    if (!rate) return this.timeTicks();
    const second = SECONDS.filter((seconds) => seconds >= 1).find((seconds) => seconds * rate >= this.least) ?? 7200;
    const frames = roundStep(this.least);
    return this.frameTicks(frames < rate / 2 ? frames : second * rate, 1, (number) => this.clock.timecode(number - 1));
  }

  // Ticks at the numbers that a multiple of `step` follows by `offset`.
  frameTicks(step, offset, text) {
    const { record, axis } = this;
    const ticks = [];
    const last = record.number[Math.min(Math.ceil(axis.to), record.frames - 1)];
    const first = Math.ceil((record.number[Math.floor(axis.from)] - offset) / step) * step + offset;
    for (let number = first; number <= last; number += step) {
      const place = record.placeOf(number);
      if (record.number[place] === number) ticks.push([place, text(number)]);
    }
    return ticks;
  }

  timeTicks() {
    const { record, axis } = this;
    const [from, to] = [axis.from, Math.min(axis.to, record.frames - 1)].map((place) => record.time[Math.floor(place)]);
    const least = (this.least * (to - from)) / (axis.to - axis.from);
    const step = SECONDS.find((seconds) => seconds >= least) ?? 7200;
    const ticks = [];
    for (let count = Math.ceil(from / step); count * step <= to; count++) {
      ticks.push([record.placeAt(count * step), `${Number((count * step).toFixed(1))} s`]);
    }
    return ticks;
  }

  // The marks of frames by their states.
  states() {
    const { record, axis } = this;
    const marks = [];
    for (let place = Math.floor(axis.from); place < Math.min(axis.to, record.frames); place++) {
      if (MARKS[record.state[place]]) marks.push([place, MARKS[record.state[place]]]);
    }
    return marks;
  }

  // Draws marks; those that would fall on each other are drawn once.
  marks(marks) {
    const { context, axis, width } = this;
    let free = -Infinity;
    for (const [place, text] of marks) {
      const x = axis.x(place + 0.5, width) - MARK / 2;
      if (place < axis.from || place >= axis.to || x < free) continue;
      context.fillText(text, x, 17);
      free = x + MARK;
    }
  }
}

class Lanes {
  constructor(element, record, axis, people) {
    Object.assign(this, { canvas: element.querySelector("canvas"), record, axis, people });
  }

  // The faces that are in the view, by their indices.
  visible() {
    const { from, to } = this.axis;
    const isSeen = (runs) => runs.some((run) => run.to > from && run.from < to);
    const seen = this.people.order.filter((face) => isSeen(this.record.runs[face]) && this.people.isShown(face));
    return { shown: seen.slice(0, MOST_LANES), hidden: Math.max(0, seen.length - MOST_LANES) };
  }

  draw() {
    const { shown, hidden } = this.visible();
    const height = LANE * Math.max(1, shown.length + Math.sign(hidden)) + 4;
    const { context, width } = sized(this.canvas, height);
    Object.assign(this, { context, width });
    context.textBaseline = "middle";
    shown.forEach((face, index) => this.lane(face, LANE * index));
    context.fillStyle = themeColor("--faint");
    if (hidden) context.fillText(`${counted(hidden, "more face")}: zoom in`, GUTTER, height - LANE / 2);
    if (shown.length === 0) context.fillText("No face here", 8, LANE / 2 + 2);
    context.fillStyle = themeColor("--fore");
    for (const place of this.record.cuts) {
      if (place > this.axis.from && place < this.axis.to) context.fillRect(this.axis.x(place, width), 0, 1, height);
    }
  }

  lane(face, top) {
    const { context, axis, width, record, people } = this;
    context.fillStyle = themeColor("--fore");
    context.fillText(people.name(face), 8, top + LANE / 2 + 1, GUTTER - 16);
    const color = people.color(face);
    for (const { from, to, kind } of record.runs[face]) {
      if (to <= axis.from || from >= axis.to) continue;
      const left = Math.max(GUTTER, axis.x(from, width));
      const right = Math.max(left + 1, axis.x(Math.min(to, axis.to), width));
      this.bar(left, right - left, top + (LANE - BAR) / 2, kind, color);
    }
  }

  // A full bar for a face that was found, a striped one for a held one, a line for a predicted one.
  bar(left, width, top, kind, color) {
    const { context } = this;
    context.fillStyle = color;
    if (kind === PREDICTED) return context.fillRect(left, top + BAR / 2 - 1, width, 2);
    if (kind === PRESENT) return context.fillRect(left, top, width, BAR);
    for (let x = 0; x < width; x += 4) context.fillRect(left + x, top, Math.min(2, width - x), BAR);
  }
}

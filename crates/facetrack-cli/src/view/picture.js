// Draws the picture of the video and the faces of the record.

// Layers with their titles, and whether they are shown at first. Keys 1 to 7 switch them.
const LAYERS = [
  ["boxes", "Boxes", true],
  ["labels", "Labels", true],
  ["contours", "Contours", true],
  ["points", "Points", false],
  ["mesh", "Mesh", false],
  ["axes", "Axes", true],
  ["gaze", "Gaze", true],
];

const KINDS = ["found", "held", "predicted"];

// Dashes of boxes, in line widths, for each kind.
const BOX_DASHES = [[], [5, 3], [1, 2]];

// As in facetrackoverlay: length of an axis per width of the face, and of an arrow per distance of
// the pupil from the middle of the eye.
const AXIS_LENGTH = 0.5;
const GAZE_LENGTH = 4;
const AXES = ["#d55e00", "#009e73", "#0072b2"];

// Width of lines, and the distance at which the pointer finds a point, in pixels of the page.
const LINE_WIDTH = 1.5;
const NEAR = 8;

// Share of the height that a followed face has.
const FOLLOWED = 0.45;

const MAX_ZOOM = 40;

// Zoom above which pixels of the video are seen as squares.
const SQUARES = 4;

// The ground around the picture, and the one of a frame without a picture. Colors are judged here, so
// both are the same in every theme.
const GROUND = "#4a4a4a";
const EMPTY = "#6e6e6e";

// The color of a face depends only on its id, as in facetrackoverlay.
function colorOf(id, palette) {
  return `rgb(${palette[(id - 1 + palette.length) % palette.length].join(" ")})`;
}

class Picture {
  // `channels` are the values of the channels that are drawn, by name.
  constructor(canvas, record, channels, people) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.record = record;
    this.channels = channels;
    this.people = people;
    this.layers = Object.fromEntries(LAYERS.map(([name, , isShown]) => [name, isShown]));
    this.fit();
  }

  value(name, row) {
    return this.channels[name] ? this.channels[name][row] : NaN;
  }

  box(row) {
    const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => this.value(`box.${name}`, row));
    return { x, y, width, height };
  }

  // --- The view: a zoom, where 1 fits, and the middle, as a share of the picture

  fit() {
    this.view = { zoom: 1, x: 0.5, y: 0.5 };
  }

  get pixels() {
    return window.devicePixelRatio || 1;
  }

  // A pixel of the video is one of the screen.
  showActual() {
    this.view.zoom = 1 / this.fitted;
  }

  // Zooms around a point of the page.
  zoom(factor, { x, y }) {
    const { view, canvas, pixels } = this;
    const zoom = Math.min(Math.max(view.zoom * factor, 1), MAX_ZOOM);
    const share = 1 / view.zoom - 1 / zoom;
    view.x += ((x * pixels - canvas.width / 2) / (this.size.width * this.size.aspect * this.fitted)) * share;
    view.y += ((y * pixels - canvas.height / 2) / (this.size.height * this.fitted)) * share;
    view.zoom = zoom;
  }

  move(x, y) {
    this.view.x -= (x * this.pixels) / (this.size.width * this.scale[0]);
    this.view.y -= (y * this.pixels) / (this.size.height * this.scale[1]);
  }

  // Shows the face of a row in the middle.
  follow(row) {
    const { x, y, width, height } = this.box(row);
    const zoom = (FOLLOWED * this.canvas.height) / (height * this.fitted);
    this.view = {
      zoom: Math.min(Math.max(zoom, 1), MAX_ZOOM),
      x: (x + width / 2) / this.size.width,
      y: (y + height / 2) / this.size.height,
    };
  }

  // Sets the size of the canvas to the pixels that it has on the screen. `size` is the size that
  // positions refer to, with the aspect ratio of a pixel.
  resize(size) {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight].map((side) => Math.max(1, Math.round(side * this.pixels)));
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    this.size = size;
    this.fitted = Math.min(width / (size.width * size.aspect), height / size.height);
  }

  // Sets the scale and the corner of the picture, which has no empty side that it need not have.
  place() {
    const { view, size, canvas, fitted } = this;
    const scale = fitted * view.zoom;
    this.scale = [scale * size.aspect, scale];
    const sides = [size.width * this.scale[0], size.height * this.scale[1]];
    const corner = (side, whole, middle) => {
      if (side <= whole) return [(whole - side) / 2, 0.5];
      const start = Math.min(Math.max(whole / 2 - middle * side, whole - side), 0);
      return [start, (whole / 2 - start) / side];
    };
    const [left, x] = corner(sides[0], canvas.width, view.x);
    const [top, y] = corner(sides[1], canvas.height, view.y);
    Object.assign(view, { x, y });
    this.corner = [left, top];
    return sides;
  }

  // Draws the frame at a place.
  draw(place, video, points) {
    const { context, canvas } = this;
    const [width, height] = this.place();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = GROUND;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = EMPTY;
    context.fillRect(...this.corner, width, height);
    context.imageSmoothingEnabled = this.scale[1] < SQUARES * this.pixels;
    if (video) context.drawImage(video, ...this.corner, width, height);
    this.line = LINE_WIDTH * this.pixels;
    this.points = points;
    this.rows = this.record.rowsAt(place).filter((row) => this.people.isShown(this.record.rowId[row]));
    for (const row of this.rows) this.face(row, points?.get(row) ?? []);
    canvas.dataset.corner = this.corner;
    canvas.dataset.scale = this.scale;
  }

  at(x, y) {
    return [this.corner[0] + x * this.scale[0], this.corner[1] + y * this.scale[1]];
  }

  // Describes the point of a face that is near a point of the page.
  nearest({ x, y }) {
    let found = null;
    let least = NEAR * this.pixels;
    for (const row of this.rows ?? []) {
      for (const { set, values } of this.points?.get(row) ?? []) {
        for (let index = 0; index < set.count; index++) {
          const [atX, atY] = this.at(values[2 * index], values[2 * index + 1]);
          const away = Math.hypot(atX - x * this.pixels, atY - y * this.pixels);
          if (away >= least) continue;
          least = away;
          found = `${this.people.name(this.record.rowId[row])} · ${set.name} ${index}: ${values[2 * index].toFixed(1)}, ${values[2 * index + 1].toFixed(1)} px`;
        }
      }
    }
    return found;
  }

  face(row, sets) {
    const color = colorOf(this.record.idOf(row), this.record.header.palette);
    for (const { set, values } of sets) {
      if (this.layers.mesh) this.edges(set.mesh, values, color, 0.5);
      if (this.layers.contours) this.edges(set.contours, values, color, 1);
      // Key points have no contours.
      if (this.layers.points || !set.contours) this.dots(values, color);
    }
    const box = this.box(row);
    if (this.layers.boxes) this.outline(box, this.record.rowKind[row], color);
    if (this.layers.gaze) this.gaze(row, sets);
    if (this.layers.axes) this.axes(row, box, sets);
    if (this.layers.labels) this.label(row, box);
  }

  // A line with a dark rim, so that it is seen on every picture.
  stroke(path, color, width, dashes = []) {
    const { context } = this;
    context.setLineDash(dashes.map((dash) => dash * this.line));
    for (const [style, extra] of [["rgb(0 0 0 / 55%)", this.line], [color, 0]]) {
      context.strokeStyle = style;
      context.lineWidth = this.line * width + extra;
      context.stroke(path);
    }
    context.setLineDash([]);
  }

  edges(edges, values, color, width) {
    if (!edges) return;
    const path = new Path2D();
    for (const [from, to] of edges) {
      path.moveTo(...this.at(values[2 * from], values[2 * from + 1]));
      path.lineTo(...this.at(values[2 * to], values[2 * to + 1]));
    }
    this.context.strokeStyle = color;
    this.context.lineWidth = this.line * width;
    this.context.stroke(path);
  }

  dots(values, color) {
    this.context.fillStyle = color;
    const side = 1.6 * this.line;
    for (let index = 0; index < values.length; index += 2) {
      const [x, y] = this.at(values[index], values[index + 1]);
      this.context.fillRect(x - side / 2, y - side / 2, side, side);
    }
  }

  outline({ x, y, width, height }, kind, color) {
    const path = new Path2D();
    const [left, top] = this.at(x, y);
    const [right, bottom] = this.at(x + width, y + height);
    path.rect(left, top, right - left, bottom - top);
    this.stroke(path, color, 1, BOX_DASHES[kind]);
  }

  arrow([fromX, fromY], [toX, toY], color) {
    const path = new Path2D();
    const angle = Math.atan2(toY - fromY, toX - fromX);
    const head = 4 * this.line;
    path.moveTo(fromX, fromY);
    path.lineTo(toX, toY);
    for (const turn of [2.6, -2.6]) {
      path.moveTo(toX, toY);
      path.lineTo(toX + head * Math.cos(angle + turn), toY + head * Math.sin(angle + turn));
    }
    this.stroke(path, color, 1);
  }

  gaze(row, sets) {
    const landmarks = sets.find(({ set }) => set.eyes);
    ["right", "left"].forEach((side, index) => {
      const [x, y, score] = ["x", "y", "confidence"].map((name) => this.value(`gaze.${side}.${name}`, row));
      if (!(score > 0)) return;
      const [atX, atY] = this.at(x, y);
      this.dots([x, y], "#f0e442");
      if (!landmarks) return;
      const eye = this.at(...middleOfRim(landmarks.set.eyes[index], landmarks.values));
      const to = [atX + GAZE_LENGTH * (atX - eye[0]), atY + GAZE_LENGTH * (atY - eye[1])];
      this.arrow([atX, atY], to, "#f0e442");
    });
  }

  axes(row, box, sets) {
    const angles = ["yaw", "pitch", "roll"].map((name) => this.value(`pose.${name}`, row));
    if (angles.some(Number.isNaN)) return;
    const landmarks = sets.find(({ set }) => set.contours);
    const middle = landmarks ? mean(landmarks.values) : [box.x + box.width / 2, box.y + box.height / 2];
    const from = this.at(...middle);
    const length = box.width * this.scale[0] * AXIS_LENGTH;
    axesOf(angles).forEach(([x, y], index) => {
      const to = [from[0] + x * length, from[1] - y * length];
      this.arrow(from, to, AXES[index]);
      this.text("xyz"[index], to[0], to[1]);
    });
  }

  label(row, { x, y }) {
    const score = this.value("confidence", row);
    const words = [this.people.name(this.record.rowId[row])];
    if (this.record.rowKind[row] !== PRESENT) words.push(KINDS[this.record.rowKind[row]]);
    if (!Number.isNaN(score)) words.push(score.toFixed(2));
    const [left, top] = this.at(x, y);
    const edge = this.textHeight() + 3 * this.line;
    this.text(words.join(" "), Math.max(0, left), Math.max(0, top - edge));
  }

  textHeight() {
    return 12 * this.pixels;
  }

  // A text on a dark ground, with its corner at a point.
  text(text, x, y) {
    const { context } = this;
    const height = this.textHeight();
    context.font = `${height}px system-ui, sans-serif`;
    context.textBaseline = "top";
    context.fillStyle = "rgb(0 0 0 / 65%)";
    context.fillRect(x, y, context.measureText(text).width + height / 2, height * 1.2);
    context.fillStyle = "#fff";
    context.fillText(text, x + height / 4, y + height * 0.1);
  }
}

function mean(values) {
  const sum = [0, 0];
  values.forEach((value, index) => (sum[index % 2] += value));
  return sum.map((value) => (2 * value) / values.length);
}

function middleOfRim(rim, values) {
  return [0, 1].map((axis) => {
    const rimValues = rim.map((index) => values[2 * index + axis]);
    return (Math.min(...rimValues) + Math.max(...rimValues)) / 2;
  });
}

// Right and up of the x, y and z axes of a head: Ry(yaw)·Rx(pitch)·Rz(roll).
function axesOf(angles) {
  const [[sy, cy], [sp, cp], [sr, cr]] = angles.map((angle) => (angle * Math.PI) / 180).map((angle) => [Math.sin(angle), Math.cos(angle)]);
  return [
    [cy * cr + sy * sp * sr, cp * sr],
    [sy * sp * cr - cy * sr, cp * cr],
    [sy * cp, -sp],
  ];
}

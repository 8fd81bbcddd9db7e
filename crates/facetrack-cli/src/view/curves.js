// Curves of channels over time, a line for each face.

const CURVE = 56;

// Curves that are shown first, where they were measured.
const FIRST_CHANNELS = [...["jawOpen", "mouthSmileLeft", "eyeBlinkLeft", "browInnerUp"].map((name) => `blendshapes.${name}`), "pose.yaw"];

// Dashes of the lines of faces, in CSS pixels, so that neighbours differ without color.
const FACE_DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

class Curve {
  // `actions` has `close` and `peak`.
  constructor(name, record, axis, people, actions) {
    // Until they are loaded, nothing is drawn.
    Object.assign(this, { name, record, axis, people, values: [] });
    this.track = element("div", "curve track");
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `Curve of ${name}`);
    this.hover = element("i", "cursor hover");
    this.hover.hidden = true;
    this.output = element("output");
    const label = element("div", "gutter");
    const title = element("strong", "", shortName(name));
    title.title = name;
    label.append(
      title,
      iconButton("peak", "Go to the maximum", () => actions.peak(this)),
      iconButton("close", "Remove the curve", () => actions.close(name)),
      this.output,
    );
    this.track.append(this.canvas, label, element("i", "cursor"), this.hover);
  }

  async load() {
    this.values = await this.record.values(this.name);
  }

  // The rows of a frame whose faces are shown.
  rowsAt(place) {
    return this.record.rowsAt(place).filter((row) => this.people.isShown(this.record.rowId[row]));
  }

  // Writes the values at a place below the name.
  tell(place) {
    const texts = this.rowsAt(place).map((row) => {
      const face = this.record.rowId[row];
      const text = element("span", "value", valueText(this.name, this.values[row]));
      text.style.setProperty("--color", this.people.color(face));
      text.title = this.people.name(face);
      return text;
    });
    this.output.replaceChildren(...texts);
  }

  // The place of the largest value.
  peak() {
    let best = -1;
    for (let row = 0; row < this.values.length; row++) {
      if (this.people.isShown(this.record.rowId[row]) && !(this.values[row] <= this.values[best])) {
        if (!Number.isNaN(this.values[row])) best = row;
      }
    }
    return best < 0 ? null : this.record.rowPlace[best];
  }

  // Scores are shown from 0 to 1, so that curves can be compared.
  range() {
    const [least, most] = this.record.channels.get(this.name).range;
    if (least >= 0 && most <= 1) return [0, 1];
    return most > least ? [least, most] : [least - 1, most + 1];
  }

  draw() {
    const { context, width } = sized(this.canvas, CURVE);
    const [least, most] = this.range();
    const y = (value) => 6 + ((most - value) / (most - least)) * (CURVE - 12);
    context.fillStyle = themeColor("--line");
    for (const value of [least, most]) context.fillRect(GUTTER, Math.round(y(value)), width - GUTTER, 1);
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER, CURVE);
    context.clip();
    this.lines(width, y).forEach((path, face) => {
      context.setLineDash(FACE_DASHES[face % FACE_DASHES.length]);
      // Yellow and other light colors are not seen on a light page.
      for (const [style, lineWidth] of [[themeColor("--rim"), 3], [this.people.color(face), 1.5]]) {
        context.strokeStyle = style;
        context.lineWidth = lineWidth;
        context.stroke(path);
      }
    });
    context.restore();
    context.fillStyle = themeColor("--faint");
    context.textAlign = "right";
    for (const [value, baseline] of [[least, "bottom"], [most, "top"]]) {
      context.textBaseline = baseline;
      context.fillText(valueText(this.name, value), width - 6, y(value));
    }
    context.textAlign = "left";
  }

  // The lines of the faces in the view. A line has a hole where a face was not measured.
  lines(width, y) {
    const { record, axis, values } = this;
    const lines = new Map();
    const last = new Map();
    const end = record.rowStart[Math.min(Math.ceil(axis.to) + 1, axis.frames)];
    for (let row = record.rowStart[Math.max(0, Math.floor(axis.from) - 1)]; row < end; row++) {
      const face = record.rowId[row];
      if (Number.isNaN(values[row]) || !this.people.isShown(face)) continue;
      const place = record.rowPlace[row];
      const path = lines.get(face) ?? new Path2D();
      lines.set(face, path);
      const x = axis.x(place + 0.5, width);
      // A frame alone is a short line.
      if (last.get(face) !== place - 1) path.moveTo(x - 1, y(values[row]));
      path.lineTo(x, y(values[row]));
      last.set(face, place);
    }
    return lines;
  }
}

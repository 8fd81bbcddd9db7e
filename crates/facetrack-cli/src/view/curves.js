// Curves of channels over time, a line for each face.

const CURVE = 90;

// Curves that are shown first, where they were measured.
const FIRST_CHANNELS = ["blendshapes.jawOpen", "pose.yaw", "box.width"];

// Dashes of the lines of faces, in CSS pixels, so that neighbours differ without color.
const FACE_DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

class Curve {
  constructor(name, record, axis) {
    this.name = name;
    this.record = record;
    this.axis = axis;
    this.figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const title = document.createElement("strong");
    title.textContent = name;
    this.output = document.createElement("output");
    caption.append(title, this.output);
    this.track = document.createElement("div");
    this.track.className = "track";
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `Curve of ${name}`);
    const [cursor, hover] = ["cursor", "cursor hover"].map((className) => Object.assign(document.createElement("div"), { className }));
    hover.hidden = true;
    this.track.append(this.canvas, cursor, hover);
    this.figure.append(caption, this.track);
  }

  async load() {
    this.values = await this.record.values(this.name);
  }

  // Writes the values at a place beside the name.
  tell(place) {
    const digits = this.range()[1] > 2 ? 1 : 3;
    const texts = this.record.rowsAt(place).map((row) => {
      const value = this.values[row];
      return `face ${this.record.idOf(row)}: ${Number.isNaN(value) ? "–" : value.toFixed(digits)}`;
    });
    this.output.textContent = `frame ${this.record.number[place]}  ${texts.join("  ")}`;
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
    context.fillStyle = themeColor("--faint");
    context.textBaseline = "middle";
    for (const value of [least, most]) {
      context.fillRect(GUTTER, y(value), width - GUTTER, 1);
      context.fillText(Number(value.toPrecision(3)), 4, y(value));
    }
    context.beginPath();
    context.rect(GUTTER, 0, width - GUTTER, CURVE);
    context.clip();
    this.lines(width, y).forEach((path, id) => {
      context.setLineDash(FACE_DASHES[id % FACE_DASHES.length]);
      // Yellow and other light colors are not seen on a light page.
      for (const [style, lineWidth] of [[themeColor("--fore"), 2.5], [colorOf(this.record.header.ids[id], this.record.header.palette), 1.5]]) {
        context.strokeStyle = style;
        context.lineWidth = lineWidth;
        context.stroke(path);
      }
    });
  }

  // The lines of the faces in the view. A line has a hole where a face was not measured.
  lines(width, y) {
    const { record, axis, values } = this;
    const lines = new Map();
    const last = new Map();
    const end = record.rowStart[Math.min(Math.ceil(axis.to) + 1, axis.frames)];
    for (let row = record.rowStart[Math.max(0, Math.floor(axis.from) - 1)]; row < end; row++) {
      if (Number.isNaN(values[row])) continue;
      const id = record.rowId[row];
      const place = record.rowPlace[row];
      const path = lines.get(id) ?? new Path2D();
      lines.set(id, path);
      const x = axis.x(place + 0.5, width);
      // A frame alone is a short line.
      if (last.get(id) !== place - 1) path.moveTo(x - 1, y(values[row]));
      path.lineTo(x, y(values[row]));
      last.set(id, place);
    }
    return lines;
  }
}

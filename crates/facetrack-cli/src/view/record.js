// The record. A place is the index of a frame in it, a row is a face in a frame.

// Parts of the points that stay decoded.
const PARTS_KEPT = 6;

// Times of containers are rounded to milliseconds at most. In seconds.
const ROUNDING = 0.002;

const PRESENT = 0;
const HELD = 1;
const PREDICTED = 2;

class FaceRecord {
  static async open(header) {
    const names = ["numbers", "times", "states", "row-places", "row-ids", "origins"];
    return new FaceRecord(header, await Promise.all(names.map(numbersOf)));
  }

  constructor(header, [numbers, times, states, rowPlaces, rowIds, origins]) {
    this.header = header;
    this.channels = new Map(header.channels.map((channel, index) => [channel.name, { ...channel, index }]));
    this.parts = new Map();
    this.readFrames(numbers, times, states);
    this.readRows(rowPlaces, rowIds, origins);
  }

  get frames() {
    return this.header.frames;
  }

  readFrames(numbers, times, states) {
    this.number = new Float64Array(this.frames);
    // Seconds.
    this.time = new Float64Array(this.frames);
    this.state = [];
    this.cuts = [];
    let number = 0;
    let time = 0;
    for (let place = 0; place < this.frames; place++) {
      this.number[place] = number += numbers[place];
      this.time[place] = (time += times[place]) / 1e6;
      const state = states[place];
      // The fourth bit is a cut.
      this.state.push(this.header.states[state % 8]);
      if (state >= 8) this.cuts.push(place);
    }
  }

  readRows(places, ids, origins) {
    const kinds = this.header.origins.map((origin) => ["held", "predicted"].indexOf(origin) + 1);
    this.rowStart = new Uint32Array(this.frames + 1);
    this.rowPlace = new Uint32Array(this.header.rows);
    this.rowId = new Uint32Array(this.header.rows);
    this.rowKind = new Uint8Array(this.header.rows);
    let place = 0;
    for (let row = 0; row < this.header.rows; row++) {
      this.rowPlace[row] = place += places[row];
      this.rowId[row] = ids[row];
      this.rowKind[row] = kinds[origins[row]];
      this.rowStart[place + 1] = row + 1;
    }
    for (let at = 1; at <= this.frames; at++) {
      this.rowStart[at] = Math.max(this.rowStart[at], this.rowStart[at - 1]);
    }
    this.runs = this.header.ids.map(() => []);
    for (let row = 0; row < this.header.rows; row++) this.extendRun(row);
  }

  // A run is a part of a lane: frames in which a face has the same kind of measurement.
  extendRun(row) {
    const runs = this.runs[this.rowId[row]];
    const last = runs[runs.length - 1];
    const place = this.rowPlace[row];
    const kind = this.rowKind[row];
    if (last && last.to === place && last.kind === kind) last.to = place + 1;
    else runs.push({ from: place, to: place + 1, kind });
  }

  rowsAt(place) {
    const rows = [];
    for (let row = this.rowStart[place]; row < this.rowStart[place + 1]; row++) rows.push(row);
    return rows;
  }

  idOf(row) {
    return this.header.ids[this.rowId[row]];
  }

  // The values of a channel in every row, not a number where it was not measured.
  values(name) {
    const channel = this.channels.get(name);
    if (!channel) return Promise.resolve(null);
    channel.values ??= this.readChannel(channel);
    return channel.values;
  }

  async readChannel(channel) {
    const numbers = await numbersOf(`channel-${channel.index}`);
    const values = new Float32Array(this.header.rows).fill(NaN);
    const last = new Float64Array(this.header.ids.length);
    for (let row = 0; row < values.length; row++) {
      if (numbers[row] == null) continue;
      values[row] = (last[this.rowId[row]] += numbers[row]) * channel.step;
    }
    return values;
  }

  // The points of the faces around a place, by their rows: each a list of sets with coordinates.
  pointsAt(place) {
    const part = Math.floor(place / this.header.points.frames);
    const known = this.parts.get(part) ?? { points: null };
    known.promise ??= this.readPart(part).then((points) => (known.points = points));
    // The part that was used last is the last one.
    this.parts.delete(part);
    this.parts.set(part, known);
    if (this.parts.size > PARTS_KEPT) this.parts.delete(this.parts.keys().next().value);
    return known;
  }

  async readPart(part) {
    const { frames, sets, step } = this.header.points;
    const numbers = await numbersOf(`points-${part}`);
    const last = new Map();
    const points = new Map();
    let at = 0;
    const end = this.rowStart[Math.min((part + 1) * frames, this.frames)];
    for (let row = this.rowStart[part * frames]; row < end; row++) {
      const faceSets = [];
      for (let left = numbers[at++]; left > 0; left--) {
        const index = numbers[at++];
        const key = `${this.rowId[row]} ${index}`;
        const before = last.get(key) ?? new Float32Array(2 * sets[index].count);
        const values = before.map((value) => value + numbers[at++] * step);
        last.set(key, values);
        faceSets.push({ set: sets[index], values });
      }
      points.set(row, faceSets);
    }
    return points;
  }

  // The place of the last frame that has begun at a time in seconds.
  placeAt(time) {
    return lastAtMost(this.time, time);
  }

  // The place of the frame whose beginning is nearest to a time.
  placeNear(time) {
    const place = this.placeAt(time);
    const next = Math.min(place + 1, this.frames - 1);
    return this.time[next] - time < time - this.time[place] ? next : place;
  }

  // The place of the frame with this number, or of the one before it.
  placeOf(number) {
    return lastAtMost(this.number, number);
  }
}

// The index of the last value that is at most `limit`, of values that increase; 0 if there is none.
function lastAtMost(values, limit) {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (values[middle] <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}

// The faces of the record by their indices: names, colors, and which are shown, followed and selected.

// Chips at most.
const MOST_CHIPS = 200;

// Side of a thumbnail in pixels of the page, and its size per side of the face.
const THUMBNAIL = 32;
const AROUND = 1.3;

// Events: `change`.
class People extends EventTarget {
  constructor(record) {
    super();
    this.record = record;
    this.ids = record.header.ids;
    // Indices by their ids, the order in which faces are listed.
    this.order = this.ids.map((_, face) => face).sort((one, other) => this.ids[one] - this.ids[other]);
    this.names = new Map();
    this.hidden = new Set();
    this.followed = null;
    this.selected = this.order[0];
  }

  // Sets some of `names`, `hidden`, `followed` and `selected`.
  set(values) {
    Object.assign(this, values);
    this.dispatchEvent(new Event("change"));
  }

  isShown(face) {
    return !this.hidden.has(face);
  }

  name(face) {
    const name = this.names.get(face);
    return name ? `${this.ids[face]} ${name}` : `Face ${this.ids[face]}`;
  }

  color(face) {
    return colorOf(this.ids[face], this.record.header.palette);
  }

  rename(face, name) {
    if (name.trim()) this.names.set(face, name.trim());
    else this.names.delete(face);
    this.set({});
  }

  toggle(face) {
    if (!this.hidden.delete(face)) this.hidden.add(face);
    this.set({});
  }

  // Hides all faces but one; shows all if only this one is shown.
  showOnly(face) {
    const others = this.order.filter((other) => other !== face);
    this.set({ hidden: new Set(this.isShown(face) && this.hidden.size === this.ids.length - 1 ? [] : others) });
  }
}

// A chip for each face, which says where the face is.
class Chips {
  constructor(container, people, picture) {
    Object.assign(this, { people, picture, record: people.record });
    this.chips = people.order.slice(0, MOST_CHIPS).map((face) => this.chip(face));
    container.replaceChildren(...this.chips.map(({ element }) => element));
    const others = people.ids.length - this.chips.length;
    if (others > 0) container.append(element("p", "note", `${counted(others, "more face")} without a chip`));
    if (people.ids.length === 0) container.append(element("p", "note", "No face in any frame"));
    people.addEventListener("change", () => this.update());
    this.update();
  }

  chip(face) {
    const { people } = this;
    const chip = element("div", "chip");
    chip.style.setProperty("--color", people.color(face));
    const thumbnail = document.createElement("canvas");
    thumbnail.setAttribute("aria-hidden", "true");
    const number = element("b", "", people.ids[face]);
    const name = document.createElement("input");
    name.placeholder = "Name";
    name.setAttribute("aria-label", `Name of face ${people.ids[face]}`);
    name.addEventListener("change", () => people.rename(face, name.value));
    const state = element("output");
    const eye = iconButton("eye", "Show or hide; with Alt, only this face", (event) => {
      if (event.altKey) people.showOnly(face);
      else people.toggle(face);
    });
    const follow = iconButton("follow", "Follow in the picture", () => {
      people.set({ followed: people.followed === face ? null : face, selected: face });
    });
    chip.append(thumbnail, number, name, state, follow, eye);
    chip.addEventListener("click", (event) => event.target.closest("button") ?? people.set({ selected: face }));
    return { face, element: chip, thumbnail, name, state, eye, follow };
  }

  update() {
    const { people } = this;
    this.chips.forEach(({ face, element, name, eye, follow }) => {
      element.classList.toggle("selected", people.selected === face);
      element.classList.toggle("off", !people.isShown(face));
      if (document.activeElement !== name) name.value = people.names.get(face) ?? "";
      setIcon(eye, people.isShown(face) ? "eye" : "hidden");
      eye.setAttribute("aria-pressed", people.isShown(face));
      follow.setAttribute("aria-pressed", people.followed === face);
    });
  }

  // Writes where each face is in the frame at a place.
  tell(place) {
    const rows = new Map(this.record.rowsAt(place).map((row) => [this.record.rowId[row], row]));
    this.chips.forEach(({ face, state }) => {
      state.textContent = rows.has(face) ? this.stateOf(rows.get(face)) : this.absence(face, place);
    });
  }

  stateOf(row) {
    const kind = this.record.rowKind[row];
    if (kind !== PRESENT) return KINDS[kind];
    const score = this.picture.value("confidence", row);
    return Number.isNaN(score) ? "found" : `score ${score.toFixed(2)}`;
  }

  absence(face, place) {
    const runs = this.record.runs[face];
    const isBetween = place >= runs[0].from && place < runs[runs.length - 1].to;
    return isBetween ? "lost" : "not here";
  }

  // Draws the face of each chip from a video of its own, one after the other.
  async drawThumbnails(source, timeOf, size) {
    const video = document.createElement("video");
    video.muted = true;
    video.src = source;
    this.source = source;
    try {
      await happens(video, "loadeddata");
      for (const { face, thumbnail } of this.chips) {
        if (this.source !== source) break;
        const row = this.bestRow(face);
        const isSought = happens(video, "seeked");
        video.currentTime = timeOf(this.record.rowPlace[row]);
        await isSought;
        this.drawThumbnail(thumbnail, video, this.picture.box(row), size);
      }
    } catch {
      // The page works without thumbnails.
    }
    video.removeAttribute("src");
    video.load();
  }

  // The row of the largest picture of a face.
  bestRow(face) {
    const widths = this.picture.channels["box.width"];
    let best = null;
    this.record.rowId.forEach((other, row) => {
      if (other === face && (best === null || widths[row] > widths[best])) best = row;
    });
    return best;
  }

  drawThumbnail(canvas, video, { x, y, width, height }, size) {
    const side = THUMBNAIL * (window.devicePixelRatio || 1);
    [canvas.width, canvas.height] = [side, side];
    const [scaleX, scaleY] = [video.videoWidth / size.width, video.videoHeight / size.height];
    const half = (AROUND * Math.max(width * scaleX, height * scaleY)) / 2;
    const [middleX, middleY] = [(x + width / 2) * scaleX, (y + height / 2) * scaleY];
    canvas.getContext("2d").drawImage(video, middleX - half, middleY - half, 2 * half, 2 * half, 0, 0, side, side);
  }
}

// Waits for an event of a video. It fails after an error.
function happens(video, name) {
  return new Promise((resolve, reject) => {
    video.addEventListener(name, resolve, { once: true });
    video.addEventListener("error", reject, { once: true });
  });
}

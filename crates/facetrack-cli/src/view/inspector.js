// The values of the selected face, and the findings.

// Findings above which they are grouped by their kinds.
const MOST_FINDINGS = 100;

const FINDING_KINDS = {
  "id-change": "Changed ids",
  "id-swap": "Swapped ids",
  jump: "Jumps",
  short: "Faces seen for a moment",
  held: "Long holds",
  limit: "Blendshapes at their limit",
  missing: "Missing faces",
  "no-face": "No face",
  error: "Frames that failed",
  gap: "Missing frames",
};

// The channels by region, each with its value and a switch for its curve.
class Values {
  constructor(container, record, onToggle) {
    this.record = record;
    this.rows = new Map();
    for (const [title, names] of this.groups()) {
      const group = document.createElement("details");
      group.open = true;
      group.append(element("summary", "", title), ...names.map((name) => this.row(name, onToggle)));
      container.append(group);
    }
    this.groupElements = [...container.children];
  }

  groups() {
    const groups = new Map(REGIONS.map(([title]) => [title, []]));
    for (const name of this.record.channels.keys()) {
      const [title] = REGIONS.find(([, names]) => names.test(name));
      groups.get(title).push(name);
    }
    return [...groups].filter(([, names]) => names.length > 0);
  }

  row(name, onToggle) {
    const row = element("button", "channel");
    row.title = `${name}: show or remove its curve`;
    row.setAttribute("aria-pressed", "false");
    const value = element("output");
    row.append(element("span", "", shortName(name)), element("i", "bar"), value);
    row.addEventListener("click", () => onToggle(name));
    this.rows.set(name, { row, value });
    return row;
  }

  // Reads the channels one after the other, so that the page answers.
  async load() {
    for (const [name, row] of this.rows) row.values = await this.record.values(name);
  }

  press(name, isShown) {
    this.rows.get(name).row.setAttribute("aria-pressed", isShown);
  }

  filter(text) {
    for (const [name, { row }] of this.rows) row.hidden = !`${name} ${row.parentElement.firstChild.textContent}`.toLowerCase().includes(text);
    for (const group of this.groupElements) group.hidden = !group.querySelector(".channel:not([hidden])");
  }

  // Writes the values of a row of the record; null where the face is not in the frame.
  tell(at) {
    for (const [name, { row, value, values }] of this.rows) {
      const number = at === null || !values ? NaN : values[at];
      value.textContent = valueText(name, number);
      const [least, most] = this.record.channels.get(name).range;
      const isScore = least >= 0 && most <= 1;
      row.style.setProperty("--share", isScore && number > 0 ? number : 0);
    }
  }

  // The values of a row of the record as lines, for a table.
  async text(at) {
    await this.load();
    const lines = [...this.rows].map(([name, { values }]) => [name, values[at]]).filter(([, value]) => !Number.isNaN(value));
    return lines.map(([name, value]) => `${name}\t${Number(value.toFixed(4))}\n`).join("");
  }
}

class FindingList {
  constructor(container, findings, onPick) {
    this.findings = findings;
    this.onPick = onPick;
    if (findings.length === 0) container.append(element("p", "note", "None"));
    else if (findings.length <= MOST_FINDINGS) container.append(...this.rows(findings));
    else container.append(...this.groups());
  }

  rows(findings) {
    return findings.map(({ first, last, place, text, remedy }) => {
      const row = element("button", "finding");
      const frames = first === last ? first : `${first}–${last}`;
      row.append(element("b", "", frames), element("span", "", remedy ? `${text} ${remedy}.` : text));
      row.addEventListener("click", () => this.onPick(place));
      return row;
    });
  }

  // Rows of a group are made once it is open.
  groups() {
    return Object.entries(FINDING_KINDS).flatMap(([kind, title]) => {
      const own = this.findings.filter((finding) => finding.kind === kind);
      if (own.length === 0) return [];
      const group = document.createElement("details");
      group.append(element("summary", "", `${title} (${own.length})`));
      group.addEventListener("toggle", () => group.append(...this.rows(own)), { once: true });
      return [group];
    });
  }
}

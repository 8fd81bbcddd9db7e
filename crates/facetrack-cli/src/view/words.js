// Counts, times and names as the page writes them.

const $ = (id) => document.getElementById(id);

function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

// Regions of the face by the names of channels, in the order of the list.
const REGIONS = [
  ["Box and score", /^(box\.|confidence|age)/],
  ["Head pose", /^pose\./],
  ["Gaze", /^gaze\./],
  ["Brows", /^\w+\.(brow|eyebrow)/i],
  ["Eyes", /^\w+\.(eye|blink)/i],
  ["Cheeks and nose", /^\w+\.(cheek|nose)/i],
  ["Jaw", /^\w+\.jaw/i],
  ["Mouth", /^\w+\.mouth/i],
  ["Tongue", /^\w+\.tongue/i],
  ["Other", /^/],
];

// Units by the beginnings of the names of channels.
const UNITS = [
  [/^(box|gaze\.\w+\.[xy]$)/, " px", 1],
  [/^pose/, "°", 1],
  [/^/, "", 2],
];

function valueText(name, value) {
  if (!(Math.abs(value) < Infinity)) return "–";
  const [, unit, digits] = UNITS.find(([names]) => names.test(name));
  return `${value.toFixed(digits).replace("-", "−")}${unit}`;
}

// The name without what its region says.
function shortName(name) {
  return name.replace(/^(blendshapes|features|eos_fit)\./, "");
}

// Times as HH:MM:SS:FF at a constant rate, else in seconds.
class Clock {
  constructor(record, fps) {
    this.record = record;
    const { time, number } = record;
    const isEven = (place) => Math.abs(time[place] - time[place - 1] - (number[place] - number[place - 1]) / fps) < ROUNDING;
    // Frames of a second; null if it varies.
    this.rate = Math.max(1, Math.round(fps));
    for (let place = 1; place < record.frames && this.rate; place++) if (!isEven(place)) this.rate = null;
  }

  text(place) {
    const { record, rate } = this;
    return rate ? this.timecode(record.number[place] - 1) : `${record.time[place].toFixed(3)} s`;
  }

  timecode(frame) {
    const seconds = Math.floor(frame / this.rate);
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60, frame % this.rate];
    return parts.map((part) => String(part).padStart(2, "0")).join(":");
  }
}

// Copies a text, and says so on the button.
async function copy(button, text) {
  const title = button.textContent;
  try {
    await navigator.clipboard.writeText(await text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => (button.textContent = title), 1500);
}

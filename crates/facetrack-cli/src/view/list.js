// The list of the videos of a folder: sorts and filters its rows, and draws a picture of each.

// Size of a picture, in pixels of the page.
const POSTER = { width: 96, height: 54 };

// Videos that are open at once.
const MOST_OPEN = 3;

// Time to wait for a picture, in milliseconds.
const MAX_WAIT = 10000;

const rows = [...document.querySelectorAll("tbody tr")];
const queue = [];
let open = 0;

// Waits for an event of a video. It fails after an error, and for a file without a picture.
function once(video, name) {
  return new Promise((resolve, reject) => {
    video.addEventListener(name, resolve, { once: true });
    video.addEventListener("error", reject, { once: true });
    setTimeout(reject, MAX_WAIT);
  });
}

async function drawPoster(canvas) {
  const video = document.createElement("video");
  video.muted = true;
  video.preload = "auto";
  try {
    const isLoaded = once(video, "loadeddata");
    video.src = canvas.dataset.src;
    await isLoaded;
    if (video.videoWidth === 0) throw new Error("no picture");
    const isSought = once(video, "seeked");
    video.currentTime = Number(canvas.dataset.seconds);
    await isSought;
    drawCover(canvas, video);
  } catch {
    canvas.replaceWith(canvas.dataset.src.endsWith(".webm") ? "Not found or not playable" : "Not found or not playable; --proxy writes a copy");
  }
  // Frees the decoder.
  video.removeAttribute("src");
  video.load();
}

// Fills the canvas with the middle of the picture.
function drawCover(canvas, video) {
  const pixels = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [POSTER.width * pixels, POSTER.height * pixels];
  const scale = Math.max(canvas.width / video.videoWidth, canvas.height / video.videoHeight);
  const [width, height] = [canvas.width / scale, canvas.height / scale];
  const [x, y] = [(video.videoWidth - width) / 2, (video.videoHeight - height) / 2];
  canvas.getContext("2d").drawImage(video, x, y, width, height, 0, 0, canvas.width, canvas.height);
  canvas.dataset.drawn = "";
}

function drawQueued() {
  while (open < MOST_OPEN && queue.length > 0) {
    open++;
    drawPoster(queue.shift()).finally(() => {
      open--;
      drawQueued();
    });
  }
}

function sortBy(column, button) {
  const head = button.parentElement;
  const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
  for (const other of document.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
  const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const collator = new Intl.Collator(undefined, { numeric: true });
  const compare = (one, other) =>
    one.cells[column].dataset.value ? value(one) - value(other) : collator.compare(value(one), value(other));
  rows.sort((one, other) => direction * compare(one, other));
  document.querySelector("tbody").append(...rows);
}

function filterBy(status) {
  for (const row of rows) row.hidden = status !== "" && row.dataset.status !== status;
  const shown = rows.filter((row) => !row.hidden).length;
  const videos = rows.length === 1 ? "1 video" : `${rows.length} videos`;
  document.getElementById("count").textContent = shown === rows.length ? videos : `${shown} of ${videos}`;
}

function listen() {
  document.querySelectorAll("thead button").forEach((button, column) => button.addEventListener("click", () => sortBy(column, button)));
  const select = document.getElementById("status");
  for (const status of new Set(rows.map((row) => row.dataset.status))) select.add(new Option(status));
  select.addEventListener("change", () => filterBy(select.value));
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      observer.unobserve(target);
      queue.push(target);
    }
    drawQueued();
  });
  document.querySelectorAll("canvas[data-src]").forEach((canvas) => observer.observe(canvas));
}

document.getElementById("title").textContent = document.title;
new Theme(document.getElementById("theme"));
listen();
filterBy("");

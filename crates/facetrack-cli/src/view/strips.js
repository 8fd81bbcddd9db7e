// Draws a strip of pictures of each video of a list, one video after the other, once its row is seen.

const PICTURES = 5;

// Height of a picture, in pixels of the page.
const HEIGHT = 64;

const queue = [];
let isDrawing = false;

function once(target, name) {
  return new Promise((resolve, reject) => {
    target.addEventListener(name, resolve, { once: true });
    target.addEventListener("error", reject, { once: true });
  });
}

async function drawStrip(canvas) {
  const { src, seconds } = canvas.dataset;
  const video = document.createElement("video");
  video.muted = true;
  video.preload = "auto";
  video.src = src;
  try {
    await once(video, "loadeddata");
    const pixels = window.devicePixelRatio || 1;
    const [width, height] = [(HEIGHT * video.videoWidth) / video.videoHeight, HEIGHT].map((side) => Math.round(side * pixels));
    [canvas.width, canvas.height] = [PICTURES * width, height];
    canvas.style.height = `${HEIGHT}px`;
    const context = canvas.getContext("2d");
    for (let index = 0; index < PICTURES; index++) {
      const isSought = once(video, "seeked");
      video.currentTime = (seconds * (index + 0.5)) / PICTURES;
      await isSought;
      context.drawImage(video, index * width, 0, width, height);
    }
    canvas.dataset.drawn = "";
  } catch {
    canvas.replaceWith("The browser cannot play the video. --proxy writes a copy.");
  }
  // Frees the decoder.
  video.removeAttribute("src");
  video.load();
}

async function drawQueued() {
  if (isDrawing) return;
  isDrawing = true;
  while (queue.length > 0) await drawStrip(queue.shift());
  isDrawing = false;
}

const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    queue.push(target);
  }
  drawQueued();
});
document.querySelectorAll("canvas[data-src]").forEach((canvas) => observer.observe(canvas));

// Presses, drags, the wheel and two fingers on an element.

// A press that moves less, in pixels, is a click.
const CLICK = 4;

// Zoom of a pixel of the wheel, and pixels of a line of it.
const WHEEL = 1.0015;
const LINE = 16;

// `click` and `hover` get a point, `drag` a distance and a point, `zoom` a factor and a point, from
// the corner of the element. Points left of `gutter` are not zoomed.
function listenGestures(element, { click, drag, zoom, hover, gutter = 0 }) {
  const pointers = new Map();
  let moved = 0;
  const pointOf = ({ clientX, clientY }) => {
    const { left, top } = element.getBoundingClientRect();
    return { x: clientX - left, y: clientY - top };
  };
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("button")) return;
    element.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, pointOf(event));
    moved = pointers.size > 1 ? Infinity : 0;
  });
  element.addEventListener("pointermove", (event) => {
    const now = pointOf(event);
    const before = pointers.get(event.pointerId);
    if (!before) return hover?.(now);
    pointers.set(event.pointerId, now);
    const [x, y] = [now.x - before.x, now.y - before.y];
    moved += Math.abs(x) + Math.abs(y);
    if (moved < CLICK) return;
    drag(x / pointers.size, y / pointers.size, now);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) zoom(distance(now, other) / distance(before, other), other);
  });
  const end = (event) => {
    if (pointers.delete(event.pointerId) && event.type === "pointerup" && moved < CLICK) click(pointOf(event));
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", () => hover?.(null));
  const onWheel = (event) => {
    const point = pointOf(event);
    if (point.x < gutter) return;
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE : 1;
    const [x, y] = event.shiftKey ? [event.deltaX + event.deltaY, 0] : [event.deltaX, event.deltaY];
    if (Math.abs(x) > Math.abs(y)) drag(-x * unit, 0, point);
    else zoom(WHEEL ** (-y * unit), point);
  };
  element.addEventListener("wheel", onWheel, { passive: false });
}

function distance(one, other) {
  return Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
}

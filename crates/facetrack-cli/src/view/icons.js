// Icons of 16 px, as paths.
const ICONS = {
  theme: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 1.5a5.5 5.5 0 0 1 0 11z",
  keys: "M7.2 10.5h1.5V9.6c1.2-.5 2.3-1.3 2.3-2.9A3 3 0 0 0 8 3.7a3 3 0 0 0-3 2.8h1.5A1.5 1.5 0 0 1 8 5.2a1.4 1.4 0 0 1 1.5 1.5c0 1-.9 1.4-2.3 2.1zm0 1.2h1.6v1.6H7.2z",
  first: "M3 3h1.6v10H3zM13 3v10L5.4 8z",
  previous: "M12 3v10L4 8z",
  play: "M4 2.5v11L13.5 8z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M4 3v10l8-5z",
  last: "M3 3v10l7.6-5zM11.4 3H13v10h-1.6z",
  muted: "M2 6v4h2.6L8 13V3L4.6 6zM9.7 6.4l1-1L12 6.8l1.3-1.4 1 1L12.9 7.8l1.4 1.3-1 1L12 8.8l-1.3 1.3-1-1 1.3-1.3z",
  sound: "M2 6v4h2.6L8 13V3L4.6 6zM9.6 5.3a3.5 3.5 0 0 1 0 5.4l1 1.1a5 5 0 0 0 0-7.6z",
  folder: "M1.5 3h5l1.5 1.7h6.5V13h-13z",
  up: "M8 4.5l5 5-1.1 1.1L8 6.7l-3.9 3.9L3 9.5z",
  down: "M8 11.5l5-5-1.1-1.1L8 9.3 4.1 5.4 3 6.5z",
  minus: "M3 7.2h10v1.6H3z",
  plus: "M7.2 3h1.6v4.2H13v1.6H8.8V13H7.2V8.8H3V7.2h4.2z",
  close: "M4.1 3L8 6.9 11.9 3 13 4.1 9.1 8l3.9 3.9-1.1 1.1L8 9.1 4.1 13 3 11.9 6.9 8 3 4.1z",
  peak: "M8 2.5l3.5 4H8.8V13H7.2V6.5H4.5z",
  eye: "M8 3.5C4.5 3.5 2 6 1 8c1 2 3.5 4.5 7 4.5S14 10 15 8c-1-2-3.5-4.5-7-4.5zm0 7.5a3 3 0 1 1 0-6 3 3 0 0 1 0 6zm0-1.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z",
  hidden: "M2.6 1.6L14.4 13.4l-1 1-2.6-2.6c-.9.4-1.8.7-2.8.7-3.5 0-6-2.5-7-4.5.5-1 1.4-2.2 2.6-3.1L1.6 2.6zM6.5 3.7C7 3.6 7.5 3.5 8 3.5c3.5 0 6 2.5 7 4.5-.4.8-1 1.6-1.7 2.3L11 8a3 3 0 0 0-3-3z",
  follow: "M7.2 1h1.6v2.1a5 5 0 0 1 4.1 4.1H15v1.6h-2.1a5 5 0 0 1-4.1 4.1V15H7.2v-2.1a5 5 0 0 1-4.1-4.1H1V7.2h2.1a5 5 0 0 1 4.1-4.1zM8 4.6a3.4 3.4 0 1 0 0 6.8 3.4 3.4 0 0 0 0-6.8z",
};

// Sets the icon of a button.
function setIcon(button, name) {
  const namespace = "http://www.w3.org/2000/svg";
  const icon = document.createElementNS(namespace, "svg");
  icon.setAttribute("viewBox", "0 0 16 16");
  icon.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(namespace, "path");
  path.setAttribute("d", ICONS[name]);
  path.setAttribute("fill-rule", "evenodd");
  icon.append(path);
  button.querySelector("svg")?.remove();
  button.append(icon);
}

// A button with an icon.
function iconButton(name, title, action) {
  const button = element("button", "icon");
  setIcon(button, name);
  button.title = title;
  button.setAttribute("aria-label", title);
  button.addEventListener("click", action);
  return button;
}

function element(tag, className = "", text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

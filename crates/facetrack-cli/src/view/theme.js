"use strict";

// The theme of the system, until another one is chosen.

// A value that the browser keeps; null where it keeps none.
function kept(name) {
  try {
    return localStorage.getItem(`facetrack-view-${name}`);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`facetrack-view-${name}`, value);
  } catch {
    // It is only for this visit.
  }
}

class Theme extends EventTarget {
  constructor(button) {
    super();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const system = () => (dark.matches ? "dark" : "light");
    this.set(kept("theme") ?? system());
    dark.addEventListener("change", () => kept("theme") ?? this.set(system()));
    button.addEventListener("click", () => {
      this.set(this.name === "dark" ? "light" : "dark");
      keep("theme", this.name);
    });
    // Paper is white.
    addEventListener("beforeprint", () => {
      this.screen = this.name;
      this.set("light");
    });
    addEventListener("afterprint", () => this.set(this.screen));
  }

  get name() {
    return document.documentElement.dataset.theme;
  }

  set(name) {
    document.documentElement.dataset.theme = name;
    this.dispatchEvent(new Event("change"));
  }
}

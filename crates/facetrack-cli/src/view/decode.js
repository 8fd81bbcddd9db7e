"use strict";

// Reads the columns of numbers in the page, which encode.rs describes.

class Numbers {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  // Numbers may have more bits than bitwise operators keep.
  next() {
    let number = 0;
    let scale = 1;
    let byte;
    do {
      byte = this.bytes[this.at++];
      number += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return number;
  }

  nextSigned() {
    return signed(this.next());
  }
}

// 0, 1, 2, 3, 4 are 0, −1, 1, −2, 2.
function signed(number) {
  return number % 2 ? -(number + 1) / 2 : number / 2;
}

// The numbers under a name; none if there is no such block.
async function numbersOf(name) {
  const block = document.getElementById(name);
  if (!block) return new Numbers(new Uint8Array(0));
  const bytes = Uint8Array.from(atob(block.textContent), (digit) => digit.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Numbers(new Uint8Array(await new Response(stream).arrayBuffer()));
}

// The numbers under a name, which encode.rs writes; none if there is no such block.
async function numbersOf(name) {
  const block = document.getElementById(name);
  if (!block) return [];
  const bytes = Uint8Array.from(atob(block.textContent), (digit) => digit.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).json();
}

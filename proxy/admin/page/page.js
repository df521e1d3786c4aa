// Keeps the figures fresh. Everything works without it; then a page shows what was true when it was loaded.
"use strict";

const EVERY_MS = 3000;
let paused = false;

// The parts of a page that change have ids of their own; whatever else is on it (forms, focus, scroll) stays as it is.
function take(from) {
  for (const now of document.querySelectorAll("main [id]")) {
    if (now.querySelector("[id]") || now.closest("form")) continue;
    const then = from.getElementById(now.id);
    if (then === null || then.innerHTML === now.innerHTML || now.contains(document.activeElement)) continue;
    now.replaceChildren(...Array.from(then.childNodes, (node) => document.importNode(node, true)));
  }
}

async function refresh() {
  if (paused || document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.ok) take(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // The proxy is not there right now; the next look may find it.
  }
}

const button = document.createElement("button");
button.type = "button";
button.textContent = "Pause";
button.setAttribute("aria-pressed", "false");
button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Go on" : "Pause";
  button.setAttribute("aria-pressed", String(paused));
});
document.querySelector("footer").prepend(button);
setInterval(refresh, EVERY_MS);

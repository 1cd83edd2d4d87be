// Plays one sound at a time.

import { blob } from "./api.js";
import { announce, showError } from "./dom.js";

let player = null, latest = 0;

export async function play(name, row) {
  player?.pause();
  const request = (latest += 1);
  try {
    const sound = URL.createObjectURL(await blob(name, name === "real-sound" ? { rows: row } : { row }));
    if (request !== latest) { URL.revokeObjectURL(sound); return; }
    player = new Audio(sound);
    player.addEventListener("pause", () => URL.revokeObjectURL(sound), { once: true }); // fires at the end, too
    announce("Playing");
    await player.play();
  } catch (error) { showError(error); }
}

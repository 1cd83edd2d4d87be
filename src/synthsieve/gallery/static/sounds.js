// One sound at a time.

import { blob } from "./ask.js";
import { complain, say } from "./words.js";

let player = null, asked = 0;

export async function play(name, row) {
  player?.pause();
  const mine = (asked += 1);
  try {
    const sound = URL.createObjectURL(await blob(name, name === "real-sound" ? { rows: row } : { row }));
    if (mine !== asked) { URL.revokeObjectURL(sound); return; }
    player = new Audio(sound);
    player.addEventListener("pause", () => URL.revokeObjectURL(sound), { once: true }); // at its end, too
    say("Playing");
    await player.play();
  } catch (error) { complain(error); }
}

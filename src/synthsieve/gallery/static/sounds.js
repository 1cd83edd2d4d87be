// One sound at a time.

import { address } from "./ask.js";
import { complain, say } from "./words.js";

let player = null;

export function play(name, row) {
  player?.pause();
  player = new Audio(address(name, name === "real-sound" ? { rows: row } : { row }));
  say("Playing");
  player.play().catch((error) => { if (error.name !== "AbortError") complain(error); });
}

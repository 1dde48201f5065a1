// The yardstick: the least a Node line server can do. It parses each line and
// answers with the same id, as a bridge-side echo would.
import { createInterface } from "node:readline";

createInterface({ input: process.stdin, crlfDelay: Infinity }).on("line", (line) => {
  if (line === "") return;
  const request = JSON.parse(line);
  process.stdout.write(JSON.stringify({ id: request.id, result: {} }) + "\n");
});

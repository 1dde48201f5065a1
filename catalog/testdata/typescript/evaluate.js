// Evaluates the compiled module and prints what a Go test compares.
import { readFileSync } from "node:fs";
import { hostrActionById, hostrActionByToolName, hostrActionCatalog, hostrActionDocumentation } from "./out/hostr-actions.js";

const inputs = JSON.parse(readFileSync(new URL("inputs.json", import.meta.url), "utf8"));

const outcomes = inputs.map(({ action, input }) => {
  const result = hostrActionById.get(action).inputSchema.safeParse(input);
  return result.success
    ? { action, parsed: result.data }
    : { action, refused: result.error.issues.map((issue) => issue.path.join(".") + ": " + issue.code) };
});

process.stdout.write(
  JSON.stringify({
    catalog: hostrActionCatalog.map(({ inputSchema, ...entry }) => ({ ...entry, zod: typeof inputSchema.parse })),
    keys: hostrActionCatalog.map((entry) => Object.keys(entry)),
    byToolName: [...hostrActionByToolName.keys()],
    byId: [...hostrActionById.keys()],
    documentation: hostrActionDocumentation,
    outcomes,
  }),
);

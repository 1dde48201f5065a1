// What the compiler has to say about the module, as the bridge uses it. Each
// "expect-error" is a mistake that must not compile.
import {
  hostrActionById,
  hostrActionByToolName,
  hostrActionCatalog,
  hostrActionDocumentation,
  type HostrActionId,
  type HostrListingsCreateInput,
  type HostrListingsEditInput,
  type HostrSessionConnectInput,
} from "./hostr-actions.js";

export const known: HostrActionId = "hostr.orders.bookAndPay";
// @ts-expect-error an id that is not in the catalog
export const unknown: HostrActionId = "hostr.orders.nothing";
// @ts-expect-error ids are a union of literals, not any text
export const anyText: HostrActionId = "hostr." + String(Math.random());

export const documentation: string = hostrActionDocumentation;
export const length: 43 = hostrActionCatalog.length;
export const first: "hostr.session.status" = hostrActionCatalog[0].id;
export const found: HostrActionId | undefined = hostrActionByToolName.get("hostr_updates")?.id;
export const title: string | undefined = hostrActionById.get("hostr.updates")?.title;

export const connect: HostrSessionConnectInput = { wait: true };
// @ts-expect-error a title is missing
export const untitled: HostrListingsCreateInput = { description: "", address: "", images: [], prices: [] };
export const edit: HostrListingsEditInput = { anchor: "30402:…", patch: { specifications: { pool: true, beds: 2 } } };

export const parsed: { wait?: boolean | undefined; timeoutSeconds?: number | undefined } =
  hostrActionCatalog[1].inputSchema.parse({});

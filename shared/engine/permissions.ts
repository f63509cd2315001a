import type { JsonObject } from '../events.ts'

/** What the client decided, or what was decided because it did not. */
export type Verdict = { isAllowed: boolean; reason: string }

/** An open permission request: its id for the reply's path, and the verdict that is to come. */
export type Ask = { id: string; verdict: Promise<Verdict> }

/** Opens permission requests for a run. It is open before `open` resolves, so that a reply cannot come too early. */
export type OpenAsk = (request: { toolName: string; input: JsonObject; message: string }) => Promise<Ask>

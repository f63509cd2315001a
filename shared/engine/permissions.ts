import type { JsonObject } from '../events.ts'

/** The answer to a permission request. `reason` may be empty. */
export type Decision = { isAllowed: boolean; reason: string }

/** An open permission request: its id, which is part of the reply's path, and the decision once there is one. */
export type Ask = { id: string; decision: Promise<Decision> }

/** Opens a permission request of a run. The promise resolves after the request is stored, so that no reply can come too early. */
export type OpenAsk = (request: { toolName: string; input: JsonObject; message: string }) => Promise<Ask>

/** How a run asks its client for permission. */
export type Permissions = { openAsk: OpenAsk }

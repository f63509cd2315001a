import type { JsonObject } from '../events.ts'

/** What happens when the model calls a tool: it runs, the client is asked first, or it is refused (D5.1). */
export type Policy = 'allow' | 'ask' | 'deny'

/** What the model reads of a call. A failure is a value like any other: `isError`, with a text that says what to do next. */
export type ToolOutcome = { output: string; isError: boolean }

export type ToolContext = {
  /** Absolute path of the run's own folder. It may not exist yet: whoever writes makes it. */
  workspace: string
  /** Aborted when the run ends early; the tool then stops what it does, child processes and connections included. */
  signal: AbortSignal
  /** Tells the client how far the call is: `progress` from 0 to 1 where the whole is known, else a count of what `detail` names. */
  report: (progress: number, detail: string) => void
}

export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema (draft 2020-12) of the input; the engine validates against it before `run` is called. */
  readonly inputSchema: JsonObject
  readonly defaultPolicy: Policy
  /** The sentence of the permission request: what would happen. */
  describe(input: JsonObject): string
  /** Never throws for anything the model or the world did wrong; a throw is a bug of the tool. */
  run(input: JsonObject, context: ToolContext): Promise<ToolOutcome>
}

export const succeed = (output: string): ToolOutcome => ({ output, isError: false })
export const fail = (output: string): ToolOutcome => ({ output, isError: true })

/** The tools of a process: what the model may call, under which policy, with which input. */
export interface ToolBox {
  /** In the order in which they are offered to the model. */
  readonly tools: readonly Tool[]
  find(name: string): Tool | undefined
  policyOf(name: string): Policy
  /** What is wrong with an input, in words the model can act on; `undefined` when it fits the tool's schema. */
  problemWith(name: string, input: JsonObject): string | undefined
}

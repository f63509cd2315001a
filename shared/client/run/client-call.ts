import type { Schema } from '../api.ts'
import { isRefusal } from '../errors.ts'
import type { RunStream } from './run-stream.ts'

/** A call of one of the caller's own tools (`client_tools`), as its `tool_use` event has it. */
export type ToolCall = Schema<'ToolUseData'>

/**
 * Makes a call of the caller's own tools. The model reads what it returns, as JSON where it is no text, and what it throws as the error of a call that has
 * failed. With `undefined` the call is left to others.
 */
export type OnToolCall = (call: ToolCall) => unknown

/**
 * Makes the calls of the caller's own tools while the run is read, each once, and sends their answers; one that comes too late counts no more. Returns a
 * function that stops that.
 */
export function makeCalls<T>(run: RunStream<T>, onToolCall: OnToolCall): () => void {
  /** A call comes again when another server goes on with the run. */
  const made = new Set<string>()
  return run.on('event', async ({ event, data }) => {
    if (event !== 'tool_use' || !data.expires_at || made.has(data.id)) return
    made.add(data.id)
    const answer = await answerOf(data, onToolCall)
    if (!answer) return
    await run.answer(data.id, answer).catch((cause: unknown) => {
      if (!isRefusal(cause, 404, 409)) throw cause
    })
  })
}

async function answerOf(call: ToolCall, onToolCall: OnToolCall): Promise<Schema<'ToolCallAnswerRequest'> | undefined> {
  try {
    const output = await onToolCall(call)
    if (output === undefined) return undefined
    return { output: typeof output === 'string' ? output : JSON.stringify(output) }
  } catch (cause) {
    return { output: String(cause), is_error: true }
  }
}

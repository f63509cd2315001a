import type { Schema } from '../api.ts'
import { isRefusal } from '../errors.ts'
import type { RunStream } from './run-stream.ts'

/** A call of one of the caller's own tools (`client_tools`), as in its `tool_use` event. */
export type ToolCall = Schema<'ToolUseData'>

/**
 * Executes a call of the caller's own tools. The model reads the returned value (as JSON unless it is a text); a thrown error becomes the error of a
 * failed call. With `undefined` the call is left to others.
 */
export type OnToolCall = (call: ToolCall) => unknown

/**
 * Executes the calls of the caller's own tools while the run is read, each once, and sends their answers; a late answer is ignored. Returns a
 * function that stops that.
 */
export function makeCalls<T>(run: RunStream<T>, onToolCall: OnToolCall): () => void {
  /** A call comes again when another server continues the run. */
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

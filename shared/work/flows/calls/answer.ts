import type { Frames } from '../../../cluster/journal/frame-stream.ts'
import { renderFrame } from '../../../cluster/journal/frames.ts'
import type { FlowAnswer } from '../../../kernel/events.ts'
import { answerOf, terminalEvent } from '../execute/outcome.ts'
import type { Dispatch, DispatchOutput } from '../port.ts'
import { errorOf } from './failure.ts'

/** The answer that an ended execution has stored. Throws its failure as an HTTP error. */
export function storedAnswer(dispatch: Dispatch, output: DispatchOutput | undefined): FlowAnswer {
  if (dispatch.error) throw errorOf(dispatch.error, dispatch.trace_id)
  return answerOf(dispatch, output)
}

const RESULT = '\nevent: result\ndata: '

/** The answer of the execution whose last frames these are; `undefined` when it has failed, or goes on. */
export function answerIn({ text }: Frames): FlowAnswer | undefined {
  const frames = typeof text === 'string' ? text : Buffer.from(text).toString()
  const from = frames.lastIndexOf(RESULT) // A line break within an event is escaped.
  if (from < 0) return undefined
  const { at: _at, ...answer } = JSON.parse(frames.slice(from + RESULT.length)) as FlowAnswer & { at: string }
  return answer
}

/** The terminal frame of an ended execution for a reader who has not received it: it repeats the number of the last frame (D4.2). */
export const terminalFrame = (dispatch: Dispatch, output: DispatchOutput | undefined, lastSeq: number): string =>
  renderFrame(lastSeq, terminalEvent(dispatch, output))

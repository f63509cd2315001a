import type { FlowFailure } from '../../../kernel/events.ts'
import { truncate } from '../../../kernel/text.ts'
import { MAX_DOCUMENT_BYTES } from '../../../platform/store/document.ts'
import type { DispatchEnd, DispatchOutput } from '../port.ts'

/** The rest is for the document's other fields and the marks of cut parts. */
const MAX_BYTES = MAX_DOCUMENT_BYTES - 64 * 1024
/** The kept part of a raw output that is too long. A character takes at most 6 bytes of JSON, one outside the BMP 4. */
const CUT_CHARS = 100_000
const CUT = '\n[cut]'
/** How many events are kept: `started` and the first ones after it. */
const CUT_ENTRIES = 20

export type Result = { output: DispatchOutput; result: DispatchEnd }

/**
 * Returns the result unchanged if it fits into one document. Otherwise the raw output is cut, then the timeline. An output that is too long by
 * itself, or nested too deeply to be stored, turns the result into an error.
 */
export function fitResult({ output, result }: Result, maxBytes = MAX_BYTES): Result {
  if (bytesOf(output) <= maxBytes) return { output, result }
  const cut = { ...output, raw_output: truncate(output.raw_output, CUT_CHARS, CUT) }
  if (bytesOf(cut) <= maxBytes) return { output: cut, result }
  const short = { ...cut, timeline: output.timeline.slice(0, CUT_ENTRIES) }
  if (bytesOf(short) <= maxBytes) return { output: short, result }
  return {
    output: { raw_output: cut.raw_output, output: null, timeline: [] },
    result: { ...result, status: 'error', error: tooLong(maxBytes) },
  }
}

const tooLong = (maxBytes: number): FlowFailure => ({
  status: 502,
  type: 'upstream_error',
  message: `the output of the flow cannot be stored: it is longer than ${maxBytes} bytes or nested too deeply; ask the model for less`,
})

/** Infinite for a value that is nested too deeply for `JSON.stringify`. */
function bytesOf(value: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(value))
  } catch {
    return Infinity
  }
}

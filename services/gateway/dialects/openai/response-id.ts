import { notFound } from '../../../../shared/kernel/errors.ts'
import { NEW_SESSION } from '../../params.ts'

/** A response is the part of a run between two pauses; `part` counts from 1. */
export type ResponseRef = {
  runId: string
  part: number
  sessionId: string
  /** The parts that began while a permission request was still unanswered. */
  partials?: readonly number[]
  /** Set when its text is only the value that fits the client's schema. */
  isTyped?: true
}

/** The id contains all that is needed to make the response again, so nothing is stored for it. */
export const responseId = ({ runId, part, sessionId, partials = [], isTyped }: ResponseRef): string =>
  `resp_${runId.slice('run_'.length)}${hexOf(part)}${partials.map((each) => `p${hexOf(each)}`).join('')}${isTyped ? 't' : ''}_${sessionId}`

const hexOf = (part: number): string => part.toString(16).padStart(2, '0')

/** The id of a client's call contains the response that it was in, because a client may send the output without naming the response. */
export const callIdOf = ({ runId, part }: Pick<ResponseRef, 'runId' | 'part'>, toolUseId: string): string =>
  `call_${runId.slice('run_'.length)}${hexOf(part)}_${toolUseId}`

const CALL = /^call_([0-9a-f]{32})([0-9a-f]{2})_([A-Za-z0-9._:-]{1,128})$/

/** `undefined` for an id of another form. */
export function readCallId(id: string) {
  const [, run, part = '', toolUseId = ''] = CALL.exec(id) ?? []
  return run === undefined ? undefined : { runId: `run_${run}`, part: Number.parseInt(part, 16), toolUseId }
}

const FORM = /^resp_([0-9a-f]{32})([0-9a-f]{2})((?:p[0-9a-f]{2})*)(t?)_(.*)$/

/** Throws `not_found` for an id of another form. */
export function readResponseId(id: string): ResponseRef {
  const [, run, part = '', left = '', typed, sessionId = ''] = FORM.exec(id) ?? []
  const partials = [...left.matchAll(/p(..)/g)].map(([, each = '']) => Number.parseInt(each, 16))
  if (run !== undefined && NEW_SESSION.pattern.test(sessionId))
    return {
      ...{ runId: `run_${run}`, part: Number.parseInt(part, 16), sessionId },
      ...(partials.length > 0 && { partials }),
      ...(typed && { isTyped: true }),
    }
  throw notFound('no response has this id')
}

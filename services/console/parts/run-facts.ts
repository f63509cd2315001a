import type { Schema } from '../../../shared/client/api.ts'
import { shortId } from '../base/format.ts'
import { hrefOf } from '../base/router.ts'

type Run = Schema<'Run'>

/** The name of a run in a list: its prompt where that is kept, else what it belongs to. */
export function nameOf({ title, flow, step_id, kind, run_id }: Run): string {
  if (flow !== undefined) return flow
  if (step_id !== undefined) return title === undefined ? step_id : `${step_id}: ${title}`
  return title ?? `${kind ?? 'run'} ${shortId(run_id)}`
}

/** The page that shows a run: the conversation where it still is, else its record. */
export const placeOf = ({ run_id, session_id, status }: Run): string =>
  session_id !== undefined && (status === 'running' || status === 'waiting')
    ? hrefOf(`/chat/${encodeURIComponent(session_id)}`)
    : hrefOf(`/activity/${run_id}`)

import type { Schema } from '../../../shared/client/api.ts'
import { showControls } from '../../../shared/reading/hidden.ts'
import { shortId } from '../base/format.ts'
import { hrefOf } from '../base/router.ts'

type Run = Schema<'Run'>

/** The name of a run in a list: its prompt if that is kept, otherwise what it belongs to. */
export function nameOf({ title, flow, step_id, kind, run_id }: Run): string {
  if (flow !== undefined) return flow
  if (step_id !== undefined) return showControls(title === undefined ? step_id : `${step_id}: ${title}`)
  return title ? showControls(title) : `${kind ?? 'run'} ${shortId(run_id)}`
}

/** The page that shows a run: its plan, or its conversation if that still exists, otherwise its record. */
export function placeOf({ run_id, session_id, plan_id, kind, status }: Run): string {
  if (kind === 'plan' && plan_id !== undefined) return hrefOf(`/plans/${plan_id}`)
  const isOpen = status === 'running' || status === 'waiting'
  return session_id !== undefined && isOpen
    ? hrefOf(`/chat/${encodeURIComponent(session_id)}`)
    : hrefOf(`/activity/${run_id}`)
}

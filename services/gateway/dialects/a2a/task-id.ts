import { SESSION } from '../../params.ts'
import { RpcError } from './rpc.ts'

/** A task is a run, and its context the session that the run answers in. */
export type TaskRef = { runId: string; contextId: string }

/** The id says all that is needed to make the task again: nothing is stored for it. */
export const taskId = ({ runId, contextId }: TaskRef): string => `task_${runId.slice('run_'.length)}_${contextId}`

const FORM = /^task_([0-9a-f]{32})_(.*)$/

/** Throws the error of an unknown task for an id of another form. */
export function readTaskId(id: string): TaskRef {
  const [, run, contextId = ''] = FORM.exec(id) ?? []
  if (run !== undefined && SESSION.pattern.test(contextId)) return { runId: `run_${run}`, contextId }
  throw noTask()
}

const noTask = () => new RpcError('task_not_found', 'no task has this id')

import { planIdOf } from '../../../../shared/kernel/ids.ts'
import { SESSION } from '../../params.ts'
import { RpcError } from './rpc.ts'

/**
 * A task is a run or a plan. The context is the session of the run; for a flow or a plan it is the context that the
 * message named, or the run itself.
 */
export type TaskRef = { runId: string; contextId: string; isPlan?: true }

/** The id contains all that is needed to make the task again, so nothing is stored for it. */
export const taskId = ({ runId, contextId, isPlan }: TaskRef): string =>
  `task_${isPlan ? 'plan_' : ''}${runId.slice('run_'.length)}_${contextId}`

const FORM = /^task_(plan_)?([0-9a-f]{32})_(.*)$/

/** Throws the error of an unknown task for an id of another form. */
export function readTaskId(id: string): TaskRef {
  const [, plan, run, contextId = ''] = FORM.exec(id) ?? []
  if (run === undefined || !SESSION.pattern.test(contextId)) throw noTask()
  return { runId: `run_${run}`, contextId, ...(plan !== undefined && { isPlan: true }) }
}

export const planOf = ({ runId }: TaskRef): string => planIdOf(runId)

const noTask = () => new RpcError('task_not_found', 'no task has this id')

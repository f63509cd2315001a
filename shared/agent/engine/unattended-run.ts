import { AppError } from '../../kernel/errors.ts'
import type { AgentEvent, ErrorEvent } from '../../kernel/events.ts'
import { LastAnswer } from './last-answer.ts'
import type { RunResources } from './resources.ts'
import { run, type Task, taskInput } from './run.ts'

/** How an agent has ended: with the answer of its last turn, or with a failure. */
export type AgentEnd = { answer: LastAnswer } | { failure: ErrorEvent }

/**
 * Runs an agent in which nobody can be asked, to its end. `onEvent` is called with each event, and the run goes on when it has resolved.
 * Throws what is a bug.
 */
export async function runUnattended(
  task: Task,
  resources: Omit<RunResources, 'permissions'>,
  onEvent: (event: AgentEvent) => Promise<void> | void,
): Promise<AgentEnd> {
  const answer = new LastAnswer()
  let failure: ErrorEvent | undefined
  for await (const event of run(taskInput(task), { ...resources, permissions: { openAsk: refuseAsk } })) {
    await onEvent(event)
    answer.note(event)
    if (event.type === 'error') failure = event
  }
  return failure ? { failure } : { answer }
}

const refuseAsk = () => Promise.reject(new AppError('permission', 'nobody can be asked in a queued run'))

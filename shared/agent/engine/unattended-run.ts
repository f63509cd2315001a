import { eachOf } from '../../kernel/async/batch.ts'
import { AppError } from '../../kernel/errors.ts'
import type { AgentEvent, ErrorEvent } from '../../kernel/events.ts'
import { LastAnswer } from './last-answer.ts'
import type { RunResources } from './resources.ts'
import { run } from './run.ts'
import { type Task, taskInput } from './run-input.ts'

/** How an agent has ended: with the answer of its last turn, and its value if a format is required, or with a failure. */
export type AgentEnd = { answer: LastAnswer } & ({ output: unknown } | { failure: ErrorEvent })

/**
 * Runs an agent to its end, without anyone to ask for permission. `onEvent` is called with each event; the run continues when it has resolved.
 * Throws only for a bug.
 */
export async function runUnattended(
  task: Task,
  resources: Omit<RunResources, 'permissions'>,
  onEvent: (event: AgentEvent) => Promise<void> | void,
): Promise<AgentEnd> {
  const answer = new LastAnswer()
  let failure: ErrorEvent | undefined
  let output: unknown
  const batches = run(taskInput(task), { ...resources, permissions: { openAsk: refuseAsk } })
  for await (const events of batches)
    for (const event of eachOf(events)) {
      await onEvent(event)
      answer.note(event)
      if (event.type === 'error') failure = event
      if (event.type === 'done') ({ output } = event)
    }
  return failure ? { answer, failure } : { answer, output }
}

const refuseAsk = () => Promise.reject(new AppError('permission', 'nobody can be asked in a queued run'))

import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import { hasKind } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { ApiType } from '../../../../shared/platform/api/api-type.ts'
import type { PlanView } from '../../../../shared/work/plans/view.ts'
import type { Fields } from '../shared/fields.ts'
import type { SeenTask } from './opened-task.ts'
import { type Part, TaskWriter } from './task.ts'
import type { TaskRef } from './task-id.ts'

const MAX_MESSAGES = 100
const PAGE = 200
/** How many pages are read, of at most 128 KB each. Later pages are not shown. */
const MAX_PAGES = 8

/** How many of the newest messages a client wants; `undefined` when it says nothing. */
export function historyLength(fields: Fields): number | undefined {
  const value = fields.get('historyLength')
  if (value === undefined || (typeof value === 'number' && Number.isInteger(value) && value >= 0)) return value
  throw fields.wrong('historyLength', 'a whole number, 0 or more')
}

/** The task with the newest of the messages that were read, at most 100. */
export async function withHistory(
  { task, history }: Pick<SeenTask, 'task' | 'history'>,
  length = MAX_MESSAGES,
): Promise<JsonObject> {
  return length === 0 ? task : { ...task, history: (await history()).slice(-Math.min(length, MAX_MESSAGES)) }
}

/** The messages that a run has added to its session; none for a flow, or when the session is gone. */
export async function historyOfRun(
  broker: Broker,
  tenant: TenantId,
  { runId, contextId }: TaskRef,
): Promise<JsonObject[]> {
  const write = new TaskWriter({ runId, contextId })
  const found: JsonObject[] = []
  try {
    let cursor: string | null = null
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const filter = { limit: PAGE, runId, ...(cursor !== null && { cursor }) }
      const page = await broker.listMessages(tenant, contextId, filter)
      // A worker of an older version ignores `runId` and returns the messages of all runs.
      const own = page.messages.filter(({ run_id: id }) => id === runId)
      for (const message of own) found.push(messageOf(write, message, found.length + 1))
      cursor = page.next_cursor
      if (cursor === null) break
    }
  } catch (cause) {
    if (!hasKind(cause, 'not_found')) throw cause
  }
  return found
}

function messageOf(write: TaskWriter, { role, blocks }: ApiType<'SessionMessage'>, number: number): JsonObject {
  const parts = blocks.map((block): Part => (block.type === 'text' ? { text: block.text } : { data: block }))
  return write.message(`message-${number}`, parts, role === 'user' ? 'USER' : 'AGENT')
}

/** The plan as it was submitted. */
export function historyOfPlan(
  ref: TaskRef,
  { title, steps, parallel, timeout_secs, priority, wait_secs }: PlanView,
): JsonObject[] {
  const plan = { title, steps, parallel, timeout_secs, priority, wait_secs }
  return [new TaskWriter(ref).message('message-1', [{ data: plan }], 'USER')]
}

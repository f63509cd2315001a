import type { Response } from 'express'
import type { RunFilter } from '../../../../shared/cluster/commands/runs.ts'
import { decodeCursor, encodeCursor, type PageRequest } from '../../../../shared/kernel/cursor.ts'
import { hasKind } from '../../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../../shared/kernel/events.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { readTime } from '../../../../shared/kernel/time.ts'
import type { PlanStatus } from '../../../../shared/work/plans/port.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { assertCounted } from '../../middleware/rate-limit.ts'
import { SESSION } from '../../params.ts'
import type { DialectDeps } from '../dialect.ts'
import type { Fields } from '../shared/fields.ts'
import { historyLength, withHistory } from './history.ts'
import { headOf, type ListedTask, listedPlan, listedRun } from './listed-task.ts'
import type { Call } from './opened-task.ts'
import { STATES } from './plan-projection.ts'
import { rpcAnswer } from './rpc.ts'
import { readTask } from './tasks.ts'

const DEFAULT_SIZE = 50
const MAX_SIZE = 100
/** A task with its artifacts or its history is made from its events. */
const MAX_WHOLE = 20
/** Once the artifacts and histories of a page have this many characters, its further tasks are shown without theirs. */
const MAX_CHARS = 4 * 1024 * 1024

type Wanted = {
  contextId: string | undefined
  state: string | undefined
  since: number
  size: number
  isWhole: boolean
  length: number
}
/** Where a page begins: in one of the lists, after `cursor`; `before` tasks were on earlier pages. */
type Place = { list: string; cursor: string; before: number }

/** `ListTasks`: the messages, runs of flows and one-shot runs of the tenant as `GET /runs` lists them, then the plans. */
export async function listTasks(deps: DialectDeps, call: Call): Promise<void> {
  assertCounted(call.res)
  const wanted = readWanted(call.params)
  const place = readPlace(call.params)
  const { found, next } = await readPage(deps, call, { wanted, place })
  const tasks = found.filter((each) => isWanted(each, wanted))
  const before = place.before + tasks.length
  call.res.json(
    rpcAnswer(call.id, {
      result: {
        tasks: await shown(deps, call, { tasks, wanted }),
        nextPageToken: next ? encodeCursor([next.list, next.cursor, before]) : '',
        pageSize: wanted.size,
        totalSize: next ? before + 1 : before, // A lower bound: later pages are not counted.
      },
    }),
  )
}

function readWanted(params: Fields): Wanted {
  const contextId = params.optionalText('contextId') || undefined
  if (contextId !== undefined && !SESSION.pattern.test(contextId))
    throw params.wrong('contextId', `an id that matches ${SESSION.pattern.source}`)
  const isWhole = params.optionalFlag('includeArtifacts') ?? false
  const length = historyLength(params) ?? 0
  const size = sizeOf(params)
  return {
    contextId,
    state: stateOf(params),
    since: readTime('statusTimestampAfter', params.optionalText('statusTimestampAfter')) ?? 0,
    size: isWhole || length > 0 ? Math.min(size, MAX_WHOLE) : size,
    isWhole,
    length,
  }
}

function sizeOf(params: Fields): number {
  const size = params.get('pageSize') ?? DEFAULT_SIZE
  if (typeof size === 'number' && Number.isInteger(size) && size >= 1 && size <= MAX_SIZE) return size
  throw params.wrong('pageSize', `a whole number from 1 to ${MAX_SIZE}`)
}

const STATE = /^TASK_STATE_([A-Z_]+)$/

function stateOf(params: Fields): string | undefined {
  const status = params.optionalText('status') || 'TASK_STATE_UNSPECIFIED'
  const [, state] = STATE.exec(status) ?? []
  if (state === undefined) throw params.wrong('status', 'a state, such as TASK_STATE_WORKING')
  return state === 'UNSPECIFIED' ? undefined : state
}

function readPlace(params: Fields): Place {
  const token = params.optionalText('pageToken') || undefined
  if (token === undefined) return { list: '', cursor: '', before: 0 }
  const [list, cursor, before] = decodeCursor(token, ['string', 'string', 'number'])
  return { list, cursor, before }
}

const isWanted = ({ state, timestamp }: ListedTask, wanted: Wanted): boolean =>
  (wanted.state === undefined || state === wanted.state) && Date.parse(timestamp) >= wanted.since

/** One of the lists that tasks are read from. `cursor` is empty for its first page. */
type List = { name: string; read(page: PageRequest): Promise<{ found: ListedTask[]; cursor: string | null }> }

/** Reads the page at a place. After the last page of one list the next list begins. */
async function readPage(deps: DialectDeps, { res }: Call, { wanted, place }: { wanted: Wanted; place: Place }) {
  const lists = listsOf(deps, tenantOf(res), wanted)
  const at = Math.max(
    0,
    lists.findIndex(({ name }) => name === place.list),
  )
  const [list, following] = [lists[at], lists[at + 1]]
  if (!list) return { found: [], next: undefined }
  const { found, cursor } = await list.read({
    limit: wanted.size,
    ...(place.cursor !== '' && { cursor: place.cursor }),
  })
  if (cursor !== null) return { found, next: { list: list.name, cursor } }
  return { found, next: following && { list: following.name, cursor: '' } }
}

/**
 * For each state of a task, the searches that find its runs. A run whose output does not fit its schema counts as
 * completed, too.
 */
const SEARCHES: Readonly<Record<string, Record<string, RunFilter['status'] | { code: 'invalid_output' }>>> = {
  SUBMITTED: { runs: 'waiting' },
  WORKING: { runs: 'running' },
  INPUT_REQUIRED: { runs: 'waiting' },
  COMPLETED: { runs: 'done' },
  CANCELED: { runs: 'cancelled' },
  FAILED: { runs: 'failed', unfit: { code: 'invalid_output' } },
}

function listsOf({ broker, plans }: DialectDeps, tenant: TenantId, { contextId, state }: Wanted): List[] {
  const searches = state === undefined ? { runs: undefined } : (SEARCHES[state] ?? {})
  const runs = Object.entries(searches).map(
    ([name, search]): List => ({
      name,
      async read(page) {
        const filter = typeof search === 'string' ? { status: search } : search
        const ofContext = contextId === undefined ? {} : { session_id: contextId }
        const { runs: found, next_cursor: cursor } = await broker.listRuns(tenant, { ...page, ...filter, ...ofContext })
        return { found: found.filter(({ kind }) => kind !== 'plan' && kind !== 'step').map(listedRun), cursor }
      },
    }),
  )
  const status = (Object.keys(STATES) as PlanStatus[]).find((each) => STATES[each] === state)
  if (!plans || contextId !== undefined || (state !== undefined && status === undefined)) return runs
  const read: List['read'] = async (page) => {
    const { plans: found, next_cursor: cursor } = await plans.calls.list(tenant, { ...page, status })
    return { found: found.map(listedPlan), cursor }
  }
  return [...runs, { name: 'plans', read }]
}

/**
 * Shows tasks from their events, one after the other, until the answer is large enough; the rest are shown from their
 * records.
 */
async function shown(
  deps: DialectDeps,
  { res }: Call,
  { tasks, wanted }: { tasks: readonly ListedTask[]; wanted: Wanted },
): Promise<JsonObject[]> {
  if (!wanted.isWhole && wanted.length === 0) return tasks.map(headOf)
  const all: JsonObject[] = []
  let chars = 0
  for (const listed of tasks) {
    const task = chars > MAX_CHARS ? headOf(listed) : await wholeOf(deps, res, { listed, wanted })
    chars += JSON.stringify(task).length
    all.push(task)
  }
  return all
}

async function wholeOf(
  deps: DialectDeps,
  res: Response,
  { listed, wanted }: { listed: ListedTask; wanted: Wanted },
): Promise<JsonObject> {
  try {
    const seen = await readTask(deps, res, listed.ref)
    return await withHistory({ ...seen, task: wanted.isWhole ? seen.task : headOf(listed) }, wanted.length)
  } catch (cause) {
    if (hasKind(cause, 'not_found')) return headOf(listed) // It has expired since the list was read.
    throw cause
  }
}

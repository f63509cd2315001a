import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatch } from '../../../../shared/work/flows/port.ts'
import { now } from '../../history.ts'
import type { EchoInput } from './model.ts'

/** An execution as the history shows it. */
export type FlowRecord = Pick<Dispatch, 'trace_id' | 'status' | 'idempotency_key'> & {
  error: { type: string; message: string } | null
  input: EchoInput
  output: unknown
}

type Headers = Readonly<Record<string, string>>

const WITHIN_MS = 10_000
const LOOK_EVERY_MS = 500
const AT_ONCE = 20

/** Reads all executions when none is queued or running any more, or after `withinMs`. Throws when a request fails. */
export async function readRecords(url: string, withinMs: number, headers: Headers = {}): Promise<FlowRecord[]> {
  for (const deadline = now() + withinMs; now() < deadline; await sleep(LOOK_EVERY_MS)) {
    if ((await countOpen(url, headers)) === 0) break
  }
  const ids = await idsOf(url, '', headers)
  const records: FlowRecord[] = []
  while (records.length < ids.length) {
    const some = ids.slice(records.length, records.length + AT_ONCE)
    records.push(...(await Promise.all(some.map((id) => read<FlowRecord>(`${url}/dispatches/${id}`, headers)))))
  }
  return records
}

/** The executions that are queued or running. */
async function countOpen(url: string, headers: Headers = {}): Promise<number> {
  const open = await Promise.all(['queued', 'running'].map((status) => idsOf(url, `status=${status}&`, headers)))
  return open.flat().length
}

type Page = { dispatches: { trace_id: string }[]; next_cursor: string | null }

async function idsOf(url: string, filter: string, headers: Headers): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | null = ''
  do {
    const more: string = cursor === '' ? '' : `&cursor=${cursor}`
    const page: Page = await read<Page>(`${url}/dispatches?${filter}limit=200${more}`, headers)
    ids.push(...page.dispatches.map(({ trace_id }) => trace_id))
    cursor = page.next_cursor
  } while (cursor !== null)
  return ids
}

async function read<T>(url: string, headers: Headers): Promise<T> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(WITHIN_MS) })
  if (!response.ok) throw new Error(`${url} was answered ${response.status}`)
  return (await response.json()) as T
}

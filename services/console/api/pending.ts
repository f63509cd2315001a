import { computed, signal } from '@preact/signals'
import type { Schema, TenantEvent } from '../../../shared/client/api.ts'
import { announce } from '../base/announce.ts'
import { serverNow } from '../base/clock.ts'
import { ofTab } from '../base/tab.ts'
import { get } from './engine.ts'
import { onEvent } from './live.ts'
import { LiveResource } from './resource.ts'

export type Ask = Schema<'PendingPermission'>

/** `total`: the number of all waiting requests; the server returns only the first ones. */
type Pending = { asks: readonly Ask[]; total: number }

/** The permission requests that wait for an answer. The whole tab has one such list, which the badge, Home, Chat and Approvals show. */
export const pending = ofTab(() => new LiveResource(readPending, isNew))

/** Read at a time, and more when somebody asks for them. */
const PAGE = 200
const wanted = ofTab(() => signal(PAGE))

const NONE: Readonly<Pending> = { asks: [], total: 0 }
const known = ofTab(() => computed(() => pending().state.value.data ?? NONE)) // The same while it is read again.

/** The nearest deadline comes first. */
export const asks = ofTab(() =>
  computed<readonly Ask[]>(() =>
    known().value.asks.toSorted((one, other) => one.expires_at.localeCompare(other.expires_at)),
  ),
)

/** How many wait, those that are not read included. */
export const waitingCount = ofTab(() => computed(() => known().value.total))

/** The ids of requests that were decided, here or elsewhere, while this tab was open. They are not shown again. */
const decided = ofTab(() => signal<ReadonlySet<string>>(new Set()))

function isNew({ event, data }: TenantEvent): boolean {
  return (
    event === 'permission.requested' &&
    !asks()
      .peek()
      .some(({ id }) => id === data['request_id'])
  )
}

async function readPending(): Promise<Pending> {
  const found: Ask[] = []
  let total: number | undefined
  let cursor: string | undefined
  do {
    const page = await get<Schema<'ListPermissionsResponse'>>('/permissions', { state: 'pending', limit: PAGE, cursor })
    found.push(...(page.permissions as Ask[]))
    total ??= page.total
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined && found.length < wanted().peek())
  const waiting = found.filter(({ id }) => !decided().peek().has(id))
  return { asks: waiting, total: cursor === undefined ? waiting.length : Math.max(total ?? 0, waiting.length + 1) }
}

/** Reads further requests of a long list. */
export function readMorePending(): void {
  wanted().value = known().peek().asks.length + PAGE
  pending().reload()
}

/** Keeps the list up to date, until the returned function is called. A decision needs no further request. */
export function watchPending(): () => void {
  const stops = [pending().watch(), onEvent(onDecision)]
  return () => stops.forEach((stop) => stop())
}

function onDecision({ event, data }: TenantEvent): void {
  if (event === 'permission.requested') announce(`Permission needed for ${String(data['tool_name'])}`)
  if (event === 'permission.resolved') settle(String(data['request_id']))
  if (event === 'run.ended') forget(({ run_id }) => run_id === data['run_id'])
}

/** Adds a request that arrived in the stream of its run. */
export function learn(ask: Ask): void {
  const isOver = Date.parse(ask.expires_at) < serverNow()
  if (
    isOver ||
    decided().peek().has(ask.id) ||
    asks()
      .peek()
      .some(({ id }) => id === ask.id)
  )
    return
  const { asks: before, total } = known().peek()
  if (total > before.length) return pending().want() // The total may count this request already: it is read again.
  pending().set({ asks: [...before, ask], total: total + 1 })
}

/** Marks a request as decided: it is not shown again, even if an older answer still lists it. */
export function settle(id: string): void {
  decided().value = new Set([...decided().peek(), id])
  forget((ask) => ask.id === id)
}

/** Removes requests from the list. If the list is incomplete, it is read again, because others move up. */
function forget(isOver: (ask: Ask) => boolean): void {
  const { asks: before, total } = known().peek()
  const over = before.filter(isOver)
  if (total > before.length) pending().want()
  if (over.length === 0) return
  decided().value = new Set([...decided().peek(), ...over.map(({ id }) => id)])
  pending().set({ asks: before.filter((ask) => !isOver(ask)), total: total - over.length })
}

import { computed, signal } from '@preact/signals'
import type { Schema, TenantEvent } from '../../../shared/client/api.ts'
import { announce } from '../base/announce.ts'
import { serverNow } from '../base/clock.ts'
import { ofTab } from '../base/tab.ts'
import { get } from './engine.ts'
import { onEvent } from './live.ts'
import { LiveResource } from './resource.ts'

export type Ask = Schema<'PendingPermission'>

/** The permission requests that wait for an answer. One list for the whole tab: the badge, Home, Chat and Approvals show it. */
export const pending = ofTab(() => new LiveResource(readPending, isNew))

/** The nearest deadline comes first. */
export const asks = ofTab(() => {
  const read = computed(() => pending().state.value.data ?? NONE) // The same list while it is read again.
  return computed<readonly Ask[]>(() =>
    read.value.toSorted((one, other) => one.expires_at.localeCompare(other.expires_at)),
  )
})

const NONE: readonly Ask[] = []

/** The ids of requests that were decided while this tab was open, however that was: they are not asked again. */
const decided = ofTab(() => signal<ReadonlySet<string>>(new Set()))

function isNew({ event, data }: TenantEvent): boolean {
  return (
    event === 'permission.requested' &&
    !asks()
      .peek()
      .some(({ id }) => id === data['request_id'])
  )
}

async function readPending(): Promise<Ask[]> {
  const { permissions } = await get<Schema<'ListPermissionsResponse'>>('/permissions', { state: 'pending', limit: 200 })
  return (permissions as Ask[]).filter(({ id }) => !decided().peek().has(id))
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

/** Puts a request on the list that the stream of its run has told. */
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
  pending().set([...asks().peek(), ask])
}

/** A request was decided: it is not asked again, whatever a list that was read before says. */
export function settle(id: string): void {
  decided().value = new Set([...decided().peek(), id])
  forget((ask) => ask.id === id)
}

/** Takes requests off the list. */
function forget(isOver: (ask: Ask) => boolean): void {
  const [over, left] = [
    asks().peek().filter(isOver),
    asks()
      .peek()
      .filter((ask) => !isOver(ask)),
  ]
  if (over.length === 0) return
  decided().value = new Set([...decided().peek(), ...over.map(({ id }) => id)])
  pending().set(left.slice())
}

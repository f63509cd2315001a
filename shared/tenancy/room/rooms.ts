import { LRUCache } from 'lru-cache'
import { errorRate as rateOf, stateOf as stateOfHealth } from '../../agent/providers/health.ts'
import type { InstanceLimits } from '../../agent/providers/port.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { decide, newRoom, type Room } from './decide.ts'
import type { Caps, RoomRequest, RoomState, Rooms, Turn } from './port.ts'

const NO_LIMIT = Number.POSITIVE_INFINITY

export const NO_CAPS: Caps = { perMinute: [NO_LIMIT, NO_LIMIT], concurrent: NO_LIMIT }

export function capsOf(limits: InstanceLimits | undefined): Caps {
  if (!limits) return NO_CAPS
  const {
    tokens_per_minute: tokens = NO_LIMIT,
    requests_per_minute: requests = NO_LIMIT,
    concurrent = NO_LIMIT,
  } = limits
  return { perMinute: [tokens, requests], concurrent }
}

/** Names the account of a tenant's instance, and that of the server's own models of a type. No tenant's id is empty. */
export const instanceScope = (tenant: TenantId, instance: string): string => `${tenant}:${instance}`
export const serverScope = (type: string): string => `:${type}`

/** For a call that needs no room, or that was aborted while it waited. */
export const FREE_TURN: Turn = { tell: () => {}, refused: () => {}, end: () => {} }

/** A request that only reads. Its process has no name, and nothing at work. */
const LOOK: RoomRequest = {
  ...{ process: '', isFirst: false, next: [0, 0], want: [0, 0], caps: NO_CAPS, spent: [0, 0] },
  ...{ atWork: 0, waiting: 0, weight: 0 },
}

/** The state of a copy of the room. */
export function stateOf(room: Room, now: number): RoomState {
  const limit = room.pools.map(({ counted }) => counted || Number.POSITIVE_INFINITY)
  const { used, atWork, waiting, refused, health } = decide(structuredClone(room), LOOK, now)
  const healthShown = { state: stateOfHealth(health, now), errorRate: rateOf(health) }
  return { limit: [limit[0] ?? 0, limit[1] ?? 0], used, atWork, waiting, refused, ...healthShown }
}

/** The models of an account by name, as `GET /config/instances/{name}/capabilities` shows them. */
export async function roomOf(rooms: Pick<Rooms, 'look'>, scope: string) {
  const shown = (limit: number) => (limit === NO_LIMIT ? null : Math.round(limit))
  const models = await rooms.look(scope)
  return models
    .toSorted((one, other) => (one.model < other.model ? -1 : 1))
    .map(({ model, state: { limit, used, atWork, waiting, refused, state, errorRate } }) => ({
      ...{ model, tokens_per_minute: shown(limit[0]), requests_per_minute: shown(limit[1]) },
      ...{ used_tokens: Math.max(0, used[0]), used_requests: used[1], at_work: atWork, waiting, refused },
      ...{ health: state, error_rate: Number(errorRate.toFixed(2)) },
    }))
}

const MAX_ROOMS = 10_000

/** The rooms of the standalone form, whose process is the only one. */
export class MemoryRooms implements Rooms {
  readonly #rooms = new LRUCache<string, { scope: string; model: string; room: Room }>({ max: MAX_ROOMS })
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  async ask(scope: string, model: string, request: RoomRequest) {
    const key = JSON.stringify([scope, model])
    const known = this.#rooms.get(key) ?? { scope, model, room: newRoom(this.#now()) }
    this.#rooms.set(key, known)
    return decide(known.room, request, this.#now())
  }

  async look(scope: string) {
    const ofScope = [...this.#rooms.values()].filter((each) => each.scope === scope)
    return ofScope.map(({ model, room }) => ({ model, state: stateOf(room, this.#now()) }))
  }
}

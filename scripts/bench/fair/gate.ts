import { createProvider } from '../../../services/wiring/models/create-provider.ts'
import { callModel } from '../../../shared/agent/providers/failures/failover.ts'
import type { Priority } from '../../../shared/agent/providers/port.ts'
import { oneByOne } from '../../../shared/kernel/async/batch.ts'
import { NO_METRICS } from '../../../shared/kernel/metrics.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import { openRedisLink } from '../../../shared/platform/redis/link.ts'
import { createMeter } from '../../../shared/tenancy/limits/meter.ts'
import { ModelGate } from '../../../shared/tenancy/room/gate.ts'
import type { Rooms } from '../../../shared/tenancy/room/port.ts'
import { createRedisRooms } from '../../../shared/tenancy/room/redis-rooms.ts'
import { FREE_TURN, MemoryRooms } from '../../../shared/tenancy/room/rooms.ts'
import { answerParent, given } from './child.ts'

/** `redis`: where the room is that it shares with the others; it has its own unless given. Without `hasTurns` each call is sent at once. */
export type GateGiven = { url: string; model: string; redis: string | undefined; hasTurns: boolean }
export type Call = { tenant: TenantId; customer: string; priority: Priority }
/** `textMs`: until the first text. `asked`: how often the process has asked the rooms since its outcome before. */
export type Outcome = { textMs: number | undefined; tokens: number; failed: boolean; asked: number }

/** Calls the provider for the parent. */
async function openGate({ url, model, redis, hasTurns }: GateGiven): Promise<void> {
  const plain = await createProvider({ type: 'openai-compatible', baseUrl: url, apiKey: 'k' })
  let asked = 0
  const rooms = redis === undefined ? new MemoryRooms() : createRedisRooms((await openRedisLink(redis)).run)
  const counted: Rooms = { ask: (...args) => (asked++, rooms.ask(...args)), look: (scope) => rooms.look(scope) }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const gate = hasTurns ? new ModelGate({ rooms: counted, metrics: NO_METRICS, log }) : { enter: () => FREE_TURN }
  const meter = createMeter({ reservations: { reserve: async () => ({ settle() {} }) }, gate, priceOf: () => 0 })
  const { signal } = new AbortController()
  answerParent(async ({ tenant, customer, priority }: Call): Promise<Outcome> => {
    const prompt = 'y'.repeat(400 + Math.floor(Math.random() * 800))
    const request = { messages: [{ role: 'user' as const, text: prompt }], tools: [], stopSequences: [] }
    const primary = { provider: meter.provider(tenant, plain), model, caller: { priority, customer } }
    const startedAt = performance.now()
    const outcome: Outcome = { textMs: undefined, tokens: 0, failed: false, asked: 0 }
    for await (const part of oneByOne(callModel({ primary, fallback: undefined, request, signal }))) {
      if (part.type === 'text_delta') outcome.textMs ??= performance.now() - startedAt
      if (part.type === 'failure') outcome.failed = true
      if (part.type === 'finish') outcome.tokens = (part.usage?.input ?? 0) + (part.usage?.output ?? 0)
    }
    outcome.asked = asked
    asked = 0
    return outcome
  })
}

if (process.argv[1] === import.meta.filename) await openGate(given() as GateGiven)

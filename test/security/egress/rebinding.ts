import { createHttpSend } from '../../../shared/agent/providers/chat/transport.ts'
import { type Address, createConnectionGuard } from '../../../shared/platform/net/address-policy.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import type { Random } from '../../harness/seed.ts'
import type { Trap } from './trap.ts'

const HIDDEN: readonly Address[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
  { address: '::ffff:127.0.0.1', family: 6 },
  { address: '0.0.0.0', family: 4 },
]
/** A global unicast address that is not assigned. */
const PUBLIC: Address = { address: '2e00::1', family: 6 }

/** Requests names whose addresses change with every lookup, by both clients of the product. Returns how many there were. */
export async function rebind(trap: Trap, random: Random, rounds: number): Promise<number> {
  const resolve = async () => {
    const answers = Array.from({ length: random.between(1, 4) }, () =>
      random.chance(0.4) ? PUBLIC : random.pick(HIDDEN),
    )
    return answers
  }
  const egress = createEgress({ allowPrivate: false, resolve, connectTimeoutMs: 50 })
  const send = createHttpSend({ connectMs: 50, guard: createConnectionGuard({ allowPrivate: false, resolve }) })
  let requests = 0
  for (let round = 0; round < rounds; round += 1) {
    const url = `http://rebind-${random.between(1, 5)}.example:${trap.port}/v1`
    const signal = AbortSignal.timeout(200)
    const tries = [
      egress.request(url, { signal, maxBytes: 1_000, timeoutMs: 200 }),
      egress.fetch(url, { signal }),
      send(url, { method: 'POST', headers: {}, body: 'x', signal }),
    ]
    const settled = await Promise.allSettled(tries)
    if (settled.some(({ status }) => status === 'fulfilled')) throw new Error(`${url} was reached`)
    requests += tries.length
  }
  await egress.close()
  return requests
}

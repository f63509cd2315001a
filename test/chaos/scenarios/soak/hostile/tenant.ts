import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../../harness/seed.ts'
import type { World } from '../../../world.ts'
import type { Loading } from '../load/runs.ts'
import { ATTACKS, type Attacker } from './attacks.ts'

/** How often the hostile tenant attacked, and how often it was answered 429. */
export type Hostility = { attacks: number; refusals: number }

type Headers = Readonly<Record<string, string>>

const KEPT_UP_MS = 4_000

/** Makes one attack after the other until the signal is aborted. */
export async function attackInTurn(
  { world, random, signal }: Loading,
  { headers, tarpit }: { headers: Headers; tarpit: string },
): Promise<Hostility> {
  const hostility: Hostility = { attacks: 0, refusals: 0 }
  for (let n = 0; !signal.aborted; n++) {
    const begin = ATTACKS[n % ATTACKS.length] as (typeof ATTACKS)[number]
    const over = new AbortController()
    const attacker = attackerOf({ world, random: random.fork(`attack ${n}`), headers, tarpit, over: over.signal })
    const undo = await begin(attacker)
    await sleep(KEPT_UP_MS, undefined, { signal }).catch(() => undefined)
    over.abort()
    await undo?.()
    hostility.attacks++
    hostility.refusals += attacker.refusals
  }
  return hostility
}

type Means = { world: World; random: Random; headers: Headers; tarpit: string; over: AbortSignal }

/** Reaches the cluster through random gateways with the headers of the hostile tenant. */
export function attackerOf({ world, random, headers, tarpit, over }: Means): Attacker & { refusals: number } {
  const unread: Response[] = [] // The connection of an answer that is collected as garbage is closed.
  const attacker = {
    refusals: 0,
    tarpit,
    async ask(asked: Parameters<Attacker['ask']>[0]) {
      const answered = await world.ask(random.pick(world.gateways), { ...asked, headers })
      if (answered.status === 429) attacker.refusals++
      return answered
    },
    hold: ({ path, body, isUnread = false }: Parameters<Attacker['hold']>[0]) => {
      const isRaw = body instanceof FormData || body instanceof ReadableStream
      const request = fetch(random.pick(world.gateways).url + path, {
        method: 'POST',
        headers: { ...headers, ...(!(body instanceof FormData) && { 'content-type': 'application/json' }) },
        body: isRaw ? body : JSON.stringify(body),
        signal: over,
        duplex: 'half',
      })
      const read = async (answer: Response) => {
        if (answer.status === 429) attacker.refusals++
        if (isUnread) unread.push(answer)
        else await answer.arrayBuffer()
      }
      request.then(read).catch(() => {}) // A fault or the end of the attack: nobody waits for it.
    },
  }
  return attacker
}

/** A server that accepts connections, reads, and never answers. */
export class Tarpit implements AsyncDisposable {
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket.on('error', () => {}).resume())
    socket.once('close', () => this.#sockets.delete(socket))
  })

  static async start(): Promise<Tarpit> {
    const tarpit = new Tarpit()
    await once(tarpit.#server.listen(0, '127.0.0.1'), 'listening')
    return tarpit
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

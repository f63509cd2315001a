import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { now } from '../../history.ts'
import type { Member } from '../../world.ts'
import { callFlow, type FlowAnswer, type FlowCall } from './call.ts'

export type FlowLoadSize = {
  callers: number
  /** The longest time that the model takes. */
  maxMs: number
}

type Gateways = { readonly gateways: readonly Pick<Member, 'name' | 'url'>[]; headers?: FlowCall['headers'] }

const KEY_SHARE = 0.5
const STREAM_SHARE = 0.4
const REPLAY_SHARE = 0.3
const SERVED_WITHIN_MS = 60_000
const RETRY_MS = 300

/** Callers that each run the flow again and again, through random gateways. With a key they repeat a call that has failed. */
export class FlowLoad {
  readonly answers: FlowAnswer[] = []
  /** Keys whose calls failed for a minute. */
  readonly unserved: string[] = []
  /** Repeated calls, after an answer of 200, that got another answer. */
  readonly differences: string[] = []
  replays = 0
  readonly #world: Gateways
  readonly #size: FlowLoadSize
  readonly #random: Random
  #count = 0

  constructor(world: Gateways, size: FlowLoadSize, random: Random) {
    this.#world = world
    this.#size = size
    this.#random = random
  }

  /** Resolves when every caller has its last answer after the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const caller = async (random: Random) => {
      while (!signal.aborted) await this.#call(random)
    }
    await Promise.all(Array.from({ length: this.#size.callers }, (_, n) => caller(this.#random.fork(`caller ${n}`))))
  }

  async #call(random: Random): Promise<void> {
    const input = { token: `token-${++this.#count}`, ms: random.between(50, this.#size.maxMs) }
    const key = random.chance(KEY_SHARE) ? `key of ${input.token}` : undefined
    const deadline = now() + SERVED_WITHIN_MS
    for (;;) {
      const { name: gateway, url } = random.pick(this.#world.gateways)
      const { headers = {} } = this.#world
      const ofKey = key === undefined ? {} : { key }
      const call = { gateway, url, input, isStream: random.chance(STREAM_SHARE), headers, ...ofKey }
      const answer = await callFlow(call)
      this.answers.push(answer)
      if (answer.status === 200) return random.chance(REPLAY_SHARE) ? this.#replay(answer, random) : undefined
      await sleep(RETRY_MS)
      if (key === undefined) return
      if (now() > deadline) return void this.unserved.push(`${key}: ${answer.status} ${answer.code}`)
    }
  }

  /** Sends a call again that was answered, and compares. */
  async #replay(answer: FlowAnswer, random: Random): Promise<void> {
    if (answer.key === undefined) return
    const { name: gateway, url } = random.pick(this.#world.gateways)
    const again = await callFlow({ ...answer, gateway, url, isStream: random.chance(STREAM_SHARE) })
    this.answers.push(again)
    if (again.status !== 200) return // The fault may have come in between: this answer is checked like any other.
    this.replays++
    const isSame = again.isReplayed && again.traceId === answer.traceId
    if (!isSame) this.differences.push(`${answer.key}: ${answer.traceId} became ${again.traceId}`)
  }
}

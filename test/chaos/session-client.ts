import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../harness/seed.ts'
import { follow } from './follow.ts'
import { now } from './history.ts'
import { describeEnd } from './load.ts'
import { paced } from './prompts.ts'
import type { World } from './world.ts'

const PROMPT = paced({ count: 8, everyMs: 100 })
const RETRY_MS = 200
const ACCEPTED_WITHIN_MS = 10_000

/** A client that sends messages to one session, each after the answer to the one before, through random gateways. */
export class SessionClient {
  readonly session: string
  done = 0
  /** Messages whose runs `worker_draining` ended: they stay in the conversation without an answer. */
  cut = 0
  /** Connections that resumed a run. */
  resumes = 0
  /** Messages that were sent again, because the gateway was closing or refused them temporarily. */
  retries = 0
  /** Ends that must not happen. */
  readonly failures: string[] = []
  readonly #world: World
  readonly #random: Random

  constructor(world: World, session: string, random: Random) {
    this.#world = world
    this.session = session
    this.#random = random
  }

  /** The number of messages that the conversation must have. */
  get messages(): number {
    return 2 * this.done + this.cut
  }

  /** Sends messages until the signal is aborted or one fails. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.failures.length === 0) await this.#sendMessage()
  }

  async #sendMessage(): Promise<void> {
    const deadline = now() + ACCEPTED_WITHIN_MS
    while (now() < deadline) {
      const gateway = this.#random.pick(this.#world.gateways)
      const path = `/sessions/${this.session}/messages`
      const first = this.#world.stream(gateway, { path, body: { prompt: PROMPT } })
      const { end, resumes } = await follow(this.#world, first, { random: this.#random })
      this.resumes += resumes
      const word = describeEnd(end)
      if (word === 'done') return void this.done++
      if (word === 'worker_draining') return void this.cut++
      // A refused connection carried no message; a broken one may have.
      const canRetry = word === 'status 503' || (word === 'no answer' && first.isRefused)
      if (!canRetry) return void this.failures.push(`${gateway.name}: ${word}`)
      this.retries++
      await sleep(RETRY_MS)
    }
    this.failures.push(`refused for ${ACCEPTED_WITHIN_MS} ms`)
  }
}

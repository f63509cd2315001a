import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../harness/seed.ts'
import { follow } from './follow.ts'
import { now } from './history.ts'
import { wordsFor } from './load.ts'
import { paced } from './prompts.ts'
import type { World } from './world.ts'

const MESSAGE = paced({ count: 8, everyMs: 100 })
const AGAIN_MS = 200
const REFUSED_FOR_MS = 10_000

/** A client of one session: says the next thing when the last is answered, through whatever gateway is there. */
export class Talker {
  readonly session: string
  done = 0
  /** Messages whose runs were ended by `worker_draining`: they stay in the conversation, without an answer. */
  cut = 0
  cameBack = 0
  /** Messages that went to a gateway which was just closing, or were refused for the moment. */
  again = 0
  /** What must not happen. */
  readonly failures: string[] = []
  readonly #world: World
  readonly #random: Random

  constructor(world: World, session: string, random: Random) {
    this.#world = world
    this.session = session
    this.#random = random
  }

  /** How many messages the conversation ought to have. */
  get messages(): number {
    return 2 * this.done + this.cut
  }

  async talk(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.failures.length === 0) await this.#say()
  }

  async #say(): Promise<void> {
    const until = now() + REFUSED_FOR_MS
    while (now() < until) {
      const gateway = this.#random.pick(this.#world.gateways)
      const first = this.#world.stream(gateway, {
        path: `/sessions/${this.session}/messages`,
        body: { prompt: MESSAGE },
      })
      const { end, cameBack } = await follow(this.#world, first, { random: this.#random })
      this.cameBack += cameBack
      const word = wordsFor(end)
      if (word === 'done') return void this.done++
      if (word === 'worker_draining') return void this.cut++
      // A connection that was refused carried no message; one that broke may have.
      const isAgain = word === 'status 503' || (word === 'no answer' && first.isRefused)
      if (!isAgain) return void this.failures.push(`${gateway.name}: ${word}`)
      this.again++
      await sleep(AGAIN_MS)
    }
    this.failures.push('refused for 10 s')
  }
}

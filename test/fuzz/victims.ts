import type { Fixtures } from './case.ts'
import type { World } from './world.ts'

const REQUESTS_PER_RENEWAL = 250

/** Provides the session and runs that generated requests may delete, and replaces them every 250 requests. */
export class Victims {
  readonly #world: World
  #inputs = 0
  #made: Promise<Fixtures> | undefined

  constructor(world: World) {
    this.#world = world
  }

  async next(): Promise<Fixtures> {
    if (this.#inputs++ % REQUESTS_PER_RENEWAL === 0) this.#made = this.#renew()
    return this.#made ?? this.#renew()
  }

  async end(): Promise<void> {
    const made = await this.#made
    if (made) await this.#world.end(made)
  }

  async #renew(): Promise<Fixtures> {
    await this.end()
    return this.#world.make('victim')
  }
}

import type { Fixtures } from './case.ts'
import type { World } from './world.ts'

const SHOTS_PER_LIFE = 250

/** A session and runs that generated requests may end; new ones come now and then, so that there are some to end. */
export class Victims {
  readonly #world: World
  #shots = 0
  #made: Promise<Fixtures> | undefined

  constructor(world: World) {
    this.#world = world
  }

  async next(): Promise<Fixtures> {
    if (this.#shots++ % SHOTS_PER_LIFE === 0) this.#made = this.#renew()
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

import type { Product } from '../harness/product.ts'
import { Random } from '../harness/seed.ts'
import type { Fixtures } from './case.ts'
import type { Finding } from './finding.ts'
import { recipeFor, tell } from './generate.ts'
import { type Played, play } from './play.ts'
import { type Shot, shotOfCase, shotOfRecipe } from './shot.ts'
import { simplest } from './simplest.ts'
import { casesFor } from './table.ts'
import { Victims } from './victims.ts'
import { World } from './world.ts'

const LANES = 8
/** Enough for everything to be loaded that is loaded when it is first needed. */
const WARM_UPS = 150
const MAX_SIMPLIFIED = 20

/** The product under fire: what is aimed at it, and what must stand there untouched in the end. */
export class Range implements Disposable {
  readonly #product: Product
  readonly #seed: number
  readonly #world: World
  readonly #canary: Fixtures
  readonly #victims: Victims

  private constructor(product: Product, seed: number, { world, canary }: { world: World; canary: Fixtures }) {
    this.#product = product
    this.#seed = seed
    this.#world = world
    this.#canary = canary
    this.#victims = new Victims(world)
  }

  static async open(product: Product, seed: number): Promise<Range> {
    const world = new World(product.port)
    const range = new Range(product, seed, { world, canary: await world.make('canary') })
    await range.#play(range.#cases().slice(0, WARM_UPS), 1)
    return range
  }

  /** What a client sees of the canaries, and the files on disk. */
  look(): Promise<string[]> {
    return this.#world.look(this.#canary, this.#product.dataDir)
  }

  /** The hand-written cases, one after the other. */
  fireWritten(): Promise<Played> {
    return this.#play(this.#cases(), 1)
  }

  /** The same up to a size, in another order and many at a time: what is harmless alone may not be in company. */
  fireTogether(maxBytes: number): Promise<Played> {
    const cases = this.#cases().filter(({ bytes }) => bytes.length <= maxBytes)
    return this.#play(new Random(this.#seed).fork('together').shuffle(cases), LANES)
  }

  fireGenerated(count: number): Promise<Played> {
    const at = async (i: number) => shotOfRecipe(recipeFor(this.#seed, i), await this.#victims.next())
    return play({ count, at }, this.#product.port, LANES)
  }

  /** Generated findings with as little spoiled as does it. */
  async simplified(findings: Played['findings']): Promise<Finding[]> {
    const simple: Finding[] = []
    for (const { index, problems } of findings.slice(0, MAX_SIMPLIFIED)) {
      const victims = await this.#victims.next()
      const recipe = await simplest(recipeFor(this.#seed, index), victims, this.#product.port)
      simple.push({ name: `case ${index} (${tell(recipe)})`, problems, bytes: shotOfRecipe(recipe, victims).bytes })
    }
    return simple
  }

  /** Ends all that generated requests may have left running. */
  endVictims(): Promise<void> {
    return this.#victims.end()
  }

  [Symbol.dispose](): void {
    this.#world.leave()
  }

  #cases(): Shot[] {
    return casesFor(this.#canary).map(shotOfCase)
  }

  #play(shots: readonly Shot[], lanes: number): Promise<Played> {
    const at = (i: number): Shot => {
      const shot = shots[i]
      if (!shot) throw new Error(`there is no case ${i}`)
      return shot
    }
    return play({ count: shots.length, at }, this.#product.port, lanes)
  }
}

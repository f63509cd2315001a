import type { Product } from '../harness/product.ts'
import { Random } from '../harness/seed.ts'
import type { Fixtures } from './case.ts'
import type { Finding } from './finding.ts'
import { describeRecipe, recipeFor } from './generate.ts'
import { type FuzzInput, inputOfCase, inputOfRecipe } from './input.ts'
import { type Played, play } from './play.ts'
import { simplest } from './simplest.ts'
import { casesFor } from './table.ts'
import { Victims } from './victims.ts'
import { World } from './world.ts'

const CONCURRENCY = 8
/** Cases sent before the measurement, so that lazily loaded code is loaded. */
const WARM_UPS = 150
const MAX_SIMPLIFIED = 20

/** Sends the cases to the product. The canary is a session with runs that must be unchanged in the end. */
export class FuzzTarget implements Disposable {
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

  static async open(product: Product, seed: number, modelUrl: string): Promise<FuzzTarget> {
    const world = new World(product.port, modelUrl)
    const target = new FuzzTarget(product, seed, { world, canary: await world.make('canary') })
    await target.#play(target.#cases().slice(0, WARM_UPS), 1)
    return target
  }

  /** The canary as a client sees it, and the files on disk. */
  snapshot(): Promise<string[]> {
    return this.#world.snapshot(this.#canary, this.#product.dataDir)
  }

  /** The hand-written cases, one after the other. */
  sendWritten(): Promise<Played> {
    return this.#play(this.#cases(), 1)
  }

  /** The same up to a size, shuffled and many at a time, to find errors that a case causes only beside others. */
  sendTogether(maxBytes: number): Promise<Played> {
    const cases = this.#cases().filter(({ bytes }) => bytes.length <= maxBytes)
    return this.#play(new Random(this.#seed).fork('together').shuffle(cases), CONCURRENCY)
  }

  sendGenerated(count: number): Promise<Played> {
    const at = async (i: number) => inputOfRecipe(recipeFor(this.#seed, i), await this.#victims.next())
    return play({ count, at }, this.#product.port, CONCURRENCY)
  }

  /** The findings of generated cases, reduced to the mutations that cause the problem. */
  async simplified(findings: Played['findings']): Promise<Finding[]> {
    const simple: Finding[] = []
    for (const { index, problems } of findings.slice(0, MAX_SIMPLIFIED)) {
      const victims = await this.#victims.next()
      const recipe = await simplest(recipeFor(this.#seed, index), victims, this.#product.port)
      simple.push({
        name: `case ${index} (${describeRecipe(recipe)})`,
        problems,
        bytes: inputOfRecipe(recipe, victims).bytes,
      })
    }
    return simple
  }

  /** Deletes the sessions and runs of the generated requests. */
  endVictims(): Promise<void> {
    return this.#victims.end()
  }

  [Symbol.dispose](): void {
    this.#world.leave()
  }

  #cases(): FuzzInput[] {
    return casesFor(this.#canary).map(inputOfCase)
  }

  #play(inputs: readonly FuzzInput[], concurrency: number): Promise<Played> {
    const at = (i: number): FuzzInput => {
      const input = inputs[i]
      if (!input) throw new Error(`no case has number ${i}`)
      return input
    }
    return play({ count: inputs.length, at }, this.#product.port, concurrency)
  }
}

import type { ModelRoute } from '../providers/port.ts'
import { candidateOf, inOrder, type Needs, type Strategy } from '../providers/strategy.ts'
import { type ModelPurpose, type Models, ModelsOfRoutes, type Route } from './resources.ts'

/** The models of a run that stays with its fallback once that has served a turn (D5.5), and with the model that it has chosen (D56). */
export type StickyModels = Models & {
  /** Call it with the route that served a turn in place of the primary. */
  stayWith(served: ModelRoute | undefined): void
}

/**
 * A changed configuration still applies: a run stays with its fallback only as long as its routes name it. `needs` is
 * called only if there is a choice.
 */
export const createStickyModels = (models: Models, needs = () => NO_NEEDS): StickyModels => new Sticky(models, needs)

const NO_NEEDS: Needs = { tools: false, schema: false, files: [] }

class Sticky extends ModelsOfRoutes implements StickyModels {
  readonly #needs: () => Needs
  #served: ModelRoute | undefined
  /** The models that the strategies of the routes have chosen; most routes have none. */
  #chosen: Partial<Record<ModelPurpose, ModelRoute>> | undefined

  constructor(models: Models, needs: () => Needs) {
    super(models)
    this.#needs = needs
  }

  stayWith(route: ModelRoute | undefined): void {
    this.#served = route ?? this.#served
  }

  protected override routeFor(purpose: ModelPurpose, given: Route): Route {
    const served = this.#served
    const route = this.#ordered(purpose, given)
    if (!served || !isSame(route.fallback, served)) return route
    return route.hedge
      ? { ...route, primary: served, fallback: route.primary }
      : { primary: served, fallback: undefined }
  }

  /** Orders the two models of a route by its strategy. The order is kept as long as the route names the model that came first. */
  #ordered(purpose: ModelPurpose, route: Route): Route {
    const { primary, fallback, strategy = 'order' } = route
    if (strategy === 'order' || !fallback) return route
    const known = this.#chosen?.[purpose]
    const isKnown = isSame(primary, known) || isSame(fallback, known)
    const chosen = isKnown ? known : this.#choose(purpose, strategy, [primary, fallback])
    const swapped = isSame(fallback, chosen) ? { primary: fallback, fallback: primary } : { primary, fallback }
    return { ...route, ...swapped, strategy: 'order' }
  }

  #choose(
    purpose: ModelPurpose,
    strategy: Exclude<Strategy, 'order'>,
    routes: readonly ModelRoute[],
  ): ModelRoute | undefined {
    const facts = { needs: this.#needsOf(purpose), priceOf: this.priceOf, now: performance.now() }
    const candidates = routes.map((each) => candidateOf(each, facts))
    const first = inOrder(strategy, candidates)[0]?.route
    this.#chosen = { ...this.#chosen, ...(first && { [purpose]: first }) }
    return first
  }

  #needsOf(purpose: ModelPurpose): Needs {
    if (purpose === 'summaries') return NO_NEEDS
    return purpose === 'main' ? this.#needs() : { ...this.#needs(), schema: false, files: [] }
  }
}

const isSame = (one: ModelRoute | undefined, other: ModelRoute | undefined): boolean =>
  one !== undefined && one.provider === other?.provider && one.model === other.model

import type { ModelRoute } from '../providers/port.ts'
import { candidateOf, inOrder, type Needs } from '../providers/strategy.ts'
import type { Models, Route } from './resources.ts'

/** The models of a run that stays with its fallback once that has served a turn (D5.5), and with the model that it has chosen (D56). */
export type StickyModels = Models & {
  /** Call it with the route that served a turn in place of the primary. */
  stayWith(served: ModelRoute | undefined): void
}

/**
 * A changed configuration still applies: a run stays with its fallback only as long as its routes name it. `needs` is
 * called only if there is a choice.
 */
export function createStickyModels(models: Models, needs = () => NO_NEEDS): StickyModels {
  let served: ModelRoute | undefined
  const sticking = (choose: (route: Route) => Route, read: () => Route) => () => {
    const route = choose(read())
    if (!served || !isSame(route.fallback, served)) return route
    return route.hedge
      ? { ...route, primary: served, fallback: route.primary }
      : { primary: served, fallback: undefined }
  }
  const chooser = (read: () => Needs) => createChooser(models, read)
  return {
    ...models,
    main: sticking(chooser(needs), models.main),
    subAgents: sticking(
      chooser(() => ({ ...needs(), schema: false, files: [] })),
      models.subAgents,
    ),
    summaries: sticking(
      chooser(() => NO_NEEDS),
      models.summaries,
    ),
    stayWith(route) {
      served = route ?? served
    },
  }
}

const NO_NEEDS: Needs = { tools: false, schema: false, files: [] }

/** Orders the two models of a route by its strategy. The order is kept as long as the route names the model that came first. */
function createChooser({ priceOf }: Models, needs: () => Needs): (route: Route) => Route {
  let chosen: ModelRoute | undefined
  return (route) => {
    const { primary, fallback, strategy = 'order' } = route
    if (strategy === 'order' || !fallback) return route
    if (!isSame(primary, chosen) && !isSame(fallback, chosen)) {
      const facts = { needs: needs(), priceOf, now: performance.now() }
      chosen = inOrder(
        strategy,
        [primary, fallback].map((each) => candidateOf(each, facts)),
      )[0]?.route
    }
    const swapped = isSame(fallback, chosen) ? { primary: fallback, fallback: primary } : { primary, fallback }
    return { ...route, ...swapped, strategy: 'order' }
  }
}

const isSame = (one: ModelRoute | undefined, other: ModelRoute | undefined): boolean =>
  one !== undefined && one.provider === other?.provider && one.model === other.model

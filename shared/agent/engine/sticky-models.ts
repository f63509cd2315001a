import type { ModelRoute } from '../providers/port.ts'
import type { Models, Route } from './resources.ts'

/** The models of a run that stays with its fallback once that has served a turn (D5.5). */
export type StickyModels = Models & {
  /** Call it with the route that served a turn in place of the primary. */
  stayWith(served: ModelRoute | undefined): void
}

/** A changed configuration still counts: a run stays with its fallback only as long as its routes name it. */
export function createStickyModels(models: Models): StickyModels {
  let served: ModelRoute | undefined
  const stick = (route: Route): Route =>
    served && route.fallback?.provider === served.provider && route.fallback.model === served.model
      ? { primary: served, fallback: undefined }
      : route
  return {
    ...models,
    main: () => stick(models.main()),
    subAgents: () => stick(models.subAgents()),
    summaries: () => stick(models.summaries()),
    stayWith(route) {
      served = route ?? served
    },
  }
}

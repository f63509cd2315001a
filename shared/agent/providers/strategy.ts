import { type AttachedFile, fileKindOf } from '../../kernel/attachment.ts'
import type { Ability, ModelRoute, PriceOf, Usage } from './port.ts'
import { takesFile } from './shown-files.ts'

/** Which of a role's two models a run calls first (D56). `order`: the first one in the configuration. */
export type Strategy = 'order' | 'cheapest' | 'least_waiting'

/** The abilities that the calls of a run need from their model. */
export type Needs = { tools: boolean; schema: boolean; files: readonly AttachedFile[] }

/** One of the models. `costUsd` is the price of a typical call; `undefined` when it is unknown. */
export type Candidate = { costUsd: number | undefined; waiting: number; lacks: boolean; rests: boolean }

/**
 * The candidates in the order in which they are tried: models that rest come after the others, and models that lack an ability come last. Equal
 * ones keep their order.
 */
export function inOrder<T extends Candidate>(strategy: Exclude<Strategy, 'order'>, candidates: readonly T[]): T[] {
  const valueOf = ({ costUsd = Number.MAX_VALUE, waiting }: T) => (strategy === 'cheapest' ? costUsd : waiting)
  const ranks = (each: T) => [Number(each.lacks), Number(each.rests), valueOf(each)]
  return candidates.toSorted((one, other) => {
    const others = ranks(other)
    return ranks(one).reduce((found, rank, at) => found || rank - (others[at] ?? 0), 0)
  })
}

/** A typical call: a model reads about four tokens for each one that it writes. */
const USUAL: Usage = { input: 4_000, cacheRead: 0, cacheWrite: 0, output: 1_000 }

type Facts = { needs: Needs; priceOf: PriceOf; now: number }

export function candidateOf(route: ModelRoute, { needs, priceOf, now }: Facts): Candidate & { route: ModelRoute } {
  const { provider, model } = route
  const state = provider.stateOf?.(model)
  return {
    route,
    costUsd: priceOf(provider, model, USUAL),
    waiting: state?.waiting ?? 0,
    lacks: !isAble(route, needs),
    rests: state?.health.rests(now) ?? false,
  }
}

/** Whether the model can make such calls, as far as is known. */
function isAble(route: ModelRoute, { tools, schema, files }: Needs): boolean {
  if (tools && (lacks(route, 'tools') || route.provider.takesTools?.(route.model) === false)) return false
  return !(schema && lacks(route, 'schema')) && files.every((file) => canShow(route, file))
}

const lacks = (route: ModelRoute, ability: Ability): boolean => route.lacks?.includes(ability) === true

/** Whether the model accepts the file, as far as is known. */
export const canShow = (route: ModelRoute, file: Pick<AttachedFile, 'media_type'>): boolean =>
  takesFile(route, file) && !(fileKindOf(file.media_type) === 'image' && lacks(route, 'images'))

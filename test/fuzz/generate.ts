import { Random } from '../harness/seed.ts'
import { type Draft, encode, pickDraft, type Victims } from './draft.ts'
import { MUTATORS, type Mutate } from './mutators.ts'
import { WIRE_MUTATORS } from './wire-mutators.ts'

/** A valid request and the mutations applied to it. Each step has its own seed, so that any of them can be left out. */
export type Recipe = { base: number; steps: readonly Step[] }

type Step = { name: string; seed: number }

export type Generated = { bytes: Buffer; isHead: boolean; isFramed: boolean }

const SEEDS = 2 ** 32 - 1
const WIRE_SHARE = 0.15
/** The share that is sent without a mutation. */
const PLAIN_SHARE = 0.03
const MAX_STEPS = 4

/** The `index`th generated case of a seed. It does not depend on the other cases. */
export function recipeFor(seed: number, index: number): Recipe {
  const random = new Random(seed).fork(`case ${index}`)
  const pick = () => random.pick(Object.keys(random.chance(WIRE_SHARE) ? WIRE_MUTATORS : MUTATORS))
  const length = random.chance(PLAIN_SHARE) ? 0 : random.between(1, MAX_STEPS)
  const steps = Array.from({ length }, () => ({ name: pick(), seed: random.between(0, SEEDS) }))
  return {
    base: random.between(0, SEEDS),
    steps: [...steps.filter(isPlain), ...steps.filter((step) => !isPlain(step))],
  }
}

const isPlain = ({ name }: Step) => Object.hasOwn(MUTATORS, name)

export function make({ base, steps }: Recipe, victims: Victims): Generated {
  const draft = steps.reduce(
    (mutated: Draft, { name, seed }) => mutatorOf(name)(mutated, new Random(seed)),
    pickDraft(victims, new Random(base)),
  )
  const bytes = encode(draft)
  return { bytes, isHead: draft.method === 'HEAD', isFramed: draft.isFramed && isFramed(draft) }
}

/** Whether no header or method may change where the request or its connection ends. */
function isFramed({ headers, method }: Draft): boolean {
  return (
    headers['Connection'] === undefined &&
    headers['Expect'] === undefined &&
    headers['Upgrade'] === undefined &&
    /^[A-Z-]+$/.test(method)
  )
}

function mutatorOf(name: string): Mutate {
  const mutate = MUTATORS[name] ?? WIRE_MUTATORS[name]
  if (!mutate) throw new Error(`unknown mutator ${name}`)
  return mutate
}

/** All recipes that leave out one step of this one. */
export const simpler = ({ base, steps }: Recipe): Recipe[] =>
  steps.map((_, i) => ({ base, steps: steps.toSpliced(i, 1) }))

export const describeRecipe = ({ steps }: Recipe): string =>
  steps.length === 0 ? 'no mutation' : steps.map(({ name }) => name).join(', ')

import { Random } from './random.ts'

/** Something that goes wrong at a moment. Times are milliseconds. A process is named by its place among those of its role that are alive. */
export type Fault = { at: number } & (
  | { kind: 'freeze'; role: Role; nth: number; forMs: number }
  | { kind: 'kill'; role: Role; nth: number; backAfterMs: number }
  | { kind: 'drain'; nth: number; backAfterMs: number }
  | { kind: 'add worker' }
  | { kind: 'cut'; role: Role; nth: number; forMs: number }
  | { kind: 'wall clock'; role: Role; nth: number; byMs: number }
  | { kind: 'Redis away'; forMs: number }
  | { kind: 'Redis empty'; forMs: number }
  | { kind: 'Redis fails over'; forMs: number; lagMs: number }
  | { kind: 'messages lost'; forMs: number; share: number }
  | { kind: 'commands doubled'; forMs: number; share: number }
  | { kind: 'slow wires'; forMs: number; slowMs: number }
  | { kind: 'slow store'; forMs: number; slowMs: number }
  | { kind: 'stalled store'; forMs: number }
)
export type Role = 'gateway' | 'worker'

/** One step of a client. */
export type Step =
  | { kind: 'run'; words: number; everyMs: number; tools: readonly ('Effect' | 'Ask')[]; cancelAfterMs?: number }
  | { kind: 'message'; words: number; everyMs: number; tools: readonly ('Effect' | 'Ask')[] }
  | { kind: 'two messages' }
  | { kind: 'delete' }
  | { kind: 'wait'; ms: number }

export type ClientPlan = { steps: readonly Step[] }

/** All that a simulation is made of. `seed` decides how long things take and which messages are lost. */
export type Plan = {
  seed: number
  gateways: number
  workers: number
  /** Whether runs are stored, as with DURABILITY=runs. */
  isDurable: boolean
  clients: readonly ClientPlan[]
  faults: readonly Fault[]
}

const FIRST_FAULT_MS = 1_500
const LAST_FAULT_MS = 16_000
/** The runs of every third seed are stored. */
const DURABLE_EVERY = 3

export function planOf(seed: number): Plan {
  const random = new Random(seed)
  const clients = Array.from({ length: random.whole(3, 6) }, () => ({ steps: stepsOf(random) }))
  const isDurable = seed % DURABLE_EVERY === 0
  const faults = faultsOf(random, isDurable ? DURABLE_KINDS : KINDS)
  return { seed, gateways: random.whole(1, 2), workers: random.whole(2, 3), isDurable, clients, faults }
}

function stepsOf(random: Random): Step[] {
  return Array.from({ length: random.whole(2, 6) }, () => stepOf(random))
}

function stepOf(random: Random): Step {
  const kind = random.pick(['run', 'run', 'message', 'message', 'message', 'two messages', 'delete', 'wait'] as const)
  if (kind === 'wait') return { kind, ms: random.whole(100, 4_000) }
  if (kind === 'two messages' || kind === 'delete') return { kind }
  const speech = { words: random.whole(1, 12), everyMs: random.whole(20, 500), tools: toolsOf(random) }
  if (kind === 'message') return { kind, ...speech }
  return { kind, ...speech, ...(random.chance(0.2) && { cancelAfterMs: random.whole(0, 3_000) }) }
}

const toolsOf = (random: Random) =>
  Array.from({ length: random.pick([0, 0, 1, 2]) }, () => random.pick(['Effect', 'Ask'] as const))

const KINDS = [
  'freeze',
  'freeze',
  'freeze',
  'kill',
  'drain',
  'drain',
  'add worker',
  'cut',
  'wall clock',
  'Redis away',
  'Redis empty',
  'Redis fails over',
  'messages lost',
  'commands doubled',
  'slow wires',
] as const

/** Where runs are stored no worker is lost here (`test/chaos`, P21): runs go on elsewhere after a drain alone. */
const DURABLE_KINDS = [
  ...['slow store', 'slow store', 'stalled store', 'stalled store', 'drain', 'add worker'],
  ...['messages lost', 'commands doubled', 'slow wires'],
] as const satisfies readonly Fault['kind'][]

/** Up to five faults. Many come shortly after another one: what is found by one alone was found long ago. */
function faultsOf(random: Random, kinds: readonly Fault['kind'][]): Fault[] {
  const faults: Fault[] = []
  for (let left = random.whole(1, 5); left > 0; left--) {
    const before = faults.at(-1)
    const isClose = before !== undefined && random.chance(0.6)
    const at = isClose ? before.at + random.whole(0, 2_000) : random.whole(FIRST_FAULT_MS, LAST_FAULT_MS)
    faults.push(faultOf(at, random, kinds))
  }
  return faults.sort((a, b) => a.at - b.at)
}

function faultOf(at: number, random: Random, kinds: readonly Fault['kind'][]): Fault {
  const place = { role: random.pick(['gateway', 'worker', 'worker'] as const), nth: random.whole(0, 9) }
  const kind = random.pick(kinds)
  switch (kind) {
    case 'freeze':
      return { kind, at, ...place, forMs: random.whole(500, 9_000) }
    case 'kill':
      return { kind, at, ...place, backAfterMs: random.whole(200, 3_000) }
    case 'drain':
      return { kind, at, nth: place.nth, backAfterMs: random.whole(0, 3_000) }
    case 'add worker':
      return { kind, at }
    case 'cut':
      return { kind, at, ...place, forMs: random.whole(100, 7_000) }
    case 'wall clock':
      return { kind, at, ...place, byMs: random.whole(-5_000, 5_000) }
    case 'Redis away':
      return { kind, at, forMs: random.whole(100, 8_000) }
    case 'Redis empty':
      return { kind, at, forMs: random.whole(50, 2_000) }
    case 'Redis fails over':
      return { kind, at, forMs: random.whole(300, 4_000), lagMs: random.whole(1, 1_500) }
    case 'messages lost':
    case 'commands doubled':
      return { kind, at, forMs: random.whole(500, 6_000), share: random.between(0.02, 0.4) }
    case 'slow wires':
      return { kind, at, forMs: random.whole(500, 6_000), slowMs: random.between(5, random.pick([120, 300])) }
    case 'slow store':
      return { kind, at, forMs: random.whole(500, 8_000), slowMs: random.between(300, 2_000) }
    case 'stalled store':
      return { kind, at, forMs: random.whole(300, 6_000) }
  }
}

import { median, quantile } from '../../../scripts/bench/statistics.ts'
import type { Guarantee } from '../../harness/guarantee.ts'
import { startHelper } from '../../harness/product.ts'
import { allOf, violations } from '../figures.ts'
import type { Scenario, ScenarioOptions } from '../scenario.ts'
import { type Member, World } from '../world.ts'
import { Crowd, type Cut } from './slow-readers/crowd.ts'
import { heapKiB, MemoryWatch } from './slow-readers/memory.ts'
import { readAll, readTicks, type Ticking } from './slow-readers/readers.ts'

type Size = { slow: number; ticking: Ticking }

const SHORT: Size = { slow: 40, ticking: { readers: 40, ticks: 40, everyMs: 50 } }
const FULL: Size = { slow: 500, ticking: { readers: 200, ticks: 50, everyMs: 100 } }
/** 5.5 MiB, of which the network takes some 4: for the rest the run waits. */
const TOO_MUCH = '/blocks 44'
const WINDOWS = { alone: 3, beside: 5 }
const GROWTH_MIB = 300
const HELD_KIB = 256
const P99_RATIO = 1.5
/** Half of them; a reader that falls behind the journal is cut off at once (design §4.4). */
const CUT_SECS = { atLeast: 29, atMost: 32 }
/** How long one that was cut off may read why, with some to spare. */
const FAREWELL_SECS = 4

/** Clients that never read cost bounded memory, are cut off, and nobody else notices. */
export const slowReaders: Scenario = {
  id: 'P9',
  promise: 'slow readers cannot hurt',
  run,
}

const MODEL = new URL('slow-readers/model.ts', import.meta.url)
const INSIDE = new URL('../../harness/loop-probe-thread.ts', import.meta.url)

async function run({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = isFull ? FULL : SHORT
  await using model = await startHelper(MODEL)
  const env = {
    MODEL_PROVIDER: 'openai-compatible',
    MODEL: 'm',
    MODEL_BASE_URL: model.url,
    RUNS_PER_WORKER: '1000',
    NODE_OPTIONS: `--expose-gc --import ${INSIDE.href}`,
  }
  await using world = await World.open({ random, env, gateways: 2, workers: 2 })
  const [gateway] = world.gateways as [Member]
  // What the runs themselves take, read or not, is taken before anything is measured.
  await readAll(gateway.url, TOO_MUCH, size.slow)
  const alone = await latencies(gateway, WINDOWS.alone, size.ticking)
  const heap = await heapKiB(gateway)
  using memory = new MemoryWatch(world)
  using crowd = await Crowd.open(gateway, { count: size.slow, prompt: TOO_MUCH })
  await crowd.filled()
  say(`full after ${crowd.filledInSecs.toFixed(1)} s`)
  const heldKiB = ((await heapKiB(gateway)) - heap) / size.slow
  const beside = await latencies(gateway, WINDOWS.beside, size.ticking)
  const cuts = await crowd.cuts()
  const told = await crowd.told()
  return judge({ size, alone, beside, heldKiB, grownMiB: memory.grownMiB, cuts, told }, world)
}

/** The p99 of each of so many windows: the quieter ones are compared, since what disturbs the others is the machine's. */
async function latencies({ url }: Member, windows: number, ticking: Ticking): Promise<number[]> {
  const p99s: number[] = []
  while (p99s.length < windows) p99s.push(quantile(await readTicks(url, ticking), 0.99))
  return p99s
}

type Seen = {
  size: Size
  alone: readonly number[]
  beside: readonly number[]
  heldKiB: number
  grownMiB: number
  cuts: readonly Cut[]
  told: number
}

function judge({ size, alone, beside, heldKiB, grownMiB, cuts, told }: Seen, world: World): Guarantee[] {
  const [before, after] = [quantile(alone, 0.25), quantile(beside, 0.25)]
  const times = cuts.map(({ atLeast }) => atLeast)
  const [first, last] = [Math.min(...times), Math.max(...times)]
  const range = `${first.toFixed(1)} to ${last.toFixed(1)} s after the last of them was full`
  const inTime = times.filter((secs) => secs <= CUT_SECS.atMost).length
  const soon = median(cuts.map(({ atMost }) => atMost))
  const within = times.filter((secs) => secs >= last - FAREWELL_SECS).length
  return [
    {
      title: 'other clients’ event latency, p99',
      value: after / before,
      unit: ' x',
      goal: { atMost: P99_RATIO },
      detail: `${before.toFixed(1)} ms alone, ${after.toFixed(1)} ms beside ${size.slow} that never read`,
    },
    {
      title: 'memory in use per never-reader at the gateway',
      value: heldKiB,
      unit: ' KiB',
      goal: { atMost: HELD_KIB },
    },
    { title: 'all processes grew by', value: grownMiB, unit: ' MiB', goal: { atMost: GROWTH_MIB } },
    {
      ...allOf(`never-readers cut off within ${CUT_SECS.atMost} s`, inTime, size.slow),
      detail: `of ${size.slow}; ${range}`,
    },
    { title: 'half of them no sooner than after', value: soon, unit: ' s', goal: { atLeast: CUT_SECS.atLeast } },
    allOf('those that then read on were told slow_consumer', told, within),
    violations(world.check()),
  ]
}

import { median, quantile } from '../../../scripts/bench/statistics.ts'
import { allOf, type Guarantee } from '../../harness/guarantee.ts'
import { LOOP_PROBE_PRELOAD } from '../../harness/loop-probe.ts'
import { startProgram } from '../../harness/product.ts'
import type { Scenario, ScenarioOptions } from '../../harness/scenario.ts'
import { noViolations } from '../checker.ts'
import { sumCounter } from '../counters.ts'
import { type Member, World } from '../world.ts'
import { Crowd, type Cut, type Told } from './slow-readers/crowd.ts'
import { type Growth, heapKiB, MemoryWatch } from './slow-readers/memory.ts'
import { readAll, readTicks, type Ticking } from './slow-readers/readers.ts'
import { clientsThatFit } from './slow-readers/tcp-memory.ts'

type Size = { gateways: number; slow: number; ticking: Ticking }

const SHORT: Size = { gateways: 1, slow: 6, ticking: { readers: 10, ticks: 40, everyMs: 50 } }
const FULL: Size = { gateways: 2, slow: 500, ticking: { readers: 200, ticks: 50, everyMs: 100 } }
/** 5.5 MiB, more than the about 4 MiB that the network buffers hold, so that the run waits for its reader. */
const TOO_MUCH = '/blocks 44'
const WINDOWS = { alone: 3, underAttack: 3 }
/** A window that begins so soon after the stall ends before the last clients are cut off and read on. */
const LAST_WINDOW_SECS = 22
const GROWTH_MIB = 300
const HELD_KIB = 256
const P99_RATIO = 1.5
/** `atLeast` applies to the median, since a reader that falls behind its run's journal is cut off at once. */
const CUT_SECS = { atLeast: 29, atMost: 32 }

/** Clients that never read cost bounded memory, are cut off, and do not slow down other clients. */
export const slowReaders: Scenario = {
  id: 'P9',
  promise: 'clients that never read cost little memory, are cut off after 30 s and do not slow down others',
  run,
}

const MODEL = new URL('slow-readers/model.ts', import.meta.url)

async function run({ isFull, random, say }: ScenarioOptions): Promise<Guarantee[]> {
  const size = fitting(isFull ? FULL : SHORT)
  say(`${size.slow} clients that never read, as many as the kernel's TCP memory holds the buffers of`)
  await using model = await startProgram(MODEL)
  const env = {
    MODEL_PROVIDER: 'openai-compatible',
    MODEL: 'm',
    MODEL_BASE_URL: model.url,
    RUNS_PER_WORKER: '1000',
    NODE_OPTIONS: `--import ${LOOP_PROBE_PRELOAD.href}`,
  }
  await using world = await World.open({ random, env, gateways: size.gateways, workers: 2 })
  const [gateway] = world.gateways as [Member]
  await warmUp(gateway, size)
  const alone = await latencies(gateway, { windows: WINDOWS.alone, ticking: size.ticking })
  const heap = await heapKiB(gateway)
  using memory = new MemoryWatch(world)
  using crowd = await Crowd.open(gateway, { count: size.slow, prompt: TOO_MUCH })
  await crowd.stalled()
  say(`all runs stalled after ${crowd.stalledInSecs.toFixed(1)} s`)
  const heldKiB = ((await heapKiB(gateway)) - heap) / size.slow
  const mayGoOn = async () => {
    await crowd.lookForCuts()
    return crowd.stalledForSecs < LAST_WINDOW_SECS
  }
  const underAttack = await latencies(gateway, { windows: WINDOWS.underAttack, ticking: size.ticking, mayGoOn })
  const cuts = await crowd.cuts()
  const told = await crowd.countTold(cuts)
  return guaranteesOf({ size, alone, underAttack, heldKiB, growth: memory.growth, cuts, told }, world)
}

const fitting = (size: Size): Size => ({ ...size, slow: clientsThatFit(size.slow) })

/**
 * The same runs, all read, and a look at the metrics, for which the gateway loads code. So the memory that runs need, read or not, and
 * that is needed once, is allocated before the measurement.
 */
async function warmUp(gateway: Member, { slow }: Size): Promise<void> {
  await sumCounter([gateway], 'slow_consumers')
  await readAll(gateway.url, TOO_MUCH, slow)
}

type Measuring = { windows: number; ticking: Ticking; mayGoOn?: () => Promise<boolean> }

/**
 * The p99 of each window, of which there is at least one. The quieter windows are compared, since other processes disturb the others.
 * `mayGoOn` is asked between two windows.
 */
async function latencies({ url }: Member, { windows, ticking, mayGoOn }: Measuring): Promise<number[]> {
  const p99s: number[] = []
  for (;;) {
    p99s.push(quantile(await readTicks(url, ticking), 0.99))
    if (p99s.length === windows || (await mayGoOn?.()) === false) return p99s
  }
}

type Seen = {
  size: Size
  alone: readonly number[]
  underAttack: readonly number[]
  heldKiB: number
  growth: Growth
  cuts: readonly Cut[]
  told: Told
}

function guaranteesOf({ size, alone, underAttack, heldKiB, growth, cuts, told }: Seen, world: World): Guarantee[] {
  const [before, after] = [quantile(alone, 0.25), quantile(underAttack, 0.25)]
  const times = cuts.map(({ atLeast }) => atLeast)
  const [first, last] = [Math.min(...times), Math.max(...times)]
  const range = `${first.toFixed(1)} to ${last.toFixed(1)} s after the last run stalled`
  const inTime = times.filter((secs) => secs <= CUT_SECS.atMost).length
  const soon = median(cuts.map(({ atMost }) => atMost))
  return [
    {
      title: 'event latency of other clients, p99',
      value: after / before,
      unit: ' x',
      goal: { atMost: P99_RATIO },
      detail: `${before.toFixed(1)} ms alone, ${after.toFixed(1)} ms with ${size.slow} clients that never read`,
    },
    {
      title: 'memory in use at the gateway per never-reading client',
      value: heldKiB,
      unit: ' KiB',
      goal: { atMost: HELD_KIB },
    },
    {
      title: 'growth of all processes over the same runs with readers',
      value: growth.mib,
      unit: ' MiB',
      goal: { atMost: GROWTH_MIB },
      detail: growth.byProcess,
    },
    {
      ...allOf(`never-reading clients cut off within ${CUT_SECS.atMost} s`, inTime, size.slow),
      detail: `of ${size.slow}; ${range}`,
    },
    { title: 'median time to the cut', value: soon, unit: ' s', goal: { atLeast: CUT_SECS.atLeast } },
    allOf('those that read the rest received slow_consumer', told.received, told.inTime),
    noViolations(world.check()),
  ]
}

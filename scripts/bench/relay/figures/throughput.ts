import { setTimeout as sleep } from 'node:timers/promises'
import { cpuMs } from '../../proc.ts'
import { median } from '../../statistics.ts'
import type { Cpu } from '../cluster.ts'
import type { RelayBench } from '../relay-bench.ts'
import { floodOf, untilFlowing } from '../source/script.ts'
import { BARE_PATH, type Target } from '../target.ts'

/** The measured designs: the number of streams, and the way of the events to the client. */
export const DESIGNS = {
  relay500: { streams: 500, kind: 'relay' },
  direct500by1: { streams: 500, kind: 'direct', perWrite: 1 },
  direct500by16: { streams: 500, kind: 'direct', perWrite: 16 },
  relay50: { streams: 50, kind: 'relay' },
  direct50by4: { streams: 50, kind: 'direct', perWrite: 4 },
  relay1: { streams: 1, kind: 'relay' },
  direct1by200: { streams: 1, kind: 'direct', perWrite: 200 },
} as const satisfies Record<string, { streams: number; kind: 'relay' | 'direct'; perWrite?: number }>

export type DesignName = keyof typeof DESIGNS

export type Sample = {
  perSecond: number
  /** CPU time per event in microseconds: of all processes but the client, and of Redis. */
  us: number
  redisUs: number
  /** CPU time of each process. */
  cpu: Cpu
}

export type Samples = Record<DesignName, Sample[]>
/** Why a design could not be measured. */
export type Failures = Partial<Record<DesignName, string>>

const SETTLE_MS = 100

/** Measures each design once per round, compared ones one after the other. The first round is a warm-up. */
export async function sampleAll(
  bench: RelayBench,
  names: readonly DesignName[],
): Promise<{ samples: Samples; failures: Failures }> {
  const samples = Object.fromEntries(Object.keys(DESIGNS).map((name) => [name, []])) as unknown as Samples
  const failures: Failures = {}
  for (let round = 0; round <= bench.pick(5, 2); round++) {
    for (const name of names.filter((each) => failures[each] === undefined)) {
      try {
        const taken = await sample(bench, name, bench.pick(round === 0 ? 500 : 1_500, round === 0 ? 50 : 600))
        if (round > 0) samples[name].push(taken)
      } catch (cause) {
        failures[name] = String(cause)
        await (await bench.load()).close()
      }
    }
  }
  return { samples, failures }
}

async function sample(bench: RelayBench, name: DesignName, windowMs: number): Promise<Sample> {
  const load = await bench.load()
  const { streams } = DESIGNS[name]
  const { target, readCpu } = await openDesign(bench, name)
  const script = floodOf(streams)
  await load.open({ target, streams, script })
  await sleep(untilFlowing(script, bench.pick(400, 200)))
  const before = readCpu()
  const { events, ms } = await load.count(windowMs)
  const cpu = less(readCpu(), before)
  const { lost, repeated, ended } = await load.report()
  await load.close()
  if (lost + repeated > 0) throw new Error(`${name}: ${lost} events were lost and ${repeated} were repeated`)
  if (ended > 0) throw new Error(`${name}: ${ended} of ${streams} streams were cut off`)
  await sleep(SETTLE_MS)
  const us = (1000 * (cpu.gateway + cpu.worker + cpu.redis)) / events
  return { perSecond: (events * 1000) / ms, us, redisUs: (1000 * cpu.redis) / events, cpu }
}

type Opened = { target: Target; readCpu(): Cpu }

async function openDesign(bench: RelayBench, name: DesignName): Promise<Opened> {
  const design = DESIGNS[name]
  if (design.kind === 'direct') {
    const { pid } = await bench.direct()
    const target = await bench.directTarget(`${BARE_PATH}?per_write=${design.perWrite}`)
    return { target, readCpu: () => ({ gateway: cpuMs(pid), worker: 0, redis: 0 }) }
  }
  const cluster = await bench.relay()
  return { target: cluster.target, readCpu: () => cluster.cpuMs() }
}

const less = (after: Cpu, before: Cpu): Cpu => ({
  gateway: after.gateway - before.gateway,
  worker: after.worker - before.worker,
  redis: after.redis - before.redis,
})

/** The median of the rounds' ratios. Both sides of a round were measured within seconds. */
export function ratio(a: readonly Sample[], b: readonly Sample[], of: (sample: Sample) => number): number {
  return median(a.flatMap((each, round) => (b[round] ? [of(each) / of(b[round])] : [])))
}

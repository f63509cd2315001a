import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../../harness/seed.ts'
import type { Effects } from '../../../effects.ts'
import { acting, paced } from '../../../prompts.ts'
import type { World } from '../../../world.ts'
import { type Read, readRun } from './reader.ts'

export type Loading = { world: World; random: Random; signal: AbortSignal }

/** A client that starts one piece of work after the other until the signal is aborted. It pauses after each, so that refusals do not become a storm. */
export async function repeat(
  { random, signal }: Loading,
  work: (random: Random, n: number) => Promise<void>,
): Promise<void> {
  await sleep(random.between(0, RAMP_MS))
  for (let n = 1; !signal.aborted; n++) {
    await work(random.fork(`piece ${n}`), n)
    await sleep(PAUSE_MS)
  }
}

const PAUSE_MS = 200
/** The clients of a part do not all begin at the same moment. */
const RAMP_MS = 4_000

/** Runs that say numbers; the client closes its connection now and then, and continues through any gateway. */
export async function followRuns(loading: Loading): Promise<Read[]> {
  const reads: Read[] = []
  await repeat(loading, async (random) => {
    const prompt = paced({ count: random.between(5, 40), everyMs: random.between(50, 400) })
    const leaves = random.chance(0.4) ? random.between(1, 3) : 0
    reads.push(await readRun(loading.world, { path: '/agent/run', body: { prompt } }, { random, leaves }))
  })
  return reads
}

/** Runs that call a tool with an effect outside of the cluster. */
export async function actOutside(loading: Loading, effects: Effects): Promise<Read[]> {
  const reads: Read[] = []
  await repeat(loading, async (random) => {
    const mark = randomUUID()
    const inputs = effects.inputs(mark, random.between(5, 20))
    const prompt = acting({ tool: 'WebFetch', inputs, everyMs: random.between(100, 500) })
    const stream = { run: '' }
    effects.assign(mark, stream)
    const onRun = (run: string) => {
      stream.run = run
    }
    reads.push(await readRun(loading.world, { path: '/agent/run', body: { prompt } }, { random, onRun }))
  })
  return reads
}

/** A run that was cancelled: the answer, and how its stream ended. */
export type Cancelled = Read & { status: number }

/** Runs that another request cancels. */
export async function cancelRuns(loading: Loading): Promise<Cancelled[]> {
  const cancelled: Cancelled[] = []
  await repeat(loading, async (random) => {
    cancelled.push(await cancelOne(loading.world, random))
  })
  return cancelled
}

async function cancelOne(world: World, random: Random): Promise<Cancelled> {
  const after = random.between(2, 15)
  let run = ''
  let answer: Promise<{ status: number }> | undefined
  const onRun = (id: string) => {
    run = id
  }
  const onFrame = ({ seq }: { seq: number }) => {
    if (seq >= after) answer ??= world.ask(random.pick(world.gateways), { method: 'DELETE', path: `/runs/${run}` })
  }
  const body = { prompt: paced({ count: 60, everyMs: 200 }) }
  const read = await readRun(world, { path: '/agent/run', body }, { random, onFrame, onRun })
  return { ...read, status: (await answer)?.status ?? 0 }
}

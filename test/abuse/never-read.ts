import { Client } from '../../scripts/bench/client.ts'
import { GATEWAY } from '../../scripts/bench/dialect.ts'
import { rssMiB } from '../../scripts/bench/proc.ts'
import { median } from '../../scripts/bench/statistics.ts'
import { allOf, type Guarantee } from '../harness/guarantee.ts'
import { healthGuarantees, probeHealth } from '../harness/health.ts'
import { watchLeftovers } from '../harness/leftovers.ts'
import { LOOP_PROBE_PRELOAD, LoopProbe } from '../harness/loop-probe.ts'
import { Product, startProgram } from '../harness/product.ts'
import { NeverCrowd } from './never-crowd.ts'

const NEVER_READERS = 50
const READERS = 50
/** 100 tokens a second. */
const READ = { tokens: 200, everyMs: 10 }
const READ_RATIO = 1.5
/** About 4 MiB of text that the network took, which the turn keeps, and as much again for the journal and all buffers. */
const HEAP_MIB_EACH = 8
const ALL_WITHIN_MS = 180_000
const MODEL = new URL('big-model.ts', import.meta.url)

/** P9 on one process: clients that never read cost bounded memory, are cut off after 30 s, and do not slow down others. */
export async function measureNeverRead(): Promise<Guarantee[]> {
  await using model = await startProgram(MODEL)
  const env = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'm', MODEL_BASE_URL: model.url, RUN_RESUME_SECS: '0' }
  await using product = await Product.start({ env, preload: LOOP_PROBE_PRELOAD })
  using client = new Client({ port: product.port, dialect: GATEWAY }, AbortSignal.timeout(ALL_WITHIN_MS))
  await serve(client) // A warm-up.
  const alone = await serve(client)
  const compareLeftovers = await watchLeftovers(product)
  const compareMemory = await watchMemory(product)
  using crowd = new NeverCrowd(product.port, NEVER_READERS)
  const stalled = await crowd.stalled()
  const memory = await compareMemory()
  const health = probeHealth(product)
  const [underAttack, cuts] = await Promise.all([serve(client), crowd.cutOff()])
  return [
    ...healthGuarantees(await health.stop()),
    ...servedGuarantees(alone, underAttack),
    allOf('runs of never-reading clients stopped before their end', stalled, NEVER_READERS),
    memory,
    ...cuts,
    ...(await compareLeftovers()),
  ]
}

/** The durations of the runs that came whole. */
async function serve(client: Client): Promise<number[]> {
  const runs = Array.from({ length: READERS }, () => client.stream(READ.tokens, { everyMs: READ.everyMs }))
  const settled = await Promise.allSettled(runs)
  return settled.flatMap((run) => (run.status === 'fulfilled' ? [run.value.totalMs] : []))
}

function servedGuarantees(alone: number[], underAttack: number[]): Guarantee[] {
  const [before, after] = [median(alone), median(underAttack)]
  const detail = `${before.toFixed(0)} ms alone, ${after.toFixed(0)} ms under attack`
  return [
    allOf('runs of other clients that came whole', underAttack.length, READERS),
    { title: 'duration of their runs', value: after / before, unit: ' x', goal: { atMost: READ_RATIO }, detail },
  ]
}

async function watchMemory(product: Product): Promise<() => Promise<Guarantee>> {
  const probe = new LoopProbe(product)
  const [heap, rss] = [await probe.heapMiB(), rssMiB(product.pid)]
  return async () => {
    const grownRss = rssMiB(product.pid) - rss
    const grown = (await probe.heapMiB()) - heap
    const detail = `heap +${grown.toFixed(0)} MiB, resident +${grownRss.toFixed(0)} MiB with ${NEVER_READERS}`
    const goal = { atMost: HEAP_MIB_EACH }
    const title = 'memory in use per never-reading client'
    return { title, value: grown / NEVER_READERS, unit: ' MiB', goal, detail }
  }
}

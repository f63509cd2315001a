import { Client } from '../../scripts/bench/client.ts'
import { GATEWAY } from '../../scripts/bench/dialect.ts'
import { rssMiB } from '../../scripts/bench/proc.ts'
import { median } from '../../scripts/bench/statistics.ts'
import type { Guarantee } from '../harness/guarantee.ts'
import { countOf, healthPromises, leftBehind, startHealth } from '../harness/guarantees.ts'
import { INSIDE, LoopProbe } from '../harness/loop-probe.ts'
import { Product, startHelper } from '../harness/product.ts'
import { NeverCrowd } from './never-crowd.ts'

const NEVER_READERS = 50
const READERS = 50
/** At 100 tokens a second. */
const READ = { tokens: 200, everyMs: 10 }
const READ_RATIO = 1.5
/** Some 4 MiB that the network took, kept as the turn's own text, and as much again for the journal and all buffers. */
const HEAP_MIB_EACH = 8
const ALL_WITHIN_MS = 180_000
const MODEL = new URL('big-model.ts', import.meta.url)

/** P9 in short: clients that never read cost bounded memory, are cut off after 30 s, and nobody else notices. */
export async function measureNeverRead(): Promise<Guarantee[]> {
  await using model = await startHelper(MODEL)
  const env = { MODEL_PROVIDER: 'openai-compatible', MODEL: 'm', MODEL_BASE_URL: model.url, RUN_RESUME_SECS: '0' }
  await using product = await Product.start({ env, preload: INSIDE })
  using client = new Client({ port: product.port, dialect: GATEWAY }, AbortSignal.timeout(ALL_WITHIN_MS))
  await serve(client) // The first ones wake what sleeps.
  const alone = await serve(client)
  const rest = await leftBehind(product)
  const memory = await startMemory(product)
  using crowd = new NeverCrowd(product.port, NEVER_READERS)
  const heldBack = await crowd.stand()
  const held = await memory()
  const health = startHealth(product)
  const [meanwhile, cuts] = await Promise.all([serve(client), crowd.cutOff()])
  return [
    ...healthPromises(await health.stop()),
    ...servedPromises(alone, meanwhile),
    countOf('never-readers’ runs held back before their end', heldBack, NEVER_READERS),
    held,
    ...cuts,
    ...(await rest()),
  ]
}

/** How long each of the runs took that came whole. */
async function serve(client: Client): Promise<number[]> {
  const runs = Array.from({ length: READERS }, () => client.stream(READ.tokens, { everyMs: READ.everyMs }))
  const settled = await Promise.allSettled(runs)
  return settled.flatMap((run) => (run.status === 'fulfilled' ? [run.value.totalMs] : []))
}

function servedPromises(alone: number[], meanwhile: number[]): Guarantee[] {
  const [before, after] = [median(alone), median(meanwhile)]
  const detail = `${before.toFixed(0)} ms alone, ${after.toFixed(0)} ms meanwhile`
  return [
    countOf('other clients’ runs that came whole', meanwhile.length, READERS),
    { title: 'other clients’ runs take', value: after / before, unit: ' x', goal: { atMost: READ_RATIO }, detail },
  ]
}

async function startMemory(product: Product): Promise<() => Promise<Guarantee>> {
  const insider = new LoopProbe(product)
  const [heap, rss] = [await insider.heapMiB(), rssMiB(product.pid)]
  return async () => {
    const grownRss = rssMiB(product.pid) - rss
    const grown = (await insider.heapMiB()) - heap
    const detail = `heap +${grown.toFixed(0)} MiB, resident +${grownRss.toFixed(0)} MiB with ${NEVER_READERS}`
    const goal = { atMost: HEAP_MIB_EACH }
    return { title: 'memory in use per never-reader', value: grown / NEVER_READERS, unit: ' MiB', goal, detail }
  }
}

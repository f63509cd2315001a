import { setTimeout as sleep } from 'node:timers/promises'
import type { Guarantee } from '../harness/guarantee.ts'
import { errorsIn, noneOf } from '../harness/guarantees.ts'
import { INSIDE, LoopProbe } from '../harness/loop-probe.ts'
import { Prober } from '../harness/prober.ts'
import { Product } from '../harness/product.ts'
import type { Finding } from './finding.ts'
import { playedPromises, restPromises, stallPromises, stopPromises } from './promises.ts'
import { Range } from './range.ts'
import { TOKEN } from './request.ts'
import { findCulprits } from './stalls.ts'

export type Order = {
  seed: number
  /** Of generated cases. */
  count: number
  isFull: boolean
}

export type Fuzzed = { promises: Guarantee[]; findings: Finding[]; port: number }

/** Several large bodies at a time take several seconds. */
const SMALL = 1024 * 1024

const DYING_MS = 500

const ENV = {
  API_TOKEN: TOKEN,
  CORS_ORIGINS: 'https://app.example',
  RUN_RESUME_SECS: '1',
  PERMISSION_TIMEOUT_SECS: '3600',
}

/** P12: hand-written and generated hostile requests, at a product that must not fail, stall, forget or grow by any of them. */
export async function fuzz(order: Order): Promise<Fuzzed> {
  await using product = await Product.start({ env: ENV, preload: INSIDE })
  const { port } = product
  try {
    return { ...(await fuzzProduct(product, order)), port }
  } catch (cause) {
    await sleep(DYING_MS) // A connection is refused a moment before the end of its process is known.
    if (product.isRunning) throw cause
    return { promises: [noneOf('crashes', [product.lines.slice(-5).join(' ')])], findings: [], port }
  }
}

async function fuzzProduct(product: Product, { seed, count, isFull }: Order): Promise<Omit<Fuzzed, 'port'>> {
  const { port } = product
  using range = await Range.open(product, seed)
  const insider = new LoopProbe(product)
  const before = { seen: await range.look(), heapMiB: await insider.heapMiB() }
  const mark = insider.mark()
  const prober = new Prober(port)
  const written = await range.fireWritten()
  const together = await range.fireTogether(isFull ? Number.POSITIVE_INFINITY : SMALL)
  const generated = await range.fireGenerated(count)
  const probed = await prober.stop()
  const stalls = insider.stalls(mark)
  const findings = [...written.findings, ...together.findings, ...(await range.simplified(generated.findings))]
  for (const played of [written, together, generated]) {
    findings.push(...(await findCulprits(played, stalls, { port, insider })))
  }
  await range.endVictims()
  const after = { seen: await range.look(), heapMiB: await insider.heapMiB() }
  const promises = [
    ...playedPromises('hand-written cases', written),
    ...playedPromises('the same, eight at a time', together),
    ...playedPromises('generated cases', generated),
    ...stallPromises(stalls, probed),
    ...restPromises(before, after),
    noneOf('errors in the log', errorsIn(product)),
    ...(await stopPromises(product)),
  ]
  return { promises, findings: unique(findings) }
}

/** The same problem is told once, however many milliseconds it was. */
function unique(findings: readonly Finding[]): Finding[] {
  const keyOf = ({ name, problems }: Finding) => `${name} ${problems.join().replaceAll(/\d+ ms/g, '')}`
  return [...new Map(findings.map((finding) => [keyOf(finding), finding])).values()]
}

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { HealthProber } from '../../scripts/bench/health-prober.ts'
import { type Guarantee, noneOf } from '../harness/guarantee.ts'
import { errorsIn } from '../harness/leftovers.ts'
import { LOOP_PROBE_PRELOAD, LoopProbe } from '../harness/loop-probe.ts'
import { Product } from '../harness/product.ts'
import { ModelServer } from '../support/model-server/model-server.ts'
import type { Finding } from './finding.ts'
import { GROWTH_MIB, leftoverGuarantees, playedGuarantees, stallGuarantees, stopGuarantees } from './guarantees.ts'
import { TOKEN } from './request.ts'
import { findCulprits } from './stalls.ts'
import { FuzzTarget } from './target.ts'

export type FuzzOptions = {
  seed: number
  /** The number of generated cases. */
  count: number
  isFull: boolean
}

export type Fuzzed = { guarantees: Guarantee[]; findings: Finding[]; port: number }

/** Largest case that the short form sends together with others: several larger ones at a time take several seconds. */
const MAX_TOGETHER_BYTES = 1024 * 1024
const EXIT_NOTICED_MS = 500

const ENV = {
  MASTER_KEY: randomBytes(32).toString('base64'),
  API_TOKEN: TOKEN,
  CORS_ORIGINS: 'https://app.example',
  RUN_RESUME_SECS: '1',
  PERMISSION_TIMEOUT_SECS: '3600',
}

/** P12: sends hand-written and generated hostile requests to a product. None may make it fail, stall, lose data or grow. */
export async function fuzz(options: FuzzOptions): Promise<Fuzzed> {
  await using product = await Product.start({ env: ENV, preload: LOOP_PROBE_PRELOAD })
  const { port } = product
  const model = new ModelServer({ record: false })
  model.otherwise(() => '{}')
  await model.listen(0)
  try {
    return { ...(await fuzzProduct(product, { ...options, modelUrl: model.url })), port }
  } catch (cause) {
    await sleep(EXIT_NOTICED_MS) // Connections are refused shortly before the exit of the process is reported.
    if (product.isRunning) throw cause
    return { guarantees: [noneOf('crashes', [product.lines.slice(-5).join(' ')])], findings: [], port }
  } finally {
    await model.close()
  }
}

async function fuzzProduct(
  product: Product,
  { seed, count, isFull, modelUrl }: FuzzOptions & { modelUrl: string },
): Promise<Omit<Fuzzed, 'port'>> {
  const { port } = product
  using target = await FuzzTarget.open(product, seed, modelUrl)
  const probe = new LoopProbe(product)
  const before = { seen: await target.snapshot(), heapMiB: await probe.heapMiB() }
  const mark = probe.mark()
  const prober = new HealthProber(port)
  const written = await target.sendWritten()
  const together = await target.sendTogether(isFull ? Number.POSITIVE_INFINITY : MAX_TOGETHER_BYTES)
  const generated = await target.sendGenerated(count)
  const probed = await prober.stop()
  const stalls = probe.stalls(mark)
  const findings = [...written.findings, ...together.findings, ...(await target.simplified(generated.findings))]
  for (const played of [written, together, generated]) {
    findings.push(...(await findCulprits(played, stalls, { port, probe })))
  }
  await target.endVictims()
  const after = { seen: await target.snapshot(), heapMiB: await probe.settledHeapMiB(before.heapMiB + GROWTH_MIB) }
  const guarantees = [
    ...playedGuarantees('hand-written cases', written),
    ...playedGuarantees('the same, eight at a time', together),
    ...playedGuarantees('generated cases', generated),
    ...stallGuarantees(stalls, probed),
    ...leftoverGuarantees(before, after),
    noneOf('errors in the log', errorsIn(product)),
    ...(await stopGuarantees(product)),
  ]
  return { guarantees, findings: withoutRepeats(findings) }
}

/** Keeps one finding of each name and problems; durations in the problems may differ. */
function withoutRepeats(findings: readonly Finding[]): Finding[] {
  const keyOf = ({ name, problems }: Finding) => `${name} ${problems.join().replaceAll(/\d+ ms/g, '')}`
  return [...new Map(findings.map((finding) => [keyOf(finding), finding])).values()]
}

import { problemsOf } from '../harness/answer-problems.ts'
import { allOf, type Guarantee } from '../harness/guarantee.ts'
import { healthGuarantees, probeHealth } from '../harness/health.ts'
import { watchLeftovers } from '../harness/leftovers.ts'
import { LOOP_PROBE_PRELOAD } from '../harness/loop-probe.ts'
import { Product } from '../harness/product.ts'
import type { Random } from '../harness/seed.ts'
import { SlowCrowd } from './slow-crowd.ts'
import { SLOW_BODIES, SLOW_HEADERS, type SlowSocket, type Trickle } from './slow-socket.ts'

export type Slowness = {
  sockets: number
  uploads: number
  /** Also wait for the answers to the uploads. Otherwise the uploads are abandoned when the headers are answered. */
  waitsForUploads: boolean
}

const HEADERS_WITHIN_MS = 16_000
/** The limit for a body is 60 s; a busy machine gets a second more. */
const UPLOADS_WITHIN_MS = 61_000
/** How long a connection may stay open after its answer, so that the client can read it. */
const CLOSED_WITHIN_MS = 3_000

/** P10: clients that send slowly hold only their sockets, are answered 408 in time, and do not slow down others. */
export async function measureSlowloris(slowness: Slowness, random: Random): Promise<Guarantee[]> {
  await using product = await Product.start({ preload: LOOP_PROBE_PRELOAD })
  const compareLeftovers = await watchLeftovers(product)
  const health = probeHealth(product)
  const refused = await attack(product.port, slowness, random)
  return [...healthGuarantees(await health.stop()), ...refused, ...(await compareLeftovers())]
}

async function attack(port: number, slowness: Slowness, random: Random): Promise<Guarantee[]> {
  const pick = (count: number, from: readonly Trickle[]) => Array.from({ length: count }, () => random.pick(from))
  using headers = new SlowCrowd(port, pick(slowness.sockets, SLOW_HEADERS))
  using uploads = new SlowCrowd(port, pick(slowness.uploads, SLOW_BODIES))
  await headers.closed(HEADERS_WITHIN_MS + CLOSED_WITHIN_MS)
  const refused = refusals('slow headers', headers.sockets, HEADERS_WITHIN_MS)
  if (!slowness.waitsForUploads) {
    return [...refused, allOf('slow uploads still open after 16 s', uploads.waiting, slowness.uploads)]
  }
  await uploads.closed(UPLOADS_WITHIN_MS - HEADERS_WITHIN_MS + CLOSED_WITHIN_MS)
  return [...refused, ...refusals('slow uploads', uploads.sockets, UPLOADS_WITHIN_MS)]
}

function refusals(kind: string, sockets: readonly SlowSocket[], withinMs: number): Guarantee[] {
  const answers = sockets.map(({ answer }) => answer)
  const good = answers.filter((answer) => answer?.status === 408 && answer.isWhole && problemsOf(answer).length === 0)
  const times = sockets.map(({ answeredMs }) => answeredMs ?? Number.POSITIVE_INFINITY)
  return [
    allOf(`${kind} answered 408 with error envelope and X-Request-ID`, good.length, sockets.length),
    {
      title: `${kind}: the last answer`,
      value: seconds(Math.max(...times)),
      unit: ' s',
      goal: { atMost: withinMs / 1000 },
      detail: `the first after ${seconds(Math.min(...times))} s`,
    },
    allOf(`${kind}: connections closed`, sockets.filter(({ isOpen }) => !isOpen).length, sockets.length),
  ]
}

/** Rounded to the shown precision of a tenth. */
const seconds = (ms: number) => Math.round(ms / 100) / 10

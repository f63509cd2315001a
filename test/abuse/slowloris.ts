import type { Guarantee } from '../harness/guarantee.ts'
import { countOf, healthPromises, leftBehind, startHealth } from '../harness/guarantees.ts'
import { problemsOf } from '../harness/judge.ts'
import { INSIDE } from '../harness/loop-probe.ts'
import { Product } from '../harness/product.ts'
import type { Random } from '../harness/seed.ts'
import { SlowCrowd } from './slow-crowd.ts'
import { SLOW_BODIES, SLOW_HEADERS, type SlowSocket, type Trickle } from './slow-socket.ts'

export type Slowness = {
  sockets: number
  uploads: number
  /** For the answer to the uploads too; else they are given up once the headers are answered. */
  waitsForUploads: boolean
}

const HEADERS_WITHIN_MS = 16_000
/** The body's own 60 s, and the rest of a second for a busy machine. */
const UPLOADS_WITHIN_MS = 61_000
/** How long after its answer a connection may stay, so that the answer is read. */
const CLOSED_WITHIN_MS = 3_000

/** P10: slow writers cannot hurt. They hold their sockets and nothing else, and are answered 408 in time. */
export async function measureSlowloris(slowness: Slowness, random: Random): Promise<Guarantee[]> {
  await using product = await Product.start({ preload: INSIDE })
  const rest = await leftBehind(product)
  const health = startHealth(product)
  const promises: Guarantee[] = []
  {
    using headers = new SlowCrowd(
      product.port,
      some(slowness.sockets, () => random.pick(SLOW_HEADERS)),
    )
    using uploads = new SlowCrowd(
      product.port,
      some(slowness.uploads, () => random.pick(SLOW_BODIES)),
    )
    await headers.closed(HEADERS_WITHIN_MS + CLOSED_WITHIN_MS)
    promises.push(...refusals('slow headers', headers.sockets, HEADERS_WITHIN_MS))
    if (slowness.waitsForUploads) {
      await uploads.closed(UPLOADS_WITHIN_MS - HEADERS_WITHIN_MS + CLOSED_WITHIN_MS)
      promises.push(...refusals('slow uploads', uploads.sockets, UPLOADS_WITHIN_MS))
    } else promises.push(countOf('slow uploads still going on at 16 s', uploads.waiting, slowness.uploads))
    promises.unshift(...healthPromises(await health.stop()))
  }
  return [...promises, ...(await rest())]
}

const some = (length: number, pick: () => Trickle): Trickle[] => Array.from({ length }, pick)

function refusals(who: string, sockets: readonly SlowSocket[], withinMs: number): Guarantee[] {
  const answers = sockets.map(({ answer }) => answer)
  const good = answers.filter((answer) => answer?.status === 408 && answer.isWhole && problemsOf(answer).length === 0)
  const times = sockets.map(({ answeredMs }) => answeredMs ?? Number.POSITIVE_INFINITY)
  return [
    countOf(`${who} answered 408, envelope and X-Request-ID`, good.length, sockets.length),
    {
      title: `${who}: the last answer`,
      value: seconds(Math.max(...times)),
      unit: ' s',
      goal: { atMost: withinMs / 1000 },
      detail: `the first after ${seconds(Math.min(...times))} s`,
    },
    countOf(`${who}: connections closed`, sockets.filter(({ isOpen }) => !isOpen).length, sockets.length),
  ]
}

/** To the tenth that is shown. */
const seconds = (ms: number) => Math.round(ms / 100) / 10

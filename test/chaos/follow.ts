import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../harness/seed.ts'
import { now } from './history.ts'
import type { Ended, StreamClient } from './stream-client.ts'
import type { World } from './world.ts'

/** `end` is of the last connection; `cameBack` counts those after the first. */
export type Followed = { end: Ended; cameBack: number }

type Gateways = Pick<World, 'gateways' | 'stream'>

type Following = { random: Random; signal?: AbortSignal }

const GIVE_UP_MS = 10_000
const AGAIN_MS = 100

/**
 * Follows a run from its first connection to its own end, as a client does that comes back through any other gateway with
 * the last number it has when its gateway goes away. The signal makes it leave.
 */
export async function follow(world: Gateways, first: StreamClient, { random, signal }: Following): Promise<Followed> {
  let stream = first
  const leave = () => stream.leave()
  signal?.addEventListener('abort', leave)
  let end = await stream.ended
  let cameBack = 0
  while (stream.run !== '' && isBroken(end)) {
    if (signal?.aborted) break
    cameBack++
    stream = await reopen(world, stream, random)
    if (signal?.aborted) leave()
    end = await stream.ended
  }
  signal?.removeEventListener('abort', leave)
  return { end, cameBack }
}

/** Its connection is over and the run may not be. */
const isBroken = ({ status, terminal, how }: Ended) =>
  status === 200 && how !== 'left' && (terminal === undefined || terminal.goesOn)

/** Tries any gateway until one answers: with a stream, or a refusal that is not for now only. */
async function reopen(world: Gateways, { run, lastSeq }: StreamClient, random: Random): Promise<StreamClient> {
  const deadline = now() + GIVE_UP_MS
  while (true) {
    const stream = world.stream(random.pick(world.gateways), { path: `/runs/${run}/events`, after: lastSeq })
    const status = await stream.opened
    if ((status !== 0 && status !== 503) || now() > deadline) return stream
    await sleep(AGAIN_MS)
  }
}

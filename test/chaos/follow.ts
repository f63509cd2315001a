import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../harness/seed.ts'
import { now } from './history.ts'
import type { Ended, StreamClient } from './stream-client.ts'
import type { World } from './world.ts'

/** `end` is the end of the last connection; `resumes` counts the connections after the first. */
export type Followed = { end: Ended; resumes: number }

type Gateways = Pick<World, 'gateways' | 'stream'>

type Following = { random: Random; signal?: AbortSignal }

const REOPEN_WITHIN_MS = 10_000
const RETRY_MS = 100

/**
 * Follows a run from its first connection to its own end. When a connection breaks, or its gateway ends the stream, it
 * resumes the run through any gateway with the last number it received. Aborting the signal closes the connection.
 */
export async function follow(world: Gateways, first: StreamClient, { random, signal }: Following): Promise<Followed> {
  let stream = first
  const leave = () => stream.leave()
  signal?.addEventListener('abort', leave)
  let end = await stream.ended
  let resumes = 0
  while (stream.run !== '' && isBroken(end)) {
    if (signal?.aborted) break
    resumes++
    stream = await reopen(world, stream, random)
    if (signal?.aborted) leave()
    end = await stream.ended
  }
  signal?.removeEventListener('abort', leave)
  return { end, resumes }
}

/** Whether the connection has ended, but the run may continue. */
const isBroken = ({ status, terminal, how }: Ended) =>
  status === 200 && how !== 'left' && (terminal === undefined || terminal.canContinue)

/** Tries random gateways until one answers with a stream or with a refusal that is not temporary. */
async function reopen(world: Gateways, { run, lastSeq }: StreamClient, random: Random): Promise<StreamClient> {
  const deadline = now() + REOPEN_WITHIN_MS
  while (true) {
    const stream = world.stream(random.pick(world.gateways), { path: `/runs/${run}/events`, after: lastSeq })
    const status = await stream.opened
    if ((status !== 0 && status !== 503) || now() > deadline) return stream
    await sleep(RETRY_MS)
  }
}

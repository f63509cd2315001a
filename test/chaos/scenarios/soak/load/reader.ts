import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../../harness/seed.ts'
import { now } from '../../../history.ts'
import { describeEnd } from '../../../load.ts'
import type { SseFrame } from '../../../sse-reader.ts'
import type { Ended, StreamClient } from '../../../stream-client.ts'
import type { World } from '../../../world.ts'

export type Reading = {
  random: Random
  /** How often the client closes its connection and comes back. */
  leaves?: number
  onFrame?: (frame: SseFrame) => void
  onRun?: (run: string) => void
}

/** `end` as in `describeEnd`, with the text of a refusal. `gateways` are those that the client used. */
export type Read = { run: string; end: string; from: number; to: number; gateways: string[] }

type Opening = { path: string; body: object; customer?: string }

/** Longer than Redis and a gateway can be away together. */
const REOPEN_WITHIN_MS = 40_000
const RETRY_MS = 200

/** Starts a run through a random gateway and reads it to its end; a client that loses or closes its connection continues through another. */
export async function readRun(world: World, opening: Opening, reading: Reading): Promise<Read> {
  const { random, onFrame, onRun, leaves = 0 } = reading
  const from = now()
  const gateway = random.pick(world.gateways)
  const gateways = [gateway.name]
  let run = ''
  let stream = world.stream(gateway, { ...opening, ...(onFrame && { onFrame }) })
  void stream.opened.then(() => onRun?.(stream.run))
  for (let left = leaves; ; left--) {
    if (left > 0) await leaveLater(stream, random)
    const ended = await stream.ended
    run ||= stream.run
    if (run === '' || !canContinue(ended)) {
      const end = [describeEnd(ended), stream.refusal].filter(Boolean).join(' ')
      return { run, end, from, to: now(), gateways }
    }
    stream = await reopen(world, { run, lastSeq: stream.lastSeq, gateways }, reading)
  }
}

async function leaveLater(stream: StreamClient, random: Random): Promise<void> {
  await stream.atLeast(stream.frames + random.between(1, 12))
  if (!stream.hasEnded) stream.leave()
}

const canContinue = ({ status, terminal }: Ended) => status === 200 && (terminal === undefined || terminal.canContinue)

/** Tries random gateways until one answers with a stream or with a refusal that is not temporary. */
async function reopen(
  world: World,
  { run, lastSeq, gateways }: Broken,
  { random, onFrame }: Reading,
): Promise<StreamClient> {
  for (const deadline = now() + REOPEN_WITHIN_MS; ; await sleep(RETRY_MS)) {
    const gateway = random.pick(world.gateways)
    gateways.push(gateway.name)
    const path = `/runs/${run}/events`
    const stream = world.stream(gateway, { path, after: lastSeq, ...(onFrame && { onFrame }) })
    const status = await stream.opened
    if ((status !== 0 && status !== 503) || now() > deadline) return stream
  }
}

type Broken = { run: string; lastSeq: number; gateways: string[] }

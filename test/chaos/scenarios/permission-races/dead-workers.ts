import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../../harness/seed.ts'
import { now } from '../../history.ts'
import { endsOf, openRuns } from '../../load.ts'
import { gatewayFor } from '../../sessions.ts'
import type { StreamClient } from '../../stream-client.ts'
import type { World } from '../../world.ts'

type Round = { requests: number; timeoutMs: number; random: Random }

/**
 * The requests of killed workers: `late` holds the status of each reply that was sent after the deadline, and `listed` counts the
 * requests that were still listed by then.
 */
export type OrphanedRequests = { count: number; late: number[]; listed: number }

const WRITE = '/tool Write {"path":"acted","content":"yes"}'
const END_WITHIN_MS = 20_000
/** Replies follow the deadlines at most this much later, so that some come before the gateways know of the deaths. */
const SPREAD_MS = 500

/**
 * Kills all workers while requests wait for their replies, so that no process is left to let them expire. Replies to each request at
 * its deadline, and again when the gateways have ended its stream.
 */
export async function replyToDeadWorkers(
  world: World,
  { requests, timeoutMs, random }: Round,
): Promise<OrphanedRequests> {
  const streams = await openRuns(world, requests, () => WRITE)
  const pending = await pendingOf(world, streams)
  const deadline = now() + timeoutMs
  await Promise.all(world.workers.map((worker) => world.kill(worker)))
  const replied = pending.map(async (request, n) => {
    await sleep(deadline + random.between(0, SPREAD_MS) - now())
    return reply(world, n, request)
  })
  const first = await Promise.all(replied)
  const listed = (await listOf(world)).filter(({ id }) => pending.some((request) => request.id === id)).length
  await endsOf(streams, END_WITHIN_MS)
  const second = await Promise.all(pending.map((request, n) => reply(world, n + 1, request)))
  return { count: pending.length, late: [...first, ...second], listed }
}

type Pending = { id: string; run_id: string }

/** Waits until each run asks, and returns the requests that have not expired by then. */
async function pendingOf(world: World, streams: readonly StreamClient[]): Promise<Pending[]> {
  await Promise.all(streams.map((stream) => stream.atLeast(FRAMES_UP_TO_REQUEST)))
  const runs = new Set(streams.map(({ run }) => run))
  return (await listOf(world)).filter(({ run_id }) => runs.has(run_id))
}

/** turn_start, tool_use and permission_request. */
const FRAMES_UP_TO_REQUEST = 3

async function listOf(world: World): Promise<Pending[]> {
  const { body } = await world.ask(gatewayFor(world, 0), { path: '/permissions?limit=200' })
  return (body as { permissions: Pending[] }).permissions
}

async function reply(world: World, n: number, { id, run_id }: Pending): Promise<number> {
  const isAllow = n % 3 > 0
  const path = `/sessions/${run_id}/permissions/${id}`
  const { status } = await world.ask(gatewayFor(world, n), { path, body: { allow: isAllow } })
  world.record({ kind: 'reply', t: now(), run: run_id, request: id, isAllow, status })
  return status
}

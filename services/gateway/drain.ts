import type { HttpServer } from '../http/server.ts'

type DrainParts = {
  relay: { drain(times: { graceMs: number; streamsMs: number }): Promise<void> }
  http: Pick<HttpServer, 'drain' | 'close'>
  /** Records the ends of runs. `undefined` without a store. */
  witness: { settled(): Promise<void> } | undefined
}

/** Load balancers probe about once a second; this covers several probes. */
const MAX_GRACE_MS = 5_000
/** Time for clients to read the last frames. */
const MAX_CLOSE_MS = 1_000

/**
 * Takes a gateway out of service within `drainMs`. For at most a sixth of it the gateway serves as before, so that its load balancer
 * notices the failing readiness probe (D1.3 DRAIN_SECS). Then running streams have time to end by themselves; the remaining ones end with an
 * error that tells the client to reconnect. Requests without an answer, such as uploads, have the whole time. At last it records the ends of
 * runs that it has seen, also those in the last streams.
 */
export async function drainGateway(drainMs: number, { relay, http, witness }: DrainParts): Promise<void> {
  const graceMs = Math.min(drainMs / 6, MAX_GRACE_MS)
  const closeMs = Math.min(drainMs / 6, MAX_CLOSE_MS)
  const startedAt = performance.now()
  http.drain()
  await relay.drain({ graceMs, streamsMs: drainMs - graceMs - closeMs })
  await http.close(closeMs, drainMs - (performance.now() - startedAt))
  await witness?.settled()
}

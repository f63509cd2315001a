/** What a gateway leaves by: the relay that its streams come over, and the server that they go out of. */
export type Leaving = {
  relay: { drain(times: { graceMs: number; streamsMs: number }): Promise<void> }
  http: { drain(): void; close(deadlineMs: number): Promise<void> }
}

/** Load balancers look about once a second, and once more to be sure. */
const MAX_GRACE_MS = 5_000
/** For the last frames to be read. */
const MAX_FAREWELL_MS = 1_000

/**
 * Takes a gateway out of service within `drainMs` (T_drain): for a sixth of it, at most, it serves on as before, so that its
 * load balancer can look away (D1.3); then its streams may end by themselves, and those that do not are told to go on elsewhere.
 */
export async function drainGateway(drainMs: number, { relay, http }: Leaving): Promise<void> {
  const graceMs = Math.min(drainMs / 6, MAX_GRACE_MS)
  const farewellMs = Math.min(drainMs / 6, MAX_FAREWELL_MS)
  http.drain()
  await relay.drain({ graceMs, streamsMs: drainMs - graceMs - farewellMs })
  await http.close(farewellMs)
}

import { memberProgram } from '../local-cluster/member.ts'
import { type Counts, slotsOf } from '../local-cluster/slots.ts'
import type { Bench } from './bench.ts'

const FREE_PORTS = { port: 0, opsPort: 0 }
const STOP_WITHIN_MS = 3_000

/** The processes of a cluster: the port of its gateway, and the ids of all. Disposing of it ends them. */
export type Members = AsyncDisposable & { port: number; pids: readonly number[] }

/** Starts one gateway and the other processes of a cluster, one after the other. `env` names their Redis. */
export async function startMembers(
  bench: Bench,
  counts: Counts,
  env: Readonly<Record<string, string>>,
): Promise<Members> {
  await using started = new AsyncDisposableStack()
  const slots = await slotsOf(counts, FREE_PORTS)
  const pids: number[] = []
  for (const slot of slots.toReversed()) {
    const program = memberProgram(slot, {
      HOST: '127.0.0.1',
      ALLOW_PRIVATE_URLS: 'true',
      RATE_LIMIT_RPM: '0',
      DRAIN_SECS: '0',
      ...env,
    })
    const child = await program.spawn()
    started.defer(async () => void (await child.stop(STOP_WITHIN_MS)))
    await program.ready(child)
    pids.push(child.pid)
    bench.signal.throwIfAborted()
  }
  const all = started.move()
  const port = slots.find(({ role }) => role === 'gateway')?.port ?? 0
  return { port, pids, [Symbol.asyncDispose]: () => all.disposeAsync() }
}

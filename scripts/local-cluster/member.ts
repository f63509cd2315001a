import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { handOver } from '../../services/wiring/secrets/hidden-environment.ts'
import { type Child, spawnChild } from '../local-services/child.ts'
import { COMPILE_CACHE, NODE_FLAGS } from '../node-options.ts'
import type { StagedProgram } from './supervisor.ts'

export type Role = 'gateway' | 'worker' | 'executor'

/** A running process as `DATA_DIR/cluster.json` lists it (D1.1). */
export type Member = { role: Role; id: string; pid: number; port: number | null; ops_port: number }

/** A place in the cluster. A process that is started again in it gets the same ports. */
export type Slot = { name: string; role: Role; port: number | null; opsPort: number }

/** A start takes two seconds; many of them at once, on a busy machine, take much longer. */
const READY_WITHIN_MS = 90_000
const POLL_EVERY_MS = 25
const ANSWER_WITHIN_MS = 1_000
const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Describes a process of the product. It is ready when its `/readyz` answers 200: a gateway needs a worker for that. */
export function memberProgram(
  slot: Slot,
  env: Readonly<Record<string, string>>,
  onOutput: (text: string) => void = () => {},
): StagedProgram<Member> {
  const { name, role, port, opsPort } = slot
  const own = {
    ...env,
    NODE_COMPILE_CACHE: env['NODE_COMPILE_CACHE'] ?? COMPILE_CACHE,
    PORT: String(port ?? 0),
    OPS_PORT: String(opsPort),
  }
  const args = [...NODE_FLAGS, `${ROOT}services/${role}/main.ts`]
  return {
    name,
    stage: role === 'gateway' ? 2 : 1,
    // Programs of tools could read a member's environment, and a file as its standard input, but not a socket.
    spawn: () => spawnChild({ name, command: process.execPath, args, ...handOver(own), onOutput }),
    async ready(child) {
      const deadline = performance.now() + READY_WITHIN_MS
      const [line] = await child.line(/^\{.*"msg":"listening".*\}$/m, READY_WITHIN_MS)
      const { id } = JSON.parse(line) as { id: string }
      await untilReady(child, `http://${reachable(env['HOST'])}:${opsPort}/readyz`, deadline)
      return { role, id, pid: child.pid, port, ops_port: opsPort }
    },
  }
}

async function untilReady(child: Child, url: string, deadline: number): Promise<void> {
  while (performance.now() < deadline) {
    if (!child.isRunning) throw child.failure('ended before it was ready')
    if (await isOk(url)) return
    await sleep(POLL_EVERY_MS)
  }
  throw child.failure(`is not ready after ${READY_WITHIN_MS / 1000} s: see ${url}`)
}

async function isOk(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_WITHIN_MS) })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}

/** The address under which this machine reaches a listener on `host`. */
function reachable(host: string | undefined): string {
  if (host === undefined || host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

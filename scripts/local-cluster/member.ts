import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Child, spawnChild } from '../local-services/child.ts'
import type { Program } from './supervisor.ts'

export type Role = 'gateway' | 'worker'

/** A line of `DATA_DIR/cluster.json` (D1.1). */
export type Member = { role: Role; id: string; pid: number; port: number | null; ops_port: number }

/** A place in the cluster; whoever fills it after a death has the same ports. */
export type Slot = { name: string; role: Role; port: number | null; opsPort: number }

const READY_WITHIN_MS = 30_000
const ASK_EVERY_MS = 25
const ASK_WITHIN_MS = 1_000
const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A gateway or worker as a process of its own, ready when its `/readyz` says so. */
export function memberProgram(slot: Slot, env: Readonly<Record<string, string>>): Program<Member> {
  const { name, role, port, opsPort } = slot
  const own = {
    ...env,
    NODE_COMPILE_CACHE: env['NODE_COMPILE_CACHE'] ?? `${ROOT}node_modules/.cache/compile`,
    PORT: String(port ?? 0),
    OPS_PORT: String(opsPort),
  }
  const args = ['--max-semi-space-size=16', `${ROOT}services/${role}/main.ts`]
  return {
    name,
    spawn: () => spawnChild({ name, command: process.execPath, args, env: own }),
    async ready(child) {
      const deadline = performance.now() + READY_WITHIN_MS
      const [line] = await child.line(/^\{.*"msg":"listening".*\}$/m, READY_WITHIN_MS)
      const { id } = JSON.parse(line) as { id: string }
      await readyz(child, `http://${reachable(env['HOST'])}:${opsPort}/readyz`, deadline)
      return { role, id, pid: child.pid, port, ops_port: opsPort }
    },
  }
}

async function readyz(child: Child, url: string, deadline: number): Promise<void> {
  while (performance.now() < deadline) {
    if (!child.isRunning) throw child.failure('ended before it was ready')
    if (await isOk(url)) return
    await sleep(ASK_EVERY_MS)
  }
  throw child.failure(`is not ready after ${READY_WITHIN_MS / 1000} s: see ${url}`)
}

async function isOk(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(ASK_WITHIN_MS) })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}

/** Where a listener on this HOST is reached from the same machine. */
function reachable(host: string | undefined): string {
  if (host === undefined || host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

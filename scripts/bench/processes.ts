import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Target } from './client.ts'
import type { Dialect } from './dialect.ts'
import { healthy } from './health.ts'

export type Program = {
  name: string
  flags?: readonly string[]
  script: string
  dialect: Dialect
  env: Record<string, string>
}

/** A started process. Disposing of it stops it. */
export type Running = Target &
  AsyncDisposable & {
    pid: number
    /** Time from the spawn to the first 200 on its health path. */
    startMs: number
  }

/** A start takes a second, and on a busy machine much longer. */
const START_WITHIN_MS = 90_000
const STOP_WITHIN_MS = 3000

/** The processes of one bench. They end with this process, unless it is killed with SIGKILL. */
export class Processes {
  /** The folder for their logs and data. */
  readonly dir = mkdtempSync(join(tmpdir(), 'agent-engine-bench-'))
  readonly #children = new Set<ChildProcess>()

  /** Starts a program with this Node on a free port. It inherits nothing of this process's environment. */
  async start({ name, flags = [], script, dialect, env }: Program, signal: AbortSignal): Promise<Running> {
    const port = await freePort()
    const log = join(this.dir, `${name}-${port}.log`)
    const out = openSync(log, 'w')
    const start = performance.now()
    const child = spawn(process.execPath, [...flags, script], {
      env: { ...env, PORT: String(port) },
      stdio: ['ignore', out, out],
    })
    closeSync(out)
    this.#children.add(child)
    child.once('exit', () => this.#children.delete(child))
    await this.#ready(child, { port, dialect, log, signal })
    const startMs = performance.now() - start
    return { port, dialect, pid: child.pid ?? 0, startMs, [Symbol.asyncDispose]: () => stop(child) }
  }

  /** Kills all processes at once; for the exit of this process, where nothing can be awaited. */
  killAll(): void {
    for (const child of this.#children) child.kill('SIGKILL')
    rmSync(this.dir, { recursive: true, force: true })
  }

  async #ready(child: ChildProcess, { port, dialect, log, signal }: Starting): Promise<void> {
    const started = new AbortController()
    const deadline = AbortSignal.any([started.signal, signal, AbortSignal.timeout(START_WITHIN_MS)])
    const died = once(child, 'exit', { signal: deadline }).then(() => {
      throw new Error('the process ended')
    })
    try {
      await Promise.race([healthy(port, dialect.healthPath, deadline), died])
    } catch (cause) {
      child.kill('SIGKILL')
      const output = readFileSync(log, 'utf8').trim().slice(-300)
      throw new Error(`${child.spawnargs.at(-1)} did not start: ${output || String(cause)}`, { cause })
    } finally {
      started.abort()
    }
  }
}

type Starting = { port: number; dialect: Dialect; log: string; signal: AbortSignal }

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
  clearTimeout(timer)
}

/** A port that was free a moment ago. The processes cannot choose one themselves, since they are requested before they print anything. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('no free port')
  return address.port
}

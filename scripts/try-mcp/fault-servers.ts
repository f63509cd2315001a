import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Child } from '../../test/support/child.ts'
import { until } from '../../test/support/until.ts'
import { freePort } from '../local-services/free-port.ts'
import type { Installed } from './install.ts'

/** The longest silence of the servers that hang. */
export const LIMIT_MS = 5_000
const BIG_BYTES = 50_000_000
/** They do not compress, and are 50 MB in an answer, in base64. */
const RANDOM_BYTES = 37_500_000

export type FaultServers = Awaited<ReturnType<typeof openFaultServers>>

/** `start` starts those over HTTP; the product starts those over stdio, by the `entries` for MCP_CONFIG. */
export async function openFaultServers({ bin, python, script }: Installed, folder: string) {
  const bigFile = join(folder, 'big.txt')
  await writeFile(bigFile, Buffer.alloc(BIG_BYTES, 'All work and no play\n'))
  const random = randomBytes(RANDOM_BYTES)
  const blobs = createServer((_req, res) => res.end(random)).listen(0, '127.0.0.1')
  await once(blobs, 'listening')
  const everything = join(bin, 'mcp-server-everything')
  const far = new WebServer(await freePort(), (port) => ({
    ...{ command: everything, args: ['streamableHttp'] },
    env: { PORT: port, GZIP_MAX_FETCH_SIZE: String(BIG_BYTES) },
  }))
  const web = new WebServer(await freePort(), (port, tool) => ({
    ...{ command: join(python, 'python'), args: [script, port, tool] },
    env: { HOME: folder },
  }))
  /** Only processes of this script have it among their arguments. */
  const mark = `fragile-${process.pid}`
  const flood = fileURLToPath(new URL('./flood-server.ts', import.meta.url))
  const hanging = { scope: 'shared', timeout: LIMIT_MS }
  return {
    ...{ bigFile, blobUrl: urlOf((blobs.address() as AddressInfo).port, 'random'), far, web },
    entries: {
      files: { command: join(bin, 'mcp-server-filesystem'), args: [folder], scope: 'shared' },
      fragile: { ...hanging, command: everything, args: ['stdio', mark] },
      flood: { ...hanging, command: process.execPath, args: [flood] },
      far: { url: far.url },
      web: { url: web.url },
    },
    start: () => Promise.all([far.start(), web.start('before')]),
    signalFragile: (signal: NodeJS.Signals) => signalAll(mark, signal),
    async close() {
      blobs.close().closeAllConnections()
      await Promise.all([far.kill(), web.kill(), rm(bigFile)])
    },
  }
}

type Command = { command: string; args: string[]; env: Record<string, string> }

/** A server over streamable HTTP, which can be killed and started again at the same address. */
class WebServer {
  readonly url: string
  readonly #port: number
  readonly #commandOf: (port: string, tool: string) => Command
  #child: Child | undefined

  constructor(port: number, commandOf: (port: string, tool: string) => Command) {
    this.url = urlOf(port, 'mcp')
    this.#port = port
    this.#commandOf = commandOf
  }

  /** Resolves when it answers. */
  async start(tool = ''): Promise<void> {
    const { command, args, env } = this.#commandOf(String(this.#port), tool)
    const child = new Child(command, args, env)
    this.#child = child
    const answers = () => fetch(this.url).catch(() => undefined)
    const answer = await until(answers, { what: this.url, everyMs: 50, lastSeen: () => child.lines.join('\n') })
    await answer.body?.cancel()
  }

  async kill(): Promise<void> {
    await this.#child?.end('SIGKILL')
  }
}

const urlOf = (port: number, path: string): string => `http://127.0.0.1:${port}/${path}`

async function signalAll(mark: string, signal: NodeJS.Signals): Promise<void> {
  const { stdout } = await promisify(execFile)('ps', ['-eww', '-o', 'pid=,args='])
  const pids = stdout.split('\n').flatMap((line) => (line.includes(mark) ? [Number.parseInt(line, 10)] : []))
  if (pids.length === 0) throw new Error(`no process has ${mark} among its arguments`)
  for (const pid of pids) process.kill(pid, signal)
}

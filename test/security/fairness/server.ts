import { randomBytes } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { rssMiB } from '../../../scripts/bench/proc.ts'
import { startRedis } from '../../../scripts/local-services/redis.ts'
import { startMongoInMemory } from '../../support/mongo-in-memory.ts'
import { Processes, type Server } from '../processes.ts'
import type { Form, Size } from './attack.ts'

const BYTES_PER_MIB = 1024 * 1024
/** The processes of a cluster besides its gateway. */
const OTHERS = { short: ['worker', 'executor'], full: ['worker', 'worker', 'executor'] } as const

export type Shape = { form: Form; size: Size }

/** The product in one of its forms, with what can grow in it. Disposing of it ends every process. */
export class AttackedServer implements AsyncDisposable {
  readonly url: string
  readonly #servers: readonly Server[]
  readonly #dirs: readonly string[]
  readonly #parts: AsyncDisposableStack

  private constructor(servers: readonly Server[], dirs: readonly string[], parts: AsyncDisposableStack) {
    this.url = servers.at(-1)?.url ?? ''
    this.#servers = servers
    this.#dirs = dirs
    this.#parts = parts
  }

  static async start({ form, size }: Shape, env: Readonly<Record<string, string>>): Promise<AttackedServer> {
    await using parts = new AsyncDisposableStack()
    const settings = { MASTER_KEY: randomBytes(32).toString('base64'), ALLOW_PRIVATE_URLS: 'true', ...env }
    if (form === 'standalone') {
      const processes = parts.use(new Processes(settings))
      return new AttackedServer([await processes.start('standalone')], [processes.dataDir], parts.move())
    }
    const redis = parts.use(await startRedis())
    const mongo = parts.use(await startMongoInMemory())
    const processes = parts.use(new Processes({ ...settings, REDIS_URL: redis.url, MONGODB_URL: mongo.url }))
    const servers = await Promise.all(OTHERS[size].map((role) => processes.start(role)))
    const dirs = [processes.dataDir, ...mongo.members.map(({ dir }) => dir)]
    return new AttackedServer([...servers, await processes.start('gateway')], dirs, parts.move())
  }

  /** The memory of the process that uses most. */
  get memoryMiB(): number {
    return Math.max(...this.#servers.map(({ pid }) => rssMiB(pid)))
  }

  /** What the product and its database have on the disk. */
  async diskMiB(): Promise<number> {
    const bytes = await Promise.all(this.#dirs.map(bytesBelow))
    return bytes.reduce((sum, each) => sum + each, 0) / BYTES_PER_MIB
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#parts.disposeAsync()
  }
}

/** A file that disappears meanwhile counts as empty. */
async function bytesBelow(dir: string): Promise<number> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const sizes = await Promise.all(
    files.map(({ parentPath, name }) =>
      stat(join(parentPath, name)).then(
        ({ blocks }) => blocks * 512,
        () => 0,
      ),
    ),
  )
  return sizes.reduce((sum, each) => sum + each, 0)
}

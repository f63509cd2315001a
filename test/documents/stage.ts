import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from '../support/child.ts'
import { Shell } from './shell.ts'

const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname

/** The standalone form as it starts without any settings, except for a free port and a folder of its own: what the documents suppose. */
export class Stage {
  readonly dir: string
  #server: Child
  readonly #url: string

  private constructor(dir: string, { server, url }: { server: Child; url: string }) {
    this.dir = dir
    this.#server = server
    this.#url = url
  }

  static async open(): Promise<Stage> {
    const dir = await mkdtemp(join(tmpdir(), 'agent-engine-documents-'))
    return new Stage(dir, await start(dir, '0'))
  }

  /** A shell in a folder of its own, whose PORT is the server's. `path` is put before PATH. */
  shell(path = ''): Promise<Shell> {
    const env = { PATH: `${path}:${process.env['PATH']}`, HOME: this.dir, PORT: new URL(this.#url).port }
    return Shell.start({ cwd: this.dir, env })
  }

  /** Replaces the server's usual address by that of this stage. */
  localized(text: string): string {
    return text.replaceAll('http://127.0.0.1:8080/v1', this.#url)
  }

  /** Ends the server and starts it again on its port and folder, with a rate limit that has counted nothing. */
  async restart(): Promise<void> {
    await this.#server.end()
    this.#server = (await start(this.dir, new URL(this.#url).port)).server
  }

  async close(): Promise<void> {
    await this.#server.end()
    await rm(this.dir, { recursive: true, force: true })
  }
}

async function start(dir: string, port: string): Promise<{ server: Child; url: string }> {
  const server = new Child(process.execPath, [MAIN], { DATA_DIR: join(dir, 'data'), PORT: port, OPS_PORT: '0' })
  const { url } = JSON.parse(await server.line(/"listening"/)) as { url: string }
  return { server, url }
}

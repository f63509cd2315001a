import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Child } from '../support/child.ts'
import { Shell } from './shell.ts'

const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname
const PACKAGES = new URL('../../node_modules', import.meta.url).pathname
const SCRIPTS = new URL('../../scripts', import.meta.url).pathname

/** The standalone form with the settings that a document names, a free port and a folder of its own, in which the project's scripts are. */
export class Stage {
  readonly dir: string
  readonly #server: Child
  readonly #url: string

  private constructor(dir: string, { server, url }: { server: Child; url: string }) {
    this.dir = dir
    this.#server = server
    this.#url = url
  }

  static async open(settings: Readonly<Record<string, string>> = {}): Promise<Stage> {
    const dir = await mkdtemp(join(tmpdir(), 'agent-engine-documents-'))
    await symlink(SCRIPTS, join(dir, 'scripts'))
    await symlink(PACKAGES, join(dir, 'node_modules')) // Those that a document has its reader install.
    return new Stage(dir, await start(dir, settings))
  }

  /** A shell in a folder of its own, whose PORT is the server's. `path` is put before PATH. */
  shell(path = ''): Promise<Shell> {
    const { port } = new URL(this.#url)
    const env = {
      PATH: `${path}:${process.env['PATH']}`,
      HOME: this.dir,
      TMPDIR: this.dir, // A document makes a folder of its own, from which the packages are found.
      LANG: 'C.UTF-8',
      PORT: port,
      AE_URL: this.#url,
    }
    return Shell.start({ cwd: this.dir, env })
  }

  /** Replaces the server's usual address by that of this stage. */
  localized(text: string): string {
    return text.replaceAll('http://127.0.0.1:8080/v1', this.#url)
  }

  async close(): Promise<void> {
    await this.#server.end()
    await rm(this.dir, { recursive: true, force: true })
  }
}

async function start(dir: string, settings: Readonly<Record<string, string>>): Promise<{ server: Child; url: string }> {
  // A document leaves runs open, for which a stop waits.
  const env = { DRAIN_SECS: '0', ...settings, DATA_DIR: join(dir, 'data'), PORT: '0', OPS_PORT: '0' }
  const server = new Child(process.execPath, [MAIN], env)
  const { url } = JSON.parse(await server.line(/"listening"/)) as { url: string }
  return { server, url }
}

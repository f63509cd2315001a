import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Child, spawnChild } from '../../scripts/local-services/child.ts'
import { requireProgram } from '../../scripts/local-services/debian-programs.ts'
import { freePort } from '../../scripts/local-services/free-port.ts'
import { until } from '../support/until.ts'
import { readDeploy } from './files.ts'

const run = promisify(execFile)
const STOP_MS = 10_000

/** nginx with the configuration of deploy/nginx. Only addresses and paths are replaced. */
export class Nginx implements AsyncDisposable {
  readonly url: string
  /** The folder with nginx.conf and gateways.conf. */
  readonly dir: string
  readonly #child: Child
  readonly #command: string

  private constructor(places: { url: string; dir: string }, command: string, child: Child) {
    this.url = places.url
    this.dir = places.dir
    this.#command = command
    this.#child = child
  }

  /** Starts it in front of the gateways at these local ports, which are named gateway-1, gateway-2 and so on. */
  static async start(gatewayPorts: readonly number[]): Promise<Nginx> {
    const command = await requireProgram('nginx')
    const root = await mkdtemp(join(tmpdir(), 'agent-engine-nginx-'))
    await chmod(root, 0o755) // nginx gives its workers another user when root starts it.
    const dir = join(root, 'nginx')
    await mkdir(dir)
    const port = await freePort()
    await writeFile(join(dir, 'nginx.conf'), localConfig(dir, port))
    await writeFile(join(dir, 'gateways.conf'), localGateways(gatewayPorts))
    const args = ['-c', join(dir, 'nginx.conf'), '-g', 'daemon off;']
    const child = await spawnChild({ name: 'nginx', command, args, ownDir: root })
    const nginx = new Nginx({ url: `http://127.0.0.1:${port}`, dir }, command, child)
    await until(() => isListening(nginx.url, child), { what: 'nginx to answer', lastSeen: () => child.output })
    return nginx
  }

  /** Reads the configuration again, without closing a connection that is in use. Resolves when nginx has accepted it. */
  async reload(): Promise<void> {
    await run(this.#command, ['-c', join(this.dir, 'nginx.conf'), '-s', 'reload'])
  }

  /** The paths and gateways of all requests so far. */
  async log(): Promise<{ path: string; gateway: string; status: number }[]> {
    const text = await readFile(join(this.dir, 'access.log'), 'utf8')
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as never)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stop(STOP_MS)
    await rm(dirname(this.dir), { recursive: true, force: true })
  }
}

const isListening = (url: string, child: Child) => {
  if (!child.isRunning) throw child.failure('ended before it answered')
  return fetch(url).then(
    (response) => response.body?.cancel().then(() => true),
    () => false,
  )
}

function localConfig(dir: string, port: number): string {
  return readDeploy('nginx/nginx.conf')
    .replaceAll('/tmp/', `${dir}/`)
    .replace('/dev/stdout', `${dir}/access.log`)
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
}

/** The resolver is Docker's own, and Debian's nginx cannot follow names that change. */
function localGateways(ports: readonly number[]): string {
  return readDeploy('nginx/gateways.conf')
    .replace(/^ *resolver .*\n/m, '')
    .replaceAll(
      /server gateway-(\d):8080 resolve/g,
      (_line, number: string) => `server 127.0.0.1:${ports[Number(number) - 1]}`,
    )
}

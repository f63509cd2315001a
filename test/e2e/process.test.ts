import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import packageFile from '../../package.json' with { type: 'json' }
import { initOf, openStream } from '../support/api-client.ts'
import { Child } from '../support/child.ts'
import { openToOthers } from '../support/open-to-others.ts'
import { useTempFolder } from '../support/temp-folder.ts'

const MAIN = new URL('../../services/standalone/main.ts', import.meta.url).pathname

describe('the standalone process', () => {
  const dataDir = useTempFolder()
  const children: Child[] = []
  afterEach(async () => {
    for (const child of children.splice(0)) if (child.process.exitCode === null) await child.end('SIGKILL')
  })

  function start(env: Record<string, string> = {}, command: readonly string[] = [process.execPath]): Child {
    const [program = '', ...args] = command
    const child = new Child(program, [...args, MAIN], { DATA_DIR: dataDir.path, PORT: '0', OPS_PORT: '0', ...env })
    children.push(child)
    return child
  }
  async function urlOf(child: Child): Promise<string> {
    return (JSON.parse(await child.line(/"listening"/)) as { url: string }).url
  }
  const run = (url: string, prompt: string) => openStream(`${url}/agent/run`, initOf('POST', { prompt }))

  it('D1.4, D29.5: without configuration it names the address of the console on a line of its own, has the version of its package, and answers with the demo model, which says so', async () => {
    const child = start({ ANNOUNCE_CONSOLE: 'true' })
    const url = await urlOf(child)
    expect(await child.line(/^Console: /)).to.equal(`Console: ${new URL(url).origin}`)
    expect(await (await fetch(`${url}/me`)).json()).to.include({ version: packageFile.version })
    const stream = await run(url, '/tool Glob {"pattern":"*"}')
    const frames = await stream.all()
    expect(frames.find(({ event }) => event === 'text')?.data['text']).to.match(/demo/i)
    expect(frames.map(({ event }) => event)).to.include('tool_result')
    expect(frames.at(-1)?.event, 'and lives on when nobody reads its log any more').to.equal('done')
    child.process.stdout?.destroy()
    for (const prompt of ['/say one', '/say two'])
      expect((await (await run(url, prompt)).all()).at(-1)?.event).to.equal('done')
    child.process.kill('SIGTERM')
    expect(await child.exited).to.equal(0)
  })

  it("a start and a run do not load Node's fetch, which would take 45 ms and 13 MiB; a run that does not end within DRAIN_SECS ends with worker_draining", async () => {
    const report =
      "process.on('exit', () => console.log('fetch loaded:', process.moduleLoadList.some((name) => /undici/.test(name))))"
    const child = start({ DRAIN_SECS: '0' }, [process.execPath, '--import', `data:text/javascript,${report}`])
    const stream = await run(await urlOf(child), '/say one\n/sleep 60000')
    await stream.until('text')
    const exited = child.end()
    expect((await stream.all()).at(-1)?.data).to.include({ code: 'worker_draining', retryable: true })
    expect(await exited).to.equal(0)
    expect(child.lines.find((line) => line.startsWith('fetch loaded'))).to.equal('fetch loaded: false')
  })

  it('D1.3a: all problems of the configuration are printed together, and the process exits with 78', async () => {
    const child = start({ PORT: 'http', RATE_LIMIT_RPM: '-1', AUTH_MODE: 'strict', MODEL: 'x' })
    expect(await child.exited).to.equal(78)
    for (const name of ['PORT', 'RATE_LIMIT_RPM', 'AUTH_MODE', 'MODEL_PROVIDER']) {
      expect(
        child.lines.filter((line) => line.includes(`${name} `)),
        name,
      ).to.have.length.at.least(1)
    }
  })

  it('DATA_DIR and everything in it are for their owner only, whatever the umask is', async () => {
    const place = join(dataDir.path, 'made/here')
    const settings = { MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), TOOL_PERMISSIONS: '{"Write":"allow"}' }
    const child = start({ DATA_DIR: place, ...settings }, ['sh', '-c', 'umask 0; exec "$0" "$1"', process.execPath])
    const stream = await run(await urlOf(child), '/tool Write {"path":"notes/a.txt","content":"x"}\n/sleep 60000')
    await stream.until('tool_result')
    const names = await readdir(place, { recursive: true })
    for (const name of ['agent-engine.db', 'agent-engine.db-wal', 'spool', 'workspaces']) expect(names).to.include(name)
    expect(names.filter((name) => name.endsWith('notes/a.txt'))).to.have.length(1)
    expect(await openToOthers(place)).to.deep.equal([])
  })

  it('a DATA_DIR whose files cannot be opened is named in one line that says what to do', async () => {
    const place = join(dataDir.path, 'unusable')
    await mkdir(join(place, 'in-use.lock'), { recursive: true })
    const child = start({ DATA_DIR: place })
    expect(await child.exited).to.equal(1)
    expect(child.lines.filter((line) => line.includes(`${place}/in-use.lock cannot be locked`))).to.have.length(1)
    expect(child.lines.join('\n')).to.include('let this user create and change files there')
  })

  it('a port in use is reported in one line that names the setting, without a stack', async () => {
    const { port } = new URL(await urlOf(start()))
    for (const [setting, other] of [
      ['PORT', 'OPS_PORT'],
      ['OPS_PORT', 'PORT'],
    ] as const) {
      const second = start({ [setting]: port, [other]: '0', DATA_DIR: join(dataDir.path, 'other') })
      expect(await second.exited, setting).to.equal(1)
      const about = second.lines.filter((line) => line.includes('in use'))
      expect(about, setting).to.have.length(1)
      expect(about[0]).to.include(`127.0.0.1:${port} is in use: set ${setting} to a free port`)
      expect(second.lines.filter((line) => /^\s+at |EADDRINUSE/.test(line))).to.deep.equal([])
    }
  })
})

import { mkdir, readdir, writeFile } from 'node:fs/promises'
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

  function start(env: Record<string, string> = {}): Child {
    const child = new Child(process.execPath, [MAIN], { DATA_DIR: dataDir.path, PORT: '0', OPS_PORT: '0', ...env })
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
    expect(frames.at(-1)?.event).to.equal('done')
  })

  it('lives on when nobody reads its log any more, and ends as usual', async () => {
    const child = start()
    const url = await urlOf(child)
    child.process.stdout?.destroy()
    for (const prompt of ['/say one', '/say two']) {
      const frames = await (await run(url, prompt)).all()
      expect(frames.at(-1)?.event).to.equal('done')
    }
    child.process.kill('SIGTERM')
    expect(await child.exited).to.equal(0)
  })

  it("a start does not load Node's fetch, which would take 45 ms and 13 MiB", async () => {
    const report =
      "process.on('exit', () => console.log('fetch loaded:', process.moduleLoadList.some((name) => /undici/.test(name))))"
    const env = { DATA_DIR: dataDir.path, PORT: '0', OPS_PORT: '0' }
    const child = new Child(process.execPath, ['--import', `data:text/javascript,${report}`, MAIN], env)
    children.push(child)
    await urlOf(child)
    child.process.kill('SIGTERM')
    await child.exited
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

  it('D3.3: OIDC_ISSUER without OIDC_AUDIENCE, and AUTH_MODE without either, stop the start', async () => {
    const halfSet = start({ OIDC_ISSUER: 'https://issuer.example' })
    expect(await halfSet.exited).to.equal(78)
    expect(halfSet.lines.join('\n')).to.include('OIDC_AUDIENCE is not set')
    const unset = start({ AUTH_MODE: 'soft' })
    expect(await unset.exited).to.equal(78)
    expect(unset.lines.join('\n')).to.include('AUTH_MODE=soft needs OIDC_ISSUER')
  })

  it('a command of the Bash tool cannot read the secrets of the server from its environment, and the server has them', async () => {
    const secrets = {
      API_TOKEN: 'top-secret-token',
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      AWS_SECRET_ACCESS_KEY: 'aws-secret',
    }
    const ownDir = join(dataDir.path, 'own') // Others keep a master key in theirs, with which Bash is not offered.
    const child = start({ ...secrets, DATA_DIR: ownDir, ENABLE_BASH: 'true', TOOL_PERMISSIONS: '{"Bash":"allow"}' })
    const url = await urlOf(child)
    expect((await fetch(`${url}/runs`)).status).to.equal(401)
    const authorization = `Bearer ${secrets.API_TOKEN}`
    const command = 'cat /proc/$PPID/environ | tr \\0 \\n; ls -l /proc/$PPID/fd/0'
    const prompt = `/tool Bash ${JSON.stringify({ command })}`
    const frames = await (await openStream(`${url}/agent/run`, initOf('POST', { prompt }, { authorization }))).all()
    const output = String(frames.find(({ event }) => event === 'tool_result')?.data['output'])
    expect(output).to.include('PATH=').and.include('/dev/null').and.not.include('ENABLE_BASH')
    for (const secret of Object.values(secrets)) expect(output).not.to.include(secret)
  })

  it('a secret may come from a file, without the line break at its end; both ways together, a missing file and an empty one exit with 78', async () => {
    const file = join(dataDir.path, 'token')
    await writeFile(file, 'token-1\n')
    const url = await urlOf(start({ API_TOKEN_FILE: file }))
    const statusWith = async (token: string) =>
      (await fetch(`${url}/runs`, { headers: { authorization: `Bearer ${token}` } })).status
    expect([await statusWith('token-1'), await statusWith('token-2')]).to.deep.equal([200, 403])
    const empty = join(dataDir.path, 'empty')
    await writeFile(empty, '\n')
    const wrong = start({
      ...{ API_TOKEN: 'token-1', API_TOKEN_FILE: file },
      ...{ OPS_TOKEN_FILE: join(dataDir.path, 'missing'), MODEL_API_KEY_FILE: empty },
    })
    expect(await wrong.exited).to.equal(78)
    expect(wrong.lines).to.have.length(3)
    const [both, unset, missing] = wrong.lines.toSorted()
    expect(both).to.match(/^API_TOKEN and API_TOKEN_FILE are both set/)
    expect(unset).to.match(/^MODEL_API_KEY_FILE holds .* the file is empty/)
    expect(missing).to.match(/^OPS_TOKEN_FILE holds ".*missing", which cannot be read \(ENOENT\)/)
  })

  it('D1.3: MCP_CONFIG may refer to variables; one that is not set stops the start and is named', async () => {
    const answer = '{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"${MY_TOKEN}"}]}}'
    const raw = join(import.meta.dirname, '../support/mcp-server/raw.ts')
    const env = { ANSWERS: JSON.stringify({ say: answer }) }
    const file = join(dataDir.path, 'mcp.json')
    await writeFile(file, JSON.stringify({ mcpServers: { one: { command: process.execPath, args: [raw], env } } }))
    const settings = { DATA_DIR: join(dataDir.path, 'mcp'), MCP_CONFIG: file, TOOL_PERMISSIONS: '{"mcp__*":"allow"}' }
    const unset = start(settings)
    expect(await unset.exited).to.equal(78)
    expect(unset.lines.join('\n')).to.include(
      'mcpServers.one.env.ANSWERS needs the variable MY_TOKEN, which is not set',
    )
    const stream = await run(await urlOf(start({ ...settings, MY_TOKEN: 'token-1' })), '/tool mcp__one__say {}')
    const frames = await stream.all()
    expect(frames.find(({ event }) => event === 'tool_result')?.data).to.include({ output: 'token-1', is_error: false })
  })

  it('DATA_DIR and everything in it are for their owner only, whatever the umask is', async () => {
    const place = join(dataDir.path, 'made/here')
    const env = {
      DATA_DIR: place,
      PORT: '0',
      OPS_PORT: '0',
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      TOOL_PERMISSIONS: '{"Write":"allow"}',
    }
    const child = new Child('sh', ['-c', 'umask 0; exec "$0" "$1"', process.execPath, MAIN], env)
    children.push(child)
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

  it('SIGTERM lets a run end, refuses new ones, and exits with 0', async () => {
    const child = start({ DRAIN_SECS: '20' })
    const url = await urlOf(child)
    const stream = await run(url, '/say one\n/sleep 500\n/say two')
    await stream.until('text')
    const exited = child.end()
    const frames = await stream.all()
    expect(frames.at(-1)?.event).to.equal('done')
    expect(await exited).to.equal(0)
  })

  it('a run that does not end within DRAIN_SECS ends with worker_draining', async () => {
    const child = start({ DRAIN_SECS: '0' })
    const stream = await run(await urlOf(child), '/say one\n/sleep 60000')
    await stream.until('text')
    const exited = child.end()
    expect((await stream.all()).at(-1)?.data).to.include({ code: 'worker_draining', retryable: true })
    expect(await exited).to.equal(0)
  })

  it('D1.1: an older Node prints one line with the required version, and exits with 1', async () => {
    const pretend = `data:text/javascript,Object.defineProperty(process, 'version', { value: 'v20.20.2' })`
    const child = start({ NODE_OPTIONS: `--import="${pretend.replaceAll('"', '')}"` })
    expect(await child.exited).to.equal(1)
    expect(child.lines).to.have.length(1)
    expect(child.lines[0]).to.include('needs Node 24').and.include('v20.20.2')
  })
})

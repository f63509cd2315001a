import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { answerDirectives } from '../../support/model-server/directives.ts'
import { startStandalone } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const WRITE = '/tool Write {"path":"notes/a.txt","content":"hello world\\nsecond line\\n"}'
/** Prints the files that a program loads to stderr. */
const TELLS_FILES = `import { registerHooks } from 'node:module'
registerHooks({ load: (url, context, next) => (console.error(url), next(url, context)) })`

describe('ae run, in a pipe', () => {
  const at = useAe(startStandalone)
  before(() => at.server.model.otherwise(answerDirectives))

  it('stdout is the answer only, and stderr says what it used', async () => {
    const { code, out, err } = await at.ae.runProcess(['run', '/say Hello there'])
    expect({ code, out }).to.deep.equal({ code: 0, out: 'Hello there\n' })
    expect(err).to.match(
      /^● test-model +run_[0-9a-f]{4}…[0-9a-f]{4}\n✓ 1 turn · \S+ in · \S+ out · ctx \S+ · \S+ · \S+ s\n$/,
    )
  })

  it('takes the prompt from stdin, also beside words', async () => {
    expect((await at.ae.runProcess(['run'], { input: '/say from stdin' })).out).to.equal('from stdin\n')
    expect((await at.ae.run(['run', '/say first', '-'], { input: '/say second' })).out).to.equal('firstsecond\n')
    expect((await at.ae.run(['run'])).code).to.equal(2)
  })

  it('--json prints one event a line, and as the last line the result', async () => {
    const { code, out } = await at.ae.run(['run', '--json', '/say Hello'])
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    const [first] = lines
    expect(code).to.equal(0)
    expect(lines.map(({ event }) => event)).to.deep.equal([
      'turn_start',
      'text_delta',
      'text',
      'turn_end',
      'done',
      'result',
    ])
    expect(first).to.include({ id: 1 }).and.to.have.keys('id', 'event', 'data', 'run_id')
    expect(lines.at(-1)).to.include({ run_id: first?.['run_id'], output: 'Hello', stop_reason: 'end_turn' })
  })

  it('D57: --dry-run prints what would be called and what it would cost, and neither starts nor keeps anything', async () => {
    const asked = at.server.model.requests.length
    const args = ['run', '--dry-run', '--attach', 'package.json', 'Hello']
    const { code, out, err } = await at.ae.run(args)
    expect({ code, err }).to.deep.equal({ code: 0, err: '' })
    expect(out).to.match(/^test-model: \S+ in, no limit out, \$0\.\d+ to unknown\nbudget: enough\n$/)
    const estimate = JSON.parse((await at.ae.run([...args, '--json'])).out) as { input_tokens: number }
    const without = JSON.parse((await at.ae.run(['run', '--dry-run', '--json', 'Hello'])).out) as {
      input_tokens: number
    }
    expect(estimate.input_tokens - without.input_tokens).to.equal(1_500)
    expect((await at.ae.run(['files', 'ls', '-o', 'ids'])).out).to.equal('')
    expect(at.server.model.requests.length).to.equal(asked)
  })

  it('a run that fails exits with 1, and says the code and what to do', async () => {
    const { code, out, err } = await at.ae.runProcess(['run', '/error 401'])
    expect({ code, out }).to.deep.equal({ code: 1, out: '' })
    expect(err).to.match(/✗ .*\(provider_auth\)\n {2}.+\n {2}ae why run_[0-9a-f]{32}\n$/)
    const json = await at.ae.run(['run', '--json', '/error 401'])
    expect(JSON.parse(json.out.trim().split('\n').at(-1) ?? ''))
      .to.deep.include({ event: 'result' })
      .and.have.nested.property('error.code', 'provider_auth')
  })

  it('a permission stays pending and stderr says the line that answers it; nothing is allowed by itself', async () => {
    const { child, out, err } = at.ae.start(['run', WRITE])
    child.stdin.end()
    let printed = ''
    child.stderr.on('data', (text: Buffer) => (printed += String(text)))
    const pending = await until(firstPending, { what: 'a pending request' })
    await until(() => printed.includes('waiting for permission'), { what: 'the line that answers it' })
    expect((await at.ae.run(['allow', pending.id.slice(0, 12)])).out).to.equal(`${pending.id} allowed\n`)
    expect(await out).to.match(/^The tool said: Wrote 24 bytes/)
    expect(await err).to.match(
      new RegExp(
        `waiting for permission ${pending.id} \\(Write notes/a.txt\\): ae allow ${pending.id} \\(denied in [45]:\\d\\d\\)`,
      ),
    )
  })

  it('D45: a call of the caller’s own tools is printed with the line that answers it, listed, and answered as a failure too', async () => {
    const tools = JSON.stringify({ client_tools: [{ name: 'get_order' }] })
    const run = at.ae.start(['run', '-t', '-', '/tool get_order {"id":"A"}'])
    run.child.stdin.end(tools)
    const listed = async () => (await at.ae.run(['tool-calls', '-o', 'ids'])).out.trim() || undefined
    const [runId = '', callId = ''] = (await until(listed, { what: 'the call to wait' })).split(' ')
    expect((await at.ae.run(['tool-calls'])).out).to.match(/RUN +ID +TOOL +CALL +LEFT\n.*get_order/)
    const answered = await at.ae.run(['answer', runId.slice(0, 16), callId, 'no', 'such', 'order', '--error'])
    expect([answered.code, answered.out]).to.deep.equal([0, `${callId} answered\n`])
    expect(await run.out).to.include('no such order')
    expect(await run.err).to.include(
      `waiting for your tool (get_order {"id":"A"}): ae answer ${runId} ${callId} OUTPUT`,
    )
    expect((await at.ae.run(['answer', runId, callId, 'again'])).code).to.not.equal(0)
  })

  it('--allow allows what its rule names, and --approve never denies all else: the exit code is 3', async () => {
    const allowed = await at.ae.run(['run', '--allow', 'Write(notes/*)', '--approve', 'never', WRITE])
    expect(allowed.code).to.equal(0)
    expect(allowed.err).to.include("Write notes/a.txt is allowed by --allow 'Write(notes/*)'")
    const denied = await at.ae.run(['run', '--allow', 'Write(other/*)', '--approve', 'never', WRITE])
    expect(denied.code).to.equal(3)
    expect(denied.out).to.include('denied by --approve never')
  })

  it('no escape sequence of a model reaches stdout, and none of a tool stderr', async () => {
    const prompt = '/say \u001b]0;x\u0007\u009b31mred\n/tool Read {"path":"\u001b[2J\u202etxt"}'
    const { out, err } = await at.ae.run(['run', '--approve', 'all', prompt])
    expect(out).to.include(']0;x31mred')
    for (const text of [out, err]) expect(text.replaceAll('\n', '')).to.not.match(/[\p{Cc}\u202e]/u)
  })

  it('without a server it starts none, and says how one is started: 69', async () => {
    const { code, out, err } = await at.ae.run(['run', 'Hello'], { env: { AE_URL: 'http://127.0.0.1:9/v1' } })
    expect({ code, out }).to.deep.equal({ code: 69, out: '' })
    expect(err).to.include('http://127.0.0.1:9/v1').and.to.include('ae serve')
  })

  it('says where it stands in the line; where the stream cannot be resumed for now, it says how to come back: 75', async () => {
    const events = { 'content-type': 'text/event-stream', 'x-run-id': 'run_1' }
    const server = createServer(({ method }, res) => {
      const waiting = 'id: 0\nevent: waiting\ndata: {"place":3,"expected_start":null}\n\n'
      if (method === 'POST') res.writeHead(200, events).end(waiting + 'id: 1\nevent: text\ndata: {"text":"so far"}\n\n')
      else res.writeHead(503, { 'retry-after': '61' }).end('{"error":{"type":"unavailable","message":"it stops"}}')
    }).listen(0)
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { code, out, err } = await at.ae.run(['run', 'Hello'], { env: { AE_URL: url } })
    expect({ code, out, err }).to.deep.equal({
      code: 75,
      out: 'so far\n',
      err: '  Waiting, place 3\nae attach run_1\n✗ it stops\n',
    })
    server.close()
  })

  it('ends quietly when the reader of the pipe leaves', async () => {
    const { child, err, exited } = at.ae.start(['run', '/tokens 2000 2'])
    child.stdin.end()
    child.stdout.once('data', () => child.stdout.destroy())
    expect(await exited).to.equal(0)
    expect(await err).to.not.include('EPIPE')
  })

  it('--background prints the id, attach follows it, and cancel ends it: 130', async () => {
    const id = (await at.ae.run(['run', '--background', '/say a\n/hang'])).out.trim()
    expect(id).to.match(/^run_[0-9a-f]{32}$/)
    const followed = at.ae.start(['attach', id.slice(-12)])
    await until(() => eventCountOf(id), { what: 'the first event' })
    expect((await at.ae.run(['cancel', `${id.slice(0, 8)}…${id.slice(-4)}`])).out).to.equal(`${id} cancelled\n`)
    expect({ code: await followed.exited, out: await followed.out }).to.deep.equal({ code: 130, out: 'a\n' })
  })

  it('--deadline is that of a background run; without one it is 2', async () => {
    const refused = await at.ae.run(['run', '--deadline', '1.5', '/say a'])
    expect(refused.code).to.equal(2)
    expect(refused.err).to.include('background')
    const id = (await at.ae.run(['run', '--background', '--deadline', '1.5', '/say a'])).out.trim()
    const { started_at, deadline_at = '' } = await runOf(id)
    expect(Date.parse(deadline_at) - Date.parse(started_at)).to.be.closeTo(5_400_000, 60_000)
    expect((await at.ae.run(['attach', id])).out).to.equal('a\n')
  })

  it('what it does not understand is 2, and what is not there 4', async () => {
    expect((await at.ae.run(['run', '--unknown'])).code).to.equal(2)
    expect((await at.ae.run(['unknown'])).code).to.equal(2)
    expect((await at.ae.run(['run', '--allow', 'a b', 'x'])).code).to.equal(2)
    expect((await at.ae.run(['attach', `run_${'0'.repeat(32)}`])).code).to.equal(4)
    expect((await at.ae.run(['attach', 'run_x'])).err).to.include('there is no run or session run_x')
    expect((await at.ae.run(['cancel', 'perm_0'])).code).to.equal(2)
  })

  it('--help says the exit codes, and names every command, of which it loads none, and no client: it comes at once', async () => {
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(TELLS_FILES)}` }
    const { code, out, err } = await at.ae.runProcess(['--help'], { env })
    expect(code).to.equal(0)
    const files = err.match(/(?<=\/)(services|shared)\/.*(?=\n)/g) ?? []
    expect(files).to.include('services/cli/catalogue.ts')
    expect(files.filter((file) => /commands\/|client\/(?!errors)/.test(file))).to.deep.equal([])
    expect(out)
      .to.include('69   the server cannot be reached')
      .and.to.match(/^ {2}run +/m)
    expect((await at.ae.run(['run', '--help'])).out).to.include('--approve <mode>')
  })

  async function firstPending() {
    const { body } = await at.server.call('GET', '/permissions')
    return (body as { permissions: { id: string }[] }).permissions[0]
  }

  const eventCountOf = async (id: string) => (await runOf(id)).event_count
  async function runOf(id: string) {
    const { body } = await at.server.call('GET', `/runs/${id}`)
    return body as { event_count: number; started_at: string; deadline_at?: string }
  }
})

// Tests events.ts, tools.ts, webhooks.ts, transcribe.ts, files.ts and the files of run.ts: their options and output, against a server, a receiver and a backend.
// Tests connect/transfer.ts and text/sent-meter.ts: a large file on its way.

import { once } from 'node:events'
import { readFile, truncate, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { expect } from 'chai'
import { useAe } from '../../support/ae.ts'
import { startStandalone } from '../../support/product.ts'
import { until } from '../../support/until.ts'

type Received = { path: string; body: string }

describe('ae events, tools, webhooks, files and transcribe', () => {
  const at = useAe(() =>
    startStandalone({ ALLOW_PRIVATE_URLS: 'true', MODEL_PROVIDER: 'demo', MODEL: '', MODEL_BASE_URL: '' }),
  )
  const received: Received[] = []
  let other: Server
  let address: string
  before(async () => {
    other = createServer((req, res) => {
      void buffer(req).then((bytes) => {
        received.push({ path: req.url ?? '', body: bytes.toString('latin1') })
        const isText = received.at(-1)?.body.includes('response_format')
        res.setHeader('content-type', isText ? 'text/plain' : 'application/json')
        res.end(isText ? 'WEBVTT' : '{"text":"Good \\u001b[31mmorning"}')
      })
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    address = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    const speech = JSON.stringify({ type: 'openai-compatible', url: `${address}/v1`, key: 'sk-1' })
    expect((await at.ae.run(['config', 'set', 'instances/speech', '-'], { input: speech })).code).to.equal(0)
  })
  after(() => void other.close())
  const run = (...args: string[]) => at.ae.run(args, { cwd: at.home })

  it('events prints what happens, one event a line, of the types that are wanted, and ends after so many or at Ctrl-C', async () => {
    const watched = at.ae.start(['events', '--types', 'run.started', 'run.ended', '-n', '2'])
    await once(watched.child.stderr, 'data')
    await until(async () => (await run('run', '/say one')).code === 0 && watched.child.exitCode !== null, {
      what: 'both events',
    })
    expect(await watched.exited).to.equal(0)
    expect(await watched.out).to.match(/^(run\.(started|ended) +\{.*"run_id":"run_[0-9a-f]{32}".*\}\n){2}$/)
    const whole = at.ae.start(['events', '--json'])
    whole.child.stdout.once('data', () => whole.child.kill('SIGINT'))
    await until(async () => (await run('run', '/say two')).code === 0 && whole.child.exitCode !== null, {
      what: 'an event',
    })
    expect(await whole.exited).to.equal(0)
    expect(JSON.parse((await whole.out).split('\n')[0] ?? '')).to.have.keys('id', 'event', 'data')
    expect((await run('events', '--types', 'run.begun')).code).to.equal(2)
  })

  it('tools lists the tools with the fields of their input', async () => {
    const { out } = await run('tools')
    expect(out)
      .to.match(/^NAME +INPUT +DESCRIPTION\n/)
      .and.match(/^Write +path content +\S/m)
    expect((await run('tools', '-o', 'ids', '-n', '1')).out).to.match(/^\w+\n$/)
  })

  it('a webhook is stored from a file, shown without its secret, tried out, listed, and deleted', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const input = JSON.stringify({ url: `${address}/hooks`, events: ['run.ended'], secret })
    expect((await at.ae.run(['webhooks', 'set', 'ci', '-'], { input })).out).to.equal('ci stored\n')
    expect((await run('webhooks', 'ls')).out).to.match(/^ci +http:\S+\/hooks +run\.ended +enabled$/m)
    expect((await run('webhooks', 'get', 'ci')).out)
      .to.include('/hooks')
      .and.not.include(secret)
    const id = (await run('webhooks', 'test', 'ci')).out.trim()
    await until(() => received.some(({ path, body }) => path === '/hooks' && body.includes('webhook.test')), {
      what: 'the message',
    })
    const isListed = async () =>
      (await run('webhooks', 'deliveries', 'ci', '--status', 'delivered', '-o', 'ids')).out === `${id}\n`
    await until(isListed, { what: 'the message to be delivered' })
    expect((await run('webhooks', 'deliveries', 'ci')).out).to.match(
      new RegExp(`^${id} +webhook\\.test +delivered +1 +200 `, 'm'),
    )
    expect((await run('webhooks', 'retry', 'ci', id)).out).to.equal(`${id} pending\n`)
    expect((await run('webhooks', 'rm', 'ci')).out).to.equal('ci deleted\n')
    expect((await run('webhooks', 'get', 'ci')).code).to.equal(4)
    expect((await run('webhooks', 'ls')).err).to.equal('there are no webhooks\n')
  })

  it('run attaches a file that is no text, and files lists, fetches and deletes it', async () => {
    const pdf = Buffer.from('%PDF-1.7\n\0plan')
    await writeFile(`${at.home}/plan.pdf`, pdf)
    await writeFile(`${at.home}/notes.md`, '# notes')
    const { out } = await run('run', '-f', 'plan.pdf', '--attach', 'notes.md', 'What is it?')
    expect(out).to.include('[attached: "attachments/plan.pdf", application/pdf').and.include('attachments/notes.md')
    const id = (await run('files', 'add', 'plan.pdf')).out.trim()
    expect((await run('files', 'ls')).out).to.match(new RegExp(`^${id} +plan.pdf +application/pdf +14 `, 'm'))
    expect((await run('files', 'get', id, 'copy.pdf')).code).to.equal(0)
    expect((await readFile(`${at.home}/copy.pdf`)).equals(pdf)).to.equal(true)
    expect((await run('files', 'rm', id)).out).to.equal(`${id} deleted\n`)
    expect((await run('files', 'get', id, 'none.pdf')).code).to.equal(4)
    expect((await run('run', '--attach', 'none.pdf', 'hi')).code).to.equal(2)
  })

  it('files lists and fetches what a session has in its workspace, and steer says that a run has ended', async () => {
    const prompt = '/tool Write {"path": "out/a.md", "content": "hello"}'
    await at.ae.run(['chat', 'workspace', '--approve', 'all'], { input: `${prompt}\n`, cwd: at.home })
    const { out } = await run('files', 'ls', 'workspace')
    const [runId] = /run_[0-9a-f]{32}/.exec(out) ?? ['']
    expect(out).to.match(/^out\/a.md +5 +\S+ +run_/m)
    expect((await run('files', 'ls', runId, '-o', 'ids')).out).to.equal('out/a.md\n')
    expect((await run('files', 'get', 'workspace', 'a.md', '--path', 'out/a.md')).code).to.equal(0)
    expect(await readFile(`${at.home}/a.md`, 'utf8')).to.equal('hello')
    const late = await run('steer', runId, 'be', 'kind')
    expect(late.code).to.equal(1)
    expect(late.err).to.match(/has ended/)
  })

  it("transcribe sends a recording and prints its text, or the backend's whole answer", async () => {
    await writeFile(`${at.home}/recording.wav`, 'RIFF sounds')
    const transcribe = (...args: string[]) =>
      run('transcribe', 'recording.wav', '--instance', 'speech', '-m', 'whisper-1', ...args)
    expect((await transcribe('--language', 'en')).out).to.equal('Good [31mmorning\n')
    const { body = '' } = received.findLast(({ path }) => path === '/v1/audio/transcriptions') ?? {}
    expect(body)
      .to.include('RIFF sounds')
      .and.include('filename="recording.wav"')
      .and.include('whisper-1')
      .and.include('en')
    expect(JSON.parse((await transcribe('--json')).out)).to.have.keys('text')
    expect((await transcribe('--field', 'response_format=vtt')).out).to.equal('WEBVTT\n')
    expect((await transcribe('--field', 'wrong')).code).to.equal(2)
    const missing = await run('transcribe', 'none.wav', '--instance', 'speech', '-m', 'whisper-1')
    expect([missing.code, missing.err]).to.satisfy(
      ([code, err]: [number, string]) => code === 2 && /there is no file/.test(err),
    )
    const unknown = await run('transcribe', 'recording.wav', '--instance', 'nobody', '-m', 'whisper-1')
    expect(unknown.code).to.equal(2)
    expect(unknown.err).to.include('provider_instance')
  })

  it('a large file is sent no faster than it is taken, and a terminal shows how far it is, and then the answer alone', async () => {
    const file = `${at.home}/large.bin`
    await writeFile(file, 'RIFF')
    await truncate(file, 32 * MB)
    const url = new URL(at.server.url)
    await using gate = await openGate(Number(url.port))
    url.port = String(gate.port)
    const args = ['transcribe', '--instance', 'speech', '-m', 'whisper-1', file]
    const terminal = at.ae.terminal(args, { env: { AE_URL: url.href } })
    await terminal.shows(/▸ large\.bin \d.* MB of 33\.6 MB · \d+ %/)
    const percent = () => Number(/(\d+) %/.exec(terminal.screen.text)?.[1] ?? 100)
    let seen = -1
    const stands = () => percent() === seen || !(seen = percent())
    await until(stands, { what: 'the file to be sent no further', everyMs: 600, lastSeen: () => terminal.screen.text })
    expect(seen, 'of what the connection holds').to.be.below(70)
    gate.open()
    expect(await terminal.exited).to.equal(0)
    expect(terminal.screen.text.trim()).to.equal('Good [31mmorning')
  })
})

const MB = 1024 * 1024

/** Passes connections on to a port, and of what comes through each the first megabyte only until it is opened. */
async function openGate(target: number) {
  const opened = Promise.withResolvers<void>()
  const server = createTcpServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    let passed = 0
    const halted = async function* (bytes: AsyncIterable<Buffer>) {
      for await (const chunk of bytes) {
        yield chunk
        passed += chunk.length
        if (passed > MB) await opened.promise
      }
    }
    pipeline(client, halted, upstream).catch(() => {})
    pipeline(upstream, client).catch(() => {})
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, open: opened.resolve, [Symbol.asyncDispose]: async () => void server.close() }
}

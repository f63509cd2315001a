// Tests chat.ts: a conversation on a terminal.
// Tests reply.ts: an input that is changed on a terminal.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Ae, useAe } from '../../support/ae.ts'
import { answerDirectives } from '../../support/model-server/directives.ts'
import { startStandalone } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const WRITE = '/tool Write {"path":"notes/a.txt","content":"hello world\\nsecond line\\n"}'
const KEYS_OF_LONG = /\[v\]iew all, then \[a\]llow {2}\[s\]ession {2}\[e\]dit {2}\[d\]eny · denied in \d:\d\d ›$/
const KEYS = /\[a\]llow {2}\[s\]ession {2}\[e\]dit {2}\[d\]eny {2}\[v\]iew all(?: {2}\[q\]uit)? · denied in \d:\d\d ›$/

describe('ae run and ae chat, in a terminal', () => {
  const at = useAe(() => startStandalone())
  before(() => at.server.model.otherwise(answerDirectives))

  it('shows the model, the text, and what was used; no line is wider than the terminal', async () => {
    for (const columns of [80, 200]) {
      const terminal = at.ae.terminal(['run', `/say ${'The quick brown fox jumps over the lazy dog. '.repeat(5)}`], {
        columns,
      })
      expect(await terminal.exited).to.equal(0)
      const lines = terminal.screen.lines.filter((line) => line !== '')
      expect(lines[0]).to.match(/^● test-model +run_[0-9a-f]{4}…[0-9a-f]{4}$/)
      expect(lines[1]).to.match(/^ {2}The quick brown/)
      expect(lines.at(-1)).to.match(/^✓ 1 turn · .+ in · .+ out · ctx .+ · \$.+ · .+ s$/)
      expect(Math.max(...lines.map(({ length }) => length))).to.be.within(
        columns === 80 ? 70 : 90,
        Math.min(columns, 100),
      )
    }
  })

  it('asks in place with the change and the time that is left; `a` allows it', async () => {
    const terminal = at.ae.terminal(['run', WRITE])
    const asked = await terminal.shows(KEYS)
    expect(asked).to.match(/^ {2}\? Write notes\/a\.txt +\+2 -0\n {6}@@ .*\n {6}\+hello world\n {6}\+second line$/m)
    expect(asked, 'the call, beside its question').to.not.include('▸')
    terminal.type(' ') // A key that is no answer.
    await answer(terminal, 'a', /✓ Write notes/)
    expect(await terminal.exited).to.equal(0)
    expect(terminal.screen.text).to.match(/^ {2}✓ Write notes\/a\.txt +\d+ B +\d\.\d s$/m)
    expect(terminal.screen.text)
      .to.include('The tool said: Wrote 24 bytes')
      .and.not.include('[a]llow')
      .and.not.include('▸')
  })

  it('`v` shows all of the change and asks again, and `s` allows the tool for the rest of the session', async () => {
    const lines = Array.from({ length: 40 }, (_, i) => `line ${i}`).join('\\n')
    const write = (name: string) => `/tool Write {"path":"${name}","content":"${lines}\\n"}`
    const terminal = at.ae.terminal(['chat', 'keys'])
    await terminal.shows(/›/)
    terminal.type(`${write('v.txt')}\r`)
    expect(await terminal.shows(KEYS_OF_LONG)).to.not.include('+line 39')
    await answer(terminal, 's', /You have not seen all of it: press v first/)
    await answer(terminal, 'v', /\+line 39[^]*denied in/)
    await answer(terminal, 's', /✓ Write v\.txt/)
    terminal.type(`${write('s.txt')}\r`)
    expect(await terminal.shows(/✓ Write s\.txt/)).to.not.match(/\? Write s\.txt/)
    // Ctrl-C ends the answer, not the conversation.
    await terminal.shows(/›$/)
    terminal.type(' /hang\r')
    await terminal.shows(/› {2}\/hang\n● test-model/)
    terminal.type('\u0003')
    await terminal.shows(/✗ the run was cancelled\n›$/)
    terminal.type('/quit\r')
    expect(await terminal.exited).to.equal(0)
  })

  it('Escape goes back from `e` and `d`, which show the deadline; `d` denies it with a reason that the model reads: 3', async () => {
    const terminal = at.ae.terminal(['run', WRITE])
    await terminal.shows(KEYS)
    await answer(terminal, 'e', /denied at \d\d:\d\d:\d\d, Escape goes back\n {2}input: \{"path"/)
    terminal.type('\u001b')
    await terminal.shows(KEYS)
    await answer(terminal, 'd', /denied at \d\d:\d\d:\d\d, Escape goes back\n {2}reason[^\n]*: *$/)
    terminal.type('\u001b')
    await terminal.shows(KEYS)
    await answer(terminal, 'd', /Escape goes back\n {2}reason[^\n]*: *$/)
    terminal.type('not today\r')
    expect(await terminal.exited).to.equal(3)
    expect(terminal.screen.text)
      .to.match(/✗ Write notes\/a\.txt/)
      .and.include('denied: not today')
  })

  it('Escape leaves `ae allow --edit`, and nothing is allowed: 130', async () => {
    const run = at.ae.start(['run', WRITE])
    run.child.stdin.end()
    let id = ''
    await until(async () => (id = (await at.ae.run(['approvals', '-o', 'ids'])).out.trim()) !== '', {
      what: 'a request',
    })
    const allow = at.ae.terminal(['allow', id, '--edit'])
    await allow.shows(/denied at \d\d:\d\d:\d\d, Escape goes back\n {2}input: \{"path"/)
    allow.type('\u001b')
    expect(await allow.exited).to.equal(130)
    expect((await at.ae.run(['approvals', '-o', 'ids'])).out.trim()).to.equal(id)
    await at.ae.run(['deny', id])
    expect(await run.exited).to.equal(3)
  })

  it('`e` lets the person change the input, in EDITOR', async () => {
    const editor = join(at.home, 'editor.sh')
    await writeFile(editor, '#!/bin/sh\nsed -i s/second/changed/ "$1"\n', { mode: 0o700 })
    const terminal = at.ae.terminal(['run', WRITE], { env: { EDITOR: editor } })
    await terminal.shows(KEYS)
    await answer(terminal, 'e', /✓ Write/)
    expect(await terminal.exited).to.equal(0)
    expect(terminal.screen.text.replaceAll(/\s+/g, ' ')).to.include('changed line')
  })

  it('the question goes away when nobody has answered in time: 3', async () => {
    await using server = await startImpatient()
    const terminal = at.ae.terminal(['run', WRITE], { env: { AE_URL: server.url } })
    await terminal.shows(KEYS)
    expect(await terminal.exited).to.equal(3)
    expect(terminal.screen.text).to.include('nobody answered within 4 seconds').and.not.include('[a]llow')
  })

  it('Ctrl-C cancels the run and waits for its end: 130', async () => {
    const terminal = at.ae.terminal(['run', '/say One\n/hang'])
    await terminal.shows(/One/)
    terminal.type('\u0003')
    expect(await terminal.exited).to.equal(130)
    expect(terminal.screen.text).to.match(/cancelling[^]*✗ the run was cancelled\n/)
  })

  it('Ctrl-C also while a key is asked for, and the second one leaves and prints how to come back', async () => {
    using slow = await openUncancelling(at.server.url)
    const terminal = at.ae.terminal(['run', WRITE], { env: { AE_URL: slow.url } })
    await terminal.shows(KEYS)
    terminal.type('\u0003\u0003')
    expect(await terminal.exited).to.equal(130)
    const [, runId] = /^ae attach (run_[0-9a-f]{32})$/m.exec(terminal.screen.text) ?? []
    expect((await at.server.call('DELETE', `/runs/${runId}`)).status).to.equal(200)
  })

  it('without colours and UTF-8 there are neither', async () => {
    const terminal = at.ae.terminal(['run', '/say plain'], { env: { NO_COLOR: '1', LANG: 'C' } })
    expect(await terminal.exited).to.equal(0)
    expect(terminal.written).to.match(/^[\x20-\x7e\r\n]*$/)
  })

  it('no escape sequence of a model or tool reaches the terminal', async () => {
    const terminal = at.ae.terminal(
      ['run', '--approve', 'all', '/say \u001b[2J\u001b]0;x\u0007one\n/tool Read {"path":"\u001b[2J\u009b2J"}'],
      { env: { NO_COLOR: '1' } },
    )
    expect(await terminal.exited).to.equal(0)
    for (const hostile of ['\u001b[2J', '\u001b]', '\u009b', '\u0007']) expect(terminal.written).to.not.include(hostile)
  })

  it('a chat keeps the conversation, has commands, and says how to continue', async () => {
    const terminal = at.ae.terminal(['chat', 'terminal-1'])
    await terminal.shows(/\/help lists the commands\n›$/)
    terminal.type('/say Hello\r')
    await terminal.shows(/ {2}Hello\n✓ 1 turn.*\n›$/)
    terminal.type('/cost\r')
    await terminal.shows(/2 messages · .* in · /)
    terminal.type('/model other\r')
    await terminal.shows(/model: other\n/)
    terminal.type('/quit\r')
    expect(await terminal.exited).to.equal(0)
    expect(terminal.screen.text).to.match(/^ae chat terminal-1$/m)
    const again = at.ae.terminal(['chat', '-c'])
    await again.shows(/› \/say Hello\n {2}Hello\nterminal-1.*\n›$/)
    again.type('\u0004')
    expect(await again.exited).to.equal(0)
  })

  it('a line that is typed while a run works waits for its end, or is told to the run, and comes back where the run fails', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    at.server.model.answer([{ text: 'Working' }, { hold: promise }, { text: '.' }])
    const terminal = at.ae.terminal(['chat', 'ahead'])
    await terminal.shows(/›$/)
    terminal.type('begin\r')
    await terminal.shows(/Working/)
    terminal.type('/say the next one\r')
    await terminal.shows(/waits for the end of this run: \/say the next one/)
    terminal.type('/say heard\t')
    await terminal.shows(/told, and read next: \/say heard/)
    resolve()
    await terminal.shows(/told by [^\n]*heard\n[^]* {2}heard\n[^]*› \/say the next one\n[^]* {2}the next one\n✓ [^]*›$/)
    terminal.type(' /hang\r')
    await terminal.shows(/› {2}\/hang\n● test-model/)
    terminal.type('not sent\r')
    await terminal.shows(/waits for the end of this run: not sent/)
    terminal.type('\u0003')
    await terminal.shows(/✗ the run was cancelled\n› not sent$/)
    terminal.type('\u0015/quit\r')
    expect(await terminal.exited).to.equal(0)
  })

  it('approvals watch rings the bell for a request of another run, asks, and ends with `q`, which answers nothing', async () => {
    const watch = at.ae.terminal(['approvals', 'watch'])
    let hasExited = false
    void watch.exited.then((code) => (hasExited = code === 0))
    await watch.shows(/waiting for requests/)
    const run = at.ae.start(['run', WRITE])
    run.child.stdin.end()
    await watch.shows(KEYS)
    expect(watch.written).to.include('\u0007')
    await answer(watch, 'a', /perm_[0-9a-f]{32} allowed/)
    expect(await run.exited).to.equal(0)
    const other = at.ae.start(['run', WRITE])
    other.child.stdin.end()
    await watch.shows(/\[q\]uit · denied in \d:\d\d ›$/)
    await until(() => (watch.type('q'), hasExited), { what: 'q to be heard', everyMs: 100 })
    const [id = ''] = (await at.ae.run(['approvals', '-o', 'ids'])).out.trim().split('\n')
    const one = at.ae.terminal(['approvals', 'watch', id])
    await answer(one, 'd', /Escape goes back\n {2}reason[^\n]*: *$/)
    one.type('\r')
    expect(await one.exited).to.equal(0)
    expect(one.screen.text).to.include(`${id} denied`)
    expect(await other.exited).to.equal(3)
  })

  /** A key that comes as the question appears is not taken for an answer, so it is pressed until it counts. */
  async function answer(terminal: ReturnType<Ae['terminal']>, key: string, seen: RegExp): Promise<void> {
    await until(
      () => {
        if (seen.test(terminal.screen.text)) return true
        if (/denied in \d:\d\d ›$/.test(terminal.screen.text)) terminal.type(key)
        return false
      },
      { what: `${seen} after ${key}`, everyMs: 100, lastSeen: () => terminal.screen.text },
    )
  }
})

/** A server whose requests wait for 4 seconds. */
async function startImpatient() {
  const server = await startStandalone({ PERMISSION_TIMEOUT_SECS: '4' })
  server.model.otherwise(answerDirectives)
  return { url: server.url, [Symbol.asyncDispose]: () => server.close() }
}

/** Passes requests on to the server, all but those that cancel a run, which get no answer. */
async function openUncancelling(target: string) {
  const server = createServer((req, res) => {
    if (req.method === 'DELETE') return
    const { port } = new URL(target)
    const options = { port, path: req.url, method: req.method, headers: req.headers }
    const passed = request(options, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('error', () => res.destroy()).pipe(res)
    })
    res.on('close', () => passed.destroy())
    req.pipe(passed.on('error', () => res.destroy()))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    [Symbol.dispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

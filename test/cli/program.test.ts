import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { Ae } from '../support/ae.ts'
import { useTempFolder } from '../support/temp-folder.ts'

const ESC = '\u001b'

/** Answers each path with a status and a body. */
async function startServer(answerOf: (path: string) => [number, string]) {
  const server = createServer((req, res) => {
    const [status, body] = answerOf(req.url ?? '')
    res.writeHead(status).end(body)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: close }
}

describe('the command line at something that is no agent-engine', () => {
  const home = useTempFolder()
  let answer = ''
  let location: string | undefined
  const asked: string[] = []
  let server: Server
  let ae: Ae
  let base = ''

  before(async () => {
    server = createServer((req, res) => {
      asked.push(`${req.method} ${req.url}`)
      if (location === undefined) res.end(answer)
      else res.writeHead(307, { location }).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    ae = new Ae(base, home.path)
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  for (const [what, body] of [
    ['a page', `<html>${ESC}]0;owned\u0007${ESC}[2J\u009b1m</html>`],
    ['a text', 'ok'],
    ['a list', '[]'],
    ['a number', '5'],
    ['nothing known', '{"hello": 1}'],
    ['a list of texts', '{"runs": ["a", 5, null]}'],
    ['a list of other things', '{"runs": [{"x": 1}], "next_cursor": null}'],
  ] as const)
    it(`${what} ends \`ae ls\` with 69, or with what can be shown of it, and nothing of it reaches the terminal raw`, async () => {
      answer = body
      const { code, out, err } = await ae.run(['ls'])
      expect([0, 69]).to.include(code)
      if (what !== 'a list of other things') expect(code).to.equal(69)
      for (const raw of [ESC, '\u0007', '\u009b']) expect(out + err).not.to.include(raw)
      expect(err).not.to.match(/\n\s+at /)
    })

  it('a body is not sent to where another server redirects', async () => {
    const other: string[] = []
    const stranger = createServer((req, res) => void (other.push(`${req.method}`), res.end('{}'))).listen(
      0,
      '127.0.0.1',
    )
    await once(stranger, 'listening')
    location = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/`
    const { code } = await ae.run(['api', 'POST', '/sessions', '-d', '{"session_id": "a"}'])
    location = undefined
    stranger.close()
    expect(code).to.equal(69)
    expect(asked.at(-1)).to.include('POST')
    expect(other).to.deep.equal([])
  })

  it('a path of `ae api` may begin with the base path of the address', async () => {
    answer = '{"a": 1}'
    for (const path of ['/v1/me', '/me']) {
      expect((await ae.run(['--url', `${base}/v1`, 'api', 'GET', path])).code).to.equal(0)
      expect(asked.at(-1)).to.equal('GET /v1/me')
    }
  })

  it('an address without the base path is named as the fault, with the right one: 78', async () => {
    for (const right of ['/v1', '/api/v1']) {
      await using api = await startServer((path) =>
        path === `${right}/health`
          ? [200, '{"status":"ok"}']
          : [404, '{"error":{"type":"not_found_error","message":"no such path"}}'],
      )
      for (const url of [api.url, `${api.url}/`]) {
        const { code, err } = await ae.run(['--url', url, 'ls'])
        expect(code).to.equal(78)
        expect(err)
          .to.include(`${url} is the address of a server, and not of its API`)
          .and.include(`Use ${api.url}${right} for`)
      }
      const { code, err } = await ae.run(['--url', api.url + right, 'ls'])
      expect([code, err]).to.deep.equal([4, '✗ no such path\n'])
    }
    await using other = await startServer(() => [404, '{"error":{"type":"not_found_error","message":"no such path"}}'])
    expect((await ae.run(['--url', other.url, 'ls'])).code).to.equal(4)
  })

  it('a command that is wrong, and a thing that is not there, name the next command', async () => {
    expect((await ae.run(['--url', base, 'flows', 'publish'])).err).to.match(
      /\n {2}`ae flows publish --help` says what it takes\.\n$/,
    )
    await using api = await startServer(() => [404, '{"error":{"type":"not_found_error","message":"no such flow"}}'])
    const { code, err } = await ae.run(['--url', `${api.url}/v1`, 'flows', 'get', 'none'])
    expect([code, err]).to.deep.equal([4, '✗ no such flow\n  `ae flows ls` lists what there is.\n'])
  })

  it('what was typed is repeated without escape sequences', async () => {
    const { code, err } = await ae.run([`${ESC}[31mls\u202e`])
    expect(code).to.equal(2)
    expect(err).not.to.include('\u202e').and.not.include(ESC)
  })
})

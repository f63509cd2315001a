import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { ToolContext, ToolOutcome } from '../../../../shared/agent/tools/port.ts'
import { createWebFetchTool } from '../../../../shared/agent/tools/web/web-fetch.ts'
import { createEgress } from '../../../../shared/platform/net/egress.ts'
import { callerOf, contextOf } from '../setup.ts'

const page =
  (type: string, body: string | Buffer): RequestListener =>
  (_req, res) =>
    res.writeHead(200, { 'content-type': type }).end(body)

describe('WebFetch', () => {
  const closing: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })

  async function serve(listener: RequestListener): Promise<string> {
    const server = createServer(listener).listen(0, '127.0.0.1')
    await once(server, 'listening')
    closing.push(() => server.close().closeAllConnections())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  type Options = Partial<Pick<ToolContext, 'signal' | 'policyOf'>> & {
    allowPrivate?: boolean
    timeoutMs?: number
    maxBytes?: number
  }

  function fetchPage(
    url: string,
    { allowPrivate = true, signal, policyOf, ...limits }: Options = {},
  ): Promise<ToolOutcome> {
    const egress = createEgress({ allowPrivate })
    closing.push(egress.close)
    const tool = createWebFetchTool({ egress: async () => egress, ...limits })
    return callerOf([tool], '/nowhere')(
      'WebFetch',
      { url },
      { ...(signal && { signal }), ...(policyOf && { policyOf }) },
    )
  }

  it('D5.1: takes a url and asks for permission; the way out is opened only by a call', async () => {
    const tool = createWebFetchTool({ egress: () => expect.fail('opened') })
    expect([tool.defaultPolicy, tool.inputSchema['required']]).to.deep.equal(['ask', ['url']])
    expect(tool.describe({ url: 'https://example.com/' })).to.equal('Fetch https://example.com/.')
    const preview = await tool.preview?.({ url: 'https://example.com/' }, contextOf('/'))
    expect(preview, 'D24.4').to.deep.equal({ kind: 'request', method: 'GET', url: 'https://example.com/' })
  })

  it('HTML is reduced to its visible text, with absolute links', async () => {
    const html = '<title>T</title><script>no()</script><h1>Hi &amp; all</h1><p>See <a href="/next">this</a>.'
    const url = await serve(page('text/html; charset=utf-8', html))
    expect(await fetchPage(url)).to.deep.equal({
      output: `T\n\n# Hi & all\n\nSee [this](${url}/next).`,
      isError: false,
    })
  })

  it('JSON and other text is returned unchanged', async () => {
    for (const type of [
      'application/json',
      'application/problem+json',
      'text/markdown',
      'text/plain',
      'application/xml',
    ]) {
      const url = await serve(page(type, '{"a": "<b>"}'))
      expect((await fetchPage(url)).output, type).to.equal('{"a": "<b>"}')
    }
  })

  it('reads the charset from the header, or from the page itself', async () => {
    const latin = Buffer.from('<meta charset="iso-8859-1"><p>caf\xe9', 'latin1')
    expect((await fetchPage(await serve(page('text/html', latin)))).output).to.equal('café')
    expect((await fetchPage(await serve(page('text/plain; charset=ISO-8859-1', Buffer.from([0xe9]))))).output).to.equal(
      'é',
    )
    expect((await fetchPage(await serve(page('text/plain; charset=nonsense', 'é')))).output).to.equal('é')
  })

  it('a content type other than text is a tool error that names it', async () => {
    for (const type of ['image/png', 'application/pdf', 'application/octet-stream', 'video/mp4']) {
      const outcome = await fetchPage(await serve(page(type, 'x')))
      expect(outcome).to.deep.equal({
        output: `The content at the address has the type ${type}, which cannot be read as text.`,
        isError: true,
      })
    }
  })

  it('an error status is a tool error that names it', async () => {
    const outcome = await fetchPage(await serve((_req, res) => res.writeHead(404).end('nothing here')))
    expect(outcome).to.deep.equal({
      output: 'The server answered 404. Check the address, or try another one.',
      isError: true,
    })
  })

  it('follows at most 5 redirects, also relative ones, and passes no header of an answer on', async () => {
    const seen: IncomingMessage['headers'][] = []
    const url = await serve((req, res) => {
      seen.push(req.headers)
      const hop = Number(req.url?.slice(1))
      if (hop === 0) res.writeHead(200, { 'content-type': 'text/plain' }).end('arrived')
      else res.writeHead(302, { location: `./${hop - 1}`, 'set-cookie': 'a=b', 'www-authenticate': 'Basic' }).end()
    })
    expect((await fetchPage(`${url}/5`)).output).to.equal('arrived')
    expect(await fetchPage(`${url}/6`)).to.deep.equal({
      output: 'The address redirects more than 5 times.',
      isError: true,
    })
    const names = new Set(seen.flatMap((headers) => Object.keys(headers)))
    expect([...names].toSorted()).to.deep.equal(['accept', 'accept-encoding', 'connection', 'host', 'user-agent'])
  })

  it('D5.2: a redirect to another origin is a result that names the address, and nothing is sent there', async () => {
    let asked = 0
    const other = await serve((_req, res) => {
      asked++
      res.end('secret')
    })
    for (const location of [`${other}/next?a=b`, 'file:///etc/passwd', 'https://example.com/']) {
      const url = await serve((_req, res) => res.writeHead(302, { location }).end())
      const { output, isError } = await fetchPage(url)
      expect(output).to.include(`redirects to another origin, which was not fetched: ${location}\n`)
      expect(isError).to.equal(false)
    }
    expect(asked).to.equal(0)
  })

  it('a redirect to an address with a stricter rule is a result that names it, and it is not fetched', async () => {
    const asked: unknown[] = []
    const url = await serve((req, res) => {
      asked.push(req.url)
      if (req.url === '/secret') res.end('secret')
      else res.writeHead(302, { location: req.url === '/' ? '/next' : '/secret' }).end()
    })
    const policyOf: ToolContext['policyOf'] = (_name, input) => (input['url'] === `${url}/secret` ? 'deny' : 'ask')
    const { output, isError } = await fetchPage(url, { policyOf })
    expect(output).to.include(
      `redirects to a page for which a stricter rule holds, which was not fetched: ${url}/secret\n`,
    )
    expect([isError, asked]).to.deep.equal([false, ['/', '/next']])
  })

  it('a redirect to an invalid address is a tool error', async () => {
    const url = await serve((_req, res) => res.writeHead(302, { location: 'http://[bad' }).end())
    expect((await fetchPage(url)).isError).to.equal(true)
  })

  it('ALLOW_PRIVATE_URLS=false: a private address is refused, and the text does not hold the resolved address', async () => {
    const outcome = await fetchPage('http://localhost:8080/', { allowPrivate: false })
    expect(outcome.isError).to.equal(true)
    expect(outcome.output)
      .to.match(/^localhost may not be reached/)
      .and.not.to.include('127.0.0.1')
  })

  it('an invalid address is a tool error', async () => {
    for (const url of ['example.com', 'nonsense', 'mailto:a@b.c'])
      expect((await fetchPage(url)).isError, url).to.equal(true)
  })

  it('a page longer than the limit is cut with a note, and the rest is not downloaded', async () => {
    const closed = Promise.withResolvers<void>()
    const url = await serve((req, res) => {
      req.socket.once('close', () => closed.resolve())
      res.writeHead(200, { 'content-type': 'text/plain' }).write('x'.repeat(5_000)) // The response never ends.
    })
    const { output } = await fetchPage(url, { maxBytes: 1_000 })
    expect(output).to.equal(`${'x'.repeat(1_000)}\n\n[The page is longer than 1000 bytes; the rest was not read.]`)
    await closed.promise
  })

  it('one deadline applies to all redirects and the body together', async () => {
    const url = await serve((req, res) => {
      if (req.url === '/') setTimeout(() => res.writeHead(302, { location: '/slow' }).end(), 100)
      else res.writeHead(200, { 'content-type': 'text/plain' }).write('half')
    })
    const start = performance.now()
    const outcome = await fetchPage(url, { timeoutMs: 300 })
    expect(outcome.output).to.match(/did not answer in time/)
    expect(performance.now() - start).to.be.at.least(250)
  })

  it('an abort closes the connection', async () => {
    const run = new AbortController()
    const closed = Promise.withResolvers<void>()
    const url = await serve((req, res) => {
      req.socket.once('close', () => closed.resolve())
      res.writeHead(200, { 'content-type': 'text/plain' }).write('half')
      run.abort()
    })
    const outcome = await fetchPage(url, { signal: run.signal })
    expect(outcome).to.deep.equal({ output: 'The call was stopped because the run ended.', isError: true })
    await closed.promise
  })
})

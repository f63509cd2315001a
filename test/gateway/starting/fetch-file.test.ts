import { createServer } from 'node:http'
import { expect } from 'chai'
import { createFetchFile } from '../../../services/gateway/starting/fetch-file.ts'
import { createEgress } from '../../../shared/platform/net/egress.ts'
import type { Egress, EgressResponse } from '../../../shared/platform/net/port.ts'

const PARAM = '/attachments/0/url'

/** An answer of a server on the internet. */
const answer = (status: number, headers: Record<string, string>, text = ''): EgressResponse => ({
  ...{ status, headers, discard: () => {} },
  body: (async function* () {
    if (text !== '') yield Buffer.from(text)
  })(),
})

async function refusal(egress: Pick<Egress, 'request'>, url = 'https://example.com/a.png', timeoutMs?: number) {
  const cause: unknown = await createFetchFile(async () => egress, timeoutMs)(url, PARAM).catch(
    (error: unknown) => error,
  )
  expect(cause).to.include({ kind: 'invalid_request', param: PARAM })
  return cause as { message: string; code?: string }
}

describe('createFetchFile', () => {
  const open = () => createEgress({ allowPrivate: false })

  it('D47.2: fetches a file once, through redirects, and takes the name that the server gives, without a folder', async () => {
    const asked: string[] = []
    const request = async (url: string) => {
      asked.push(url)
      if (asked.length === 1) return answer(302, { location: '/b%20c.png' })
      return answer(200, { 'content-disposition': 'attachment; filename="../x/plan.pdf"' }, 'bytes')
    }
    const fetched = await createFetchFile(async () => ({ request }))('https://example.com/a', PARAM)
    expect([fetched.name, fetched.content.toString()]).to.deep.equal(['plan.pdf', 'bytes'])
    expect(asked).to.deep.equal(['https://example.com/a', 'https://example.com/b%20c.png'])
    const plain = createFetchFile(async () => ({ request: async () => answer(200, {}, 'x') }))
    expect((await plain('https://example.com/b%20c.png?d', PARAM)).name).to.equal('b c.png')
    expect((await plain('https://example.com/%2e%2e%2f', PARAM)).name).to.equal('file')
  })

  it('D47.2: refuses private addresses, also behind a redirect and behind a name, before it connects', async () => {
    let hits = 0
    const server = createServer((_req, res) => res.end(String(hits++))).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const egress = open()
    const named = createEgress({ allowPrivate: false, resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    try {
      const inner = `http://127.0.0.1:${port}/`
      const redirecting: Pick<Egress, 'request'> = {
        request: async (url, request) =>
          url.startsWith('https:') ? answer(302, { location: inner }) : egress.request(url, request),
      }
      expect(await refusal(redirecting)).to.include({ code: 'egress_refused' })
      expect(await refusal(egress, inner)).to.include({ code: 'egress_refused' })
      expect(await refusal(named, `http://files.example.com:${port}/`)).to.include({ code: 'egress_refused' })
      expect(hits).to.equal(0)
    } finally {
      server.close()
      await Promise.all([egress.close(), named.close()])
    }
  })

  it('D47.2: says why a file cannot be fetched: its status, no end of redirects, nothing in it, or no answer in time', async () => {
    const answering = (response: () => EgressResponse) => ({ request: async () => response() })
    expect((await refusal(answering(() => answer(404, {})))).message).to.include('404')
    expect((await refusal(answering(() => answer(302, { location: '/a' })))).message).to.include('more than 5')
    expect((await refusal(answering(() => answer(200, {})))).message).to.include('empty')
    const silent: Pick<Egress, 'request'> = {
      request: (_url, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    }
    expect((await refusal(silent, 'https://example.com', 5)).message).to.include('in time')
  })
})

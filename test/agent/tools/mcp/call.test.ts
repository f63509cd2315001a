import { getEventListeners, once } from 'node:events'
import {
  type CallToolResult,
  type Client,
  ProtocolError,
  type RequestOptions,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { expect } from 'chai'
import type { NewFile } from '../../../../shared/agent/files/files.ts'
import type { FileRecord } from '../../../../shared/agent/files/records.ts'
import { tooLarge } from '../../../../shared/agent/tools/mcp/answers.ts'
import { callTool } from '../../../../shared/agent/tools/mcp/call.ts'
import type { McpConnection } from '../../../../shared/agent/tools/mcp/connection.ts'
import { Questions } from '../../../../shared/agent/tools/mcp/elicitation.ts'
import { SharedClient } from '../../../../shared/agent/tools/mcp/shared-client.ts'
import type { DeliveredFiles } from '../../../../shared/agent/tools/workspace/deliver.ts'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import { contextOf } from '../setup.ts'

type Answer = Partial<CallToolResult> | Error

/** Calls a tool of a server that gives these answers, one per call. */
async function callWith(
  answers: Answer[],
  fields: {
    isReachable?: boolean
    run?: AbortController
    session?: string
    files?: DeliveredFiles
    /** Answers `resources/read`. Left out: the server offers no resources. */
    read?: (uri: string, options: RequestOptions) => Promise<object[]>
  } = {},
) {
  const { isReachable = true, run = new AbortController(), session = 's1', files, read } = fields
  const seen = { calls: 0, closed: 0, options: [] as RequestOptions[], reports: [] as [number, string][] }
  const client = {
    transport: new StreamableHTTPClientTransport(new URL('http://x/'), session === '' ? {} : { sessionId: session }),
    async callTool(_request: object, options: RequestOptions) {
      const answer = answers[seen.calls++] ?? expect.fail('more calls than answers')
      seen.options.push(options)
      if (answer instanceof Error) throw answer
      return { content: [], ...answer }
    },
    getServerCapabilities: () => (read ? { resources: {} } : {}),
    readResource: async ({ uri }: { uri: string }, options: RequestOptions) => ({
      contents: await read?.(uri, options),
    }),
    close: async () => void (seen.closed += 1),
  }
  const shared = () => new SharedClient(client as unknown as Client, new Questions('one', () => {}))
  const connection = {
    name: 'one',
    client: async () => (isReachable ? shared() : Promise.reject(new Error('refused'))),
    retire: (each: SharedClient) => each.retire(),
  } as McpConnection
  const context = contextOf('/nowhere', {
    signal: run.signal,
    report: (progress, detail) => void seen.reports.push([progress, detail]),
  })
  const outcome = await callTool({ connection, toolName: 'tool', callTimeoutMs: 300, files }, {}, context)
  return { outcome, ...seen, run }
}

const text = (value: string): Partial<CallToolResult> => ({ content: [{ type: 'text', text: value }] })
const gone = (code: SdkErrorCode) => new SdkError(code, 'secret words')
const unknownSession = (status = 404) =>
  new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, 'no session', { status })
const refused = () => new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }) })

describe('one call of an MCP tool', () => {
  it('joins the texts of an answer, and adds structured content that they do not hold', async () => {
    const { outcome } = await callWith([
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: '' },
          { type: 'text', text: 'b' },
        ],
      },
    ])
    expect(outcome).to.deep.equal({ output: 'a\nb', isError: false })
    expect((await callWith([{ structuredContent: { n: 1 } }])).outcome.output).to.equal('{"n":1}')
    expect((await callWith([{ structuredContent: { n: 1 }, ...text('a') }])).outcome.output).to.equal('a\n{"n":1}')
    const held = { structuredContent: { n: 1, list: ['x y'], none: {} }, ...text('It is 1, with x y.') }
    expect((await callWith([held])).outcome.output).to.equal('It is 1, with x y.')
    expect((await callWith([{}])).outcome).to.deep.equal({ output: '(no output)', isError: false })
    expect((await callWith([{ ...text('no'), isError: true }])).outcome).to.deep.equal({ output: 'no', isError: true })
  })

  it('D5.2: keeps an answer of 5 MB whole, of which the model reads the real end', async () => {
    const whole = `${'x'.repeat(5 * 1024 * 1024)}the end`
    expect((await callWith([text(whole)])).outcome.output === whole).to.equal(true)
  })

  it('D5.2: of structured content with very many values, a part is looked for in the text, in little time', async () => {
    const list = Array.from({ length: 100_000 }, (_, i) => i)
    const startedAt = process.cpuUsage()
    await callWith([{ structuredContent: { list }, ...text(`${'x'.repeat(1024 * 1024)} ${list.join(' ')}`) }])
    expect(process.cpuUsage(startedAt).user / 1_000).to.be.lessThan(1_000)
  })

  it('names content that is not text', async () => {
    const content = [
      { type: 'audio', data: '', mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'file:///b', blob: '' } },
    ] as CallToolResult['content']
    expect((await callWith([{ content }])).outcome.output).to.equal(
      '[audio of type audio/wav, not shown]\n[resource file:///b, not text]',
    )
  })

  it('D5.2: attaches images and PDFs, by their bytes, and names them in the text', async () => {
    const [png, pdf] = ['iVBORw0KGgoAAAAN', 'JVBERi0xLjQKJcfs']
    const content = [
      { type: 'text', text: 'see' },
      { type: 'image', data: png, mimeType: 'image/jpeg' },
      { type: 'resource', resource: { uri: 'file:///b', blob: pdf, mimeType: 'application/pdf' } },
    ] as CallToolResult['content']
    const { outcome } = await callWith([{ content }])
    expect(outcome.output).to.equal(
      'see\n[file 2: image/png, 1 KiB, attached]\n[file 3: application/pdf, 1 KiB, attached]',
    )
    expect(outcome.attachments?.map(({ mediaType, base64 }) => [mediaType, base64])).to.deep.equal([
      ['image/png', png],
      ['application/pdf', pdf],
    ])
  })

  it('D50.5: keeps the bytes that an answer embeds under names of their own; where there is no room, none, and the call has not failed', async () => {
    const kept = new Map<string, NewFile>()
    let room = 4
    const files: DeliveredFiles = {
      async add(_tenant, file) {
        if (kept.size === room) throw invalidRequest('there is no room')
        kept.set(`file_${kept.size}`, file)
        return { file_id: `file_${kept.size - 1}`, name: file.name, media_type: 'x/y', bytes: file.bytes } as FileRecord
      },
      delete: async (_tenant, id) => void kept.delete(id),
    }
    const uris = ['report://q/..%2Fa%5Cb%0A.pdf?x=/c', 'a:/%zz', 'file:///x/..', '']
    const content = uris.map((uri) => ({ type: 'resource' as const, resource: { uri, blob: 'AAEC' } }))
    const { outcome } = await callWith([{ content }], { files })
    expect([...kept.values()].map(({ name }) => name)).to.deep.equal(['a_b_.pdf', '%zz', 'file 3', 'file 4'])
    expect(outcome.artifacts?.map(({ file_id, bytes }) => [file_id, bytes])).to.deep.equal(
      [0, 1, 2, 3].map((i) => [`file_${i}`, 3]),
    )
    kept.clear()
    room = 1
    const full = (await callWith([{ content }], { files })).outcome
    expect([full.isError, full.artifacts, kept.size]).to.deep.equal([false, undefined, 0])
    expect(full.output).to.match(/\n\[The files were not kept: there is no room\]$/)
  })

  describe('D50.5: the resources that an answer links to', () => {
    const [GONE, LARGE] = [new ProtocolError(-32_602, 'no such page'), tooLarge(2 ** 24)]
    const linksTo = (...uris: string[]) => ({
      content: uris.map((uri) => ({ type: 'resource_link' as const, name: `the ${uri}.txt`, uri })),
    })
    const kept: NewFile[] = []
    const files = {
      async add(_tenant, file) {
        const { name, bytes } = file
        return { file_id: `file_${kept.push(file)}`, name, media_type: 'x/y', bytes } as FileRecord
      },
      delete: async () => {},
    } satisfies DeliveredFiles

    beforeEach(() => void kept.splice(0))

    it('are kept under the names of their links, several of one link under those of their addresses, and one that is named twice is read once', async () => {
      const texts = (...uris: string[]) => uris.map((uri) => ({ uri, text: `of ${uri}` }))
      const read = async (uri: string) => (uri === 'a:/all' ? texts('a:/x/one', 'a:/x/two') : texts(uri))
      const { outcome } = await callWith([linksTo('a:/1', 'a:/all', 'a:/1')], { files, read })
      expect(kept.map(({ name }) => name)).to.deep.equal(['1.txt', 'one', 'two'])
      expect(outcome.artifacts?.map(({ file_id: id }) => id)).to.deep.equal(['file_1', 'file_2', 'file_3'])
      expect(outcome.output).to.match(
        /^\[resource the a:\/1.txt: a:\/1\]\n.*\n.*\nDelivered "?1.txt"? \(x\/y, 7 bytes\) as file_1\.\n/,
      )
    })

    it('stay texts that say why they were not read, and the call has not failed', async () => {
      const large = Buffer.alloc(9 * 2 ** 20).toString('base64')
      const reads: Record<string, () => Promise<object[]>> = {
        fits: async () => [{ uri: 'fits', blob: large }],
        'too much': async () => [{ uri: 'too much', blob: large }],
        small: async () => [{ uri: 'small', text: 'fits' }],
        empty: async () => [{ uri: 'empty', text: '' }],
        gone: () => Promise.reject(GONE),
        large: () => Promise.reject(new ProtocolError(-32_603, '', LARGE)),
        lost: () => Promise.reject(gone(SdkErrorCode.ConnectionClosed)),
      }
      const answer = linksTo(...Object.keys(reads))
      const { outcome } = await callWith([answer], { files, read: async (uri) => reads[uri]?.() ?? [] })
      expect([outcome.isError, kept.map(({ name }) => name)]).to.deep.equal([false, ['the fits.txt', 'the small.txt']])
      const reasons = [...outcome.output.matchAll(/^\[resource the .*: (.*), not read: (.*)\]$/gm)].map(
        ([, ...said]) => said,
      )
      expect(reasons).to.deep.equal([
        ['too much', 'the answer brings too many bytes'],
        ['empty', 'it is empty'],
        ['gone', 'the server refused: no such page'],
        ['large', 'the server gave an answer above the limit of 16 MB'],
        ['lost', 'the server could not answer'],
      ])
      const none = await callWith([linksTo('a')], { files })
      expect(none.outcome.output).to.equal('[resource the a.txt: a, not read: the server offers no resources]')
    })

    it('are asked for 20 times at most, and never where nothing can be kept', async () => {
      const asked: string[] = []
      const read = async (uri: string) => [{ uri, text: asked.push(uri) > 1 ? 'kept' : '' }]
      const uris = Array.from({ length: 25 }, (_, i) => `a:/${i}`)
      const { outcome } = await callWith([linksTo(...uris)], { files, read })
      expect([kept.length, asked.length]).to.deep.equal([19, 20])
      expect(outcome.output.match(/not read: the answer brings too many files/g)).to.have.length(5)
      expect((await callWith([linksTo('a:/1')], { read })).outcome.output).to.equal('[resource the a:/1.txt: a:/1]')
      expect(asked).to.have.length(20)
    })

    it('of a server that hangs cost all together the time of one silent call, and end with the run', async () => {
      /** As the package has it: a signal that was aborted before is not noticed. */
      const hang = async (_uri: string, { signal = expect.fail() }: RequestOptions) => {
        await once(signal, 'abort')
        throw signal.reason
      }
      const { outcome } = await callWith([linksTo('a', 'b', 'c')], { files, read: hang })
      expect(outcome.output.match(/not read: the server did not answer within 300 ms/g)).to.have.length(3)
      const run = new AbortController()
      const read = (...asked: Parameters<typeof hang>) => {
        queueMicrotask(() => run.abort(new Error('the end')))
        return hang(...asked)
      }
      const ending = callWith([linksTo('a')], { files, run, read })
      expect(await ending.catch((cause: unknown) => cause)).to.have.property('message', 'the end')
    })
  })

  it('is repeated once when the server did not get it', async () => {
    for (const cause of [gone(SdkErrorCode.NotConnected), unknownSession(), unknownSession(400), refused()]) {
      const { outcome, calls, closed } = await callWith([cause, text('second')])
      expect([outcome.output, calls, closed]).to.deep.equal(['second', 2, 1])
    }
    const { outcome, calls, closed } = await callWith([unknownSession(), unknownSession()])
    expect([outcome.isError, calls, closed]).to.deep.equal([true, 2, 2])
    const without = await callWith([unknownSession(400)], { session: '' })
    expect(without.outcome.output).to.equal(
      'The MCP server one could not answer the call (HTTP 400); the call may have been carried out. Find out before you call it again.',
    )
    expect([without.calls, without.closed]).to.deep.equal([1, 0])
  })

  it('is not repeated when the server may have got it', async () => {
    const closed = await callWith([gone(SdkErrorCode.ConnectionClosed)])
    expect(closed.outcome).to.deep.equal({
      output:
        'The MCP server one ended during the call; the call may have been carried out. It is started again when it is called again.',
      isError: true,
    })
    expect([closed.calls, closed.closed]).to.deep.equal([1, 1])
    const late = await callWith([gone(SdkErrorCode.RequestTimeout)])
    expect(late.outcome.output).to.equal(
      'The MCP server one did not answer within 300 ms; the call may have been carried out.',
    )
    expect([late.calls, late.closed]).to.deep.equal([1, 0])
    const failed = new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, 'secret words', { status: 500 })
    expect((await callWith([failed])).calls).to.equal(1)
    const broken = new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) })
    expect((await callWith([broken])).calls).to.equal(1)
    const other = await callWith([new TypeError('secret words')])
    expect(other.outcome.output).to.equal(
      'The MCP server one could not answer the call; the call may have been carried out. Find out before you call it again.',
    )
    expect([other.calls, other.closed]).to.deep.equal([1, 0])
  })

  it('D5.2: that may have been carried out says so, whatever error it ends with', async () => {
    const broken = new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) })
    const causes = [
      ...[500, 502, 503, 504].map((status) => new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, 'x', { status })),
      ...Object.values(SdkErrorCode)
        .filter((code) => code !== SdkErrorCode.NotConnected)
        .map(gone),
      ...[-32_603, -32_000, 1].map((code) => new ProtocolError(code, 'failed')),
      ...[broken, new Error('x'), new SyntaxError('x')],
    ]
    for (const cause of causes) {
      const { outcome, calls } = await callWith([cause])
      expect([outcome.isError, calls], String(cause)).to.deep.equal([true, 1])
      expect(outcome.output, String(cause)).to.include('; the call may have been carried out')
    }
  })

  it('shows at most 2,000 characters of a refusal by the server', async () => {
    const { outcome } = await callWith([new ProtocolError(-32_602, 'x'.repeat(3_000))])
    expect(outcome.isError).to.equal(true)
    expect(outcome.output).to.match(/^The MCP server one refused the call: .*x{1900,2000}…$/)
  })

  it('fails when the server cannot be reached', async () => {
    const { outcome, calls } = await callWith([], { isReachable: false })
    expect(calls).to.equal(0)
    expect(outcome).to.deep.equal({
      output: 'The MCP server one cannot be reached. Try again later, or go on without it.',
      isError: true,
    })
  })

  it('reports progress as a part of the total, or as a count when there is no total', async () => {
    const { options, reports } = await callWith([text('a')])
    const [{ onprogress } = {}] = options
    onprogress?.({ progress: 1, total: 4, message: 'x'.repeat(501) })
    onprogress?.({ progress: 7 })
    expect(reports).to.deep.equal([
      [0.25, `${'x'.repeat(500)}…`],
      [7, 'progress'],
    ])
  })

  it('leaves no listener on the signal of the run', async () => {
    const { run } = await callWith([unknownSession(), text('a')])
    expect(getEventListeners(run.signal, 'abort')).to.deep.equal([])
  })

  it('throws when the run has ended', async () => {
    const run = new AbortController()
    const answer = Object.defineProperty({}, 'content', {
      enumerable: true,
      get: () => {
        run.abort(new Error('ended'))
        throw gone(SdkErrorCode.ConnectionClosed)
      },
    })
    expect(await callWith([answer], { run }).catch(String)).to.equal('Error: ended')
  })
})

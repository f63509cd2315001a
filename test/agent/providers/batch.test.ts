// Tests providers/batch: the batch endpoints of vendors, and their answers in place of live ones.

import { Readable } from 'node:stream'
import { expect } from 'chai'
import { createProvider } from '../../../services/wiring/models/create-provider.ts'
import { createAiSdkProvider } from '../../../shared/agent/providers/ai-sdk/ai-sdk.ts'
import { apiBase } from '../../../shared/agent/providers/base-url.ts'
import { AnsweredCalls, type ItemAnswers } from '../../../shared/agent/providers/batch/answered-calls.ts'
import type { BatchCall } from '../../../shared/agent/providers/batch/port.ts'
import { openVendorBatches } from '../../../shared/agent/providers/batch/vendors.ts'
import { createHttpSend } from '../../../shared/agent/providers/chat/transport.ts'
import { MODEL_LIMITS } from '../../../shared/agent/providers/limits.ts'
import type { ModelPart, ModelRequest, Send } from '../../../shared/agent/providers/port.ts'
import { createPrices } from '../../../shared/agent/providers/prices.ts'
import { LeftOut } from '../../../shared/agent/providers/unsupported-options.ts'
import { eachOf } from '../../../shared/kernel/async/batch.ts'
import { AppError } from '../../../shared/kernel/errors.ts'
import { newTraceId } from '../../../shared/kernel/ids.ts'
import type { ProviderType } from '../../../shared/kernel/provider-types.ts'
import { useOpened } from '../../support/fixture.ts'
import { type Answer, useModelServer } from '../../support/model-server/model-server.ts'
import { VendorBatchServer } from '../../support/vendor-batches.ts'

const send = createHttpSend({ connectMs: 1_000 })
const REQUEST: ModelRequest = {
  model: 'm-1',
  system: 'Be brief.',
  messages: [{ role: 'user', text: 'hello' }],
  tools: [{ name: 'look', description: 'Looks', inputSchema: { type: 'object', properties: {} } }],
  stopSequences: [],
}
const VENDORS = [
  ['openai', '/v1', undefined],
  ['openai', '/v1', 'openai-responses'], // As at OpenAI's own address.
  ['anthropic', '/v1', undefined],
  ['google', '/v1beta', undefined],
] as const
const ANSWERS: Answer[] = [
  'two words',
  [{ thinking: 'first' }, { text: 'then' }, { tool: 'look', input: { a: [1, 'x'] }, id: 'call_1' }],
  { steps: [{ text: 'cut' }], finish: 'length', usage: { input: 90, output: 7, cacheRead: 30 } },
]

describe('the batches of vendors', () => {
  const model = useModelServer()
  const vendor = useOpened(() => new VendorBatchServer(model).listen())

  for (const [type, path, dialect] of VENDORS) {
    const name = dialect ?? type
    const access = () => ({ type, baseUrl: vendor.origin + path, apiKey: 'sk-1' })
    const batches = () => openVendorBatches({ ...access(), headers: {}, send }) ?? expect.fail('no batches')
    const partsOf = async (item: ItemAnswers | undefined): Promise<ModelPart[]> => {
      const calls = item && new AnsweredCalls({ item, agent: 'main', base: apiBase(type, access().baseUrl).href })
      const live = { send, fetch: globalThis.fetch }
      const transport = calls ? calls.behind(live) : live
      const rest = {
        limits: MODEL_LIMITS,
        options: {},
        leftOut: new LeftOut(type),
        proxy: undefined,
        instance: undefined,
      }
      const opened = dialect
        ? await createAiSdkProvider({ ...access(), ...rest, dialect, fetch: transport.fetch })
        : await createProvider({ ...access(), ...transport })
      const provider = calls ? calls.priced(opened) : opened
      const parts: ModelPart[] = []
      for await (const some of provider.stream(REQUEST, new AbortController().signal)) parts.push(...eachOf(some))
      return parts
    }
    const rehearse = async (traceId: string, answers: ItemAnswers['answers']): Promise<BatchCall[]> => {
      const missing: BatchCall[] = []
      const parts = await partsOf({ traceId, answers, missing })
      expect(parts.at(-1)?.type).to.equal(missing.length > 0 ? 'failure' : 'finish')
      return missing
    }
    /** The text of adjacent deltas as one part. Ids that the vendor makes up differ from answer to answer. */
    const joined = (parts: readonly ModelPart[]): unknown[] =>
      parts.reduce<{ type: string; text?: string }[]>((all, part) => {
        const last = all.at(-1)
        if ('text' in part && last?.type === part.type) last.text = `${last.text}${part.text}`
        else all.push({ ...part, ...('meta' in part && { meta: undefined }) })
        return all
      }, [])

    it(`D55.6e: a call that a batch of ${name} has answered has the parts of a live one, at half its price`, async () => {
      for (const answer of ANSWERS) {
        model.answer(answer)
        const live = await partsOf(undefined)
        model.answer(answer)
        const traceId = newTraceId()
        const calls = await rehearse(traceId, new Map())
        expect(calls.map(({ id }) => /^[0-9a-f]{32}-[0-9a-f]{8}-0$/.test(id))).to.deep.equal([true])
        const id = await batches().submit(calls, 'mark-1')
        const answers = await batches().read(id)
        if (!(answers instanceof Map)) return expect.fail('it goes on')
        expect(await rehearse(traceId, answers)).to.deep.equal([])
        const parts = await partsOf({ traceId, answers })
        const finish = parts.at(-1)
        if (finish?.type !== 'finish' || !finish.usage) return expect.fail('no counts')
        const { priceFactor, ...usage } = finish.usage
        expect(priceFactor).to.equal(0.5)
        const whole = live.at(-1)
        if (whole?.type !== 'finish' || !whole.usage) return expect.fail('no counts')
        const priceOf = createPrices(new Map([['m-1', { input: 2, output: 4 }]]))
        const counted = { ...usage, ...{ input: 100, output: 10 } }
        expect(priceOf({ type }, 'm-1', { ...counted, priceFactor: 0.5 })).to.equal(
          (priceOf({ type }, 'm-1', counted) ?? 0) / 2,
        )
        // The same request is longer by what asks for a stream, which the mock counts.
        const alike = (part: ModelPart) =>
          part.type === 'finish' ? { ...part, usage: { ...usage, input: 0, output: 0 } } : part
        expect(joined([...parts.slice(0, -1), alike(finish)])).to.deep.equal(
          joined([...live.slice(0, -1), alike(whole)]),
        )
      }
      expect(vendor.liveCalls).to.be.above(0)
      const before = vendor.liveCalls
      model.answer('live')
      expect((await partsOf({ traceId: newTraceId(), answers: new Map() })).at(-1)).to.not.have.nested.property(
        'usage.priceFactor',
      )
      expect(vendor.liveCalls).to.equal(before + 1)
    })

    if (dialect) continue
    it(`D55.6d: a batch of ${type} is found by its mark, or by its calls when it has ended, is read then, and leaves out what was cancelled`, async () => {
      vendor.isHeld = true
      const calls = await rehearse(newTraceId(), new Map())
      const id = await batches().submit(calls, `mark-${type}`)
      vendor.isHeld = false
      expect(await batches().read(id)).to.equal(undefined)
      const sent = { mark: `mark-${type}`, count: 1, first: calls[0]?.id ?? '', at_ms: Date.now() }
      const isNamedAtItsEnd = type === 'anthropic'
      expect(await batches().find(sent)).to.deep.equal(isNamedAtItsEnd ? 'unsure' : { id })
      await batches().cancel(id)
      expect(await batches().find(sent)).to.deep.equal({ id })
      expect(await batches().find({ ...sent, mark: 'another', first: 'another-0' })).to.equal(undefined)
      expect(await batches().read(id)).to.deep.equal(new Map())
      if (!isNamedAtItsEnd) return
      for (const other of [{ count: 2 }, { at_ms: sent.at_ms + 3_600_000 }])
        expect(await batches().find({ ...sent, ...other }), 'another size, and another time').to.equal(undefined)
    })
  }

  /** The endpoints of a vendor that answers as a test says, by method and path: with a text, or a status alone. */
  const answering = (type: ProviderType, answers: Record<string, string | number>) => {
    const sendTo: Send = async (url, { method }) => {
      const answer = answers[`${method} ${new URL(url).pathname}`] ?? 404
      const [status, words] = typeof answer === 'number' ? [answer, ''] : [200, answer]
      return { status, headers: {}, body: Readable.from([Buffer.from(words)]) }
    }
    const access = { type, baseUrl: 'http://vendor.test/v1', apiKey: 'sk-1', headers: {}, send: sendTo }
    return openVendorBatches(access) ?? expect.fail('no batches')
  }
  const line = (custom_id: string, status_code = 200) =>
    JSON.stringify({ custom_id, response: { status_code, body: { of: custom_id } } })
  const outcomeOf = (reading: Promise<unknown>) =>
    reading.then(
      (found) => (found instanceof Map ? [...found.keys()].toSorted() : found),
      (cause: unknown) => (cause instanceof AppError ? cause.kind : 'failed'),
    )

  it('D55.6b: an answer that cannot be read, is there twice, or of no call of ours harms no other, and what is no end is none', async () => {
    const lines = [line('b'), '{"custom_id": "c", "respon', '', '7', line('a'), line('a'), line('stranger')].join('\n')
    const unanswered = JSON.stringify({ custom_id: 'd', response: null, error: { code: 'batch_expired' } })
    const noRoom = { status: 'failed', errors: { data: [{ code: 'token_limit_exceeded' }] } }
    for (const [batch, files, outcome] of [
      [{ status: 'completed', output_file_id: 'o' }, { o: `${lines}\n` }, ['a', 'b', 'stranger']],
      [{ status: 'completed', output_file_id: 'o' }, { o: `${line('a')}\n${line('b').slice(0, -9)}` }, 'failed'],
      [{ status: 'completed', output_file_id: 'o' }, {}, 'not_found'],
      [{ status: 'completed', output_file_id: 'o' }, { o: 429 }, 'rate_limit'],
      [{ status: 'expired', output_file_id: 'o', error_file_id: 'e' }, { o: line('a'), e: unanswered }, ['a']],
      [{ status: 'failed', errors: { data: [{ code: 'invalid_json_line' }] } }, {}, []],
      [noRoom, {}, 'refused'],
      [{ status: 'in_progress' }, {}, undefined],
      [{ status: 'a state of tomorrow' }, {}, undefined],
      [{}, {}, undefined],
    ] as const) {
      const contents = Object.entries(files).map(([name, content]) => [`GET /v1/files/${name}/content`, content])
      const vendorOf = answering('openai', {
        'GET /v1/batches/1': JSON.stringify(batch),
        ...Object.fromEntries(contents),
      })
      expect(await outcomeOf(vendorOf.read('1')), JSON.stringify([batch, files])).to.deep.equal(outcome)
    }
    for (const [status, kind] of [
      [500, 'unavailable'],
      [429, 'rate_limit'],
      [404, 'not_found'],
      [401, 'upstream'],
      [400, 'invalid_request'],
    ] as const)
      for (const [type, path] of [
        ['openai', '/v1/files'],
        ['anthropic', '/v1/messages/batches'],
      ] as const)
        expect(await outcomeOf(answering(type, { [`POST ${path}`]: status }).submit([], 'mark'))).to.equal(kind)
    expect(await outcomeOf(answering('google', { 'GET /v1/batches/1': '{}' }).read('batches/1'))).to.equal(undefined)
  })
})

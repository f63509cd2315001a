import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { ModelServer } from './model-server/model-server.ts'

type Json = Record<string, unknown>
type Line = { id: string; path: string; body: Json }
type Answered = { id: string; status: number; body: Json }
type Kept = {
  id: string
  mark: string
  at: string
  lines: Line[]
  answers: Answered[] | undefined
  isCancelled: boolean
}

/**
 * The batch endpoints of OpenAI, Anthropic and Google on their wire formats, in front of a model server that answers each call of a batch as it answers it live. Other
 * requests go through to that server.
 */
export class VendorBatchServer {
  /** Every batch that was submitted, in their order. */
  readonly batches: Kept[] = []
  /** Live calls of models. */
  liveCalls = 0
  /** While it is set, batches stay at work. */
  isHeld = false
  /** The next submissions are kept, and their answers are lost. */
  loseAnswers = 0
  readonly #files = new Map<string, string>()
  readonly #model: Pick<ModelServer, 'url'>
  readonly #http = createServer((req, res) => {
    this.#answer(req).then(
      ({ status, type, body }) => res.writeHead(status, { 'content-type': type }).end(body),
      () => res.destroy(),
    )
  })

  constructor(model: Pick<ModelServer, 'url'>) {
    this.#model = model
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`
  }

  /** How often each call was in a batch. */
  get submitted(): Map<string, number> {
    const counts = new Map<string, number>()
    for (const { id } of this.batches.flatMap(({ lines }) => lines)) counts.set(id, (counts.get(id) ?? 0) + 1)
    return counts
  }

  async listen(): Promise<this> {
    this.#http.listen(0, '127.0.0.1')
    await once(this.#http, 'listening')
    return this
  }

  async close(): Promise<void> {
    this.#http.closeAllConnections()
    this.#http.close()
  }

  async #answer(req: IncomingMessage): Promise<{ status: number; type: string; body: string | Buffer }> {
    const { method = '', url = '' } = req
    const { pathname } = new URL(url, 'http://vendor')
    const bytes = await buffer(req)
    const route = `${method} ${pathname}`
    const json = (body: unknown) => ({ status: 200, type: 'application/json', body: JSON.stringify(body) })
    const lines = (all: Json[]) => ({
      ...json(''),
      type: 'application/jsonl',
      body: all.map((each) => `${JSON.stringify(each)}\n`).join(''),
    })
    for (const [pattern, handle] of this.#routes({ req, bytes, json, lines })) {
      const found = pattern.exec(route)
      if (found) return handle(found[1] ?? '')
    }
    this.liveCalls++
    return this.#forward(method, url, bytes)
  }

  #routes({ req, bytes, json, lines }: Handling): [RegExp, (id: string) => Reply | Promise<Reply>][] {
    const body = () => JSON.parse(bytes.toString()) as Json
    const cancelled = (id: string) => {
      const kept = this.#kept(id)
      kept.isCancelled = true
      kept.answers ??= []
    }
    return [
      [/^POST \/v1\/files$/, () => this.#addFile(req, bytes).then(json)],
      [/^GET \/v1\/files\/(\S+)\/content$/, (id) => lines(openaiLines(this.#kept(id.replace('file-out-', ''))))],
      [/^POST \/v1\/batches$/, () => this.#ofOpenai(body()).then(json)],
      [/^GET \/v1\/batches$/, () => json({ data: this.batches.toReversed().map(openaiBatch), has_more: false })],
      [/^GET \/v1\/batches\/([^/]+)$/, (id) => json(openaiBatch(this.#kept(id)))],
      [/^POST \/v1\/batches\/([^/]+)\/cancel$/, (id) => (cancelled(id), json(openaiBatch(this.#kept(id))))],
      [/^POST \/v1\/messages\/batches$/, () => this.#ofAnthropic(body()).then(json)],
      [
        /^GET \/v1\/messages\/batches$/,
        () => json({ data: this.batches.toReversed().map(anthropicBatch), has_more: false }),
      ],
      [/^GET \/v1\/messages\/batches\/([^/]+)$/, (id) => json(anthropicBatch(this.#kept(id)))],
      [/^GET \/v1\/messages\/batches\/([^/]+)\/results$/, (id) => lines(anthropicLines(this.#kept(id)))],
      [
        /^POST \/v1\/messages\/batches\/([^/]+)\/cancel$/,
        (id) => (cancelled(id), json(anthropicBatch(this.#kept(id)))),
      ],
      [/^POST \/v1beta\/models\/(\S+):batchGenerateContent$/, (model) => this.#ofGoogle(model, body()).then(json)],
      [/^GET \/v1beta\/batches$/, () => json({ operations: this.batches.toReversed().map(googleBatch) })],
      [/^GET \/v1beta\/(batches\/[^/:]+)$/, (name) => json(googleBatch(this.#kept(name)))],
      [/^POST \/v1beta\/(batches\/[^/:]+):cancel$/, (name) => (cancelled(name), json({}))],
    ]
  }

  async #addFile(req: IncomingMessage, bytes: Buffer): Promise<Json> {
    const type = req.headers['content-type'] ?? ''
    const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
    if (form.get('purpose') !== 'batch') throw new Error('a file of another purpose')
    const id = `file-${this.#files.size}`
    this.#files.set(id, await (form.get('file') as File).text())
    return { id, object: 'file', purpose: 'batch' }
  }

  async #ofOpenai({ input_file_id, endpoint, completion_window, metadata }: Json): Promise<Json> {
    const text = this.#files.get(String(input_file_id)) ?? ''
    const lines = text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Json)
    const isRight = lines.every(
      ({ method, url, body }) => method === 'POST' && url === endpoint && !('stream' in (body as Json)),
    )
    if (!isRight || completion_window !== '24h') throw new Error('not as OpenAI takes it')
    const mark = String((metadata as Json)['agent_engine'])
    const own = lines.map(({ custom_id, body }) => ({
      id: String(custom_id),
      path: String(endpoint),
      body: body as Json,
    }))
    return openaiBatch(await this.#keep(`batch_${this.batches.length}`, mark, own))
  }

  async #ofAnthropic({ requests }: Json): Promise<Json> {
    const lines = (requests as Json[]).map(({ custom_id, params }) => {
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(custom_id)) || 'stream' in (params as Json))
        throw new Error('not as Anthropic takes it')
      return { id: String(custom_id), path: '/v1/messages', body: params as Json }
    })
    return anthropicBatch(await this.#keep(`msgbatch_${this.batches.length}`, '', lines))
  }

  async #ofGoogle(model: string, { batch }: Json): Promise<Json> {
    const { display_name, input_config } = batch as {
      display_name: string
      input_config: { requests: { requests: Json[] } }
    }
    const path = `/v1beta/models/${model}:generateContent`
    const lines = input_config.requests.requests.map(({ request, metadata }) => {
      return { id: String((metadata as Json)['key']), path, body: request as Json }
    })
    return googleBatch(await this.#keep(`batches/${this.batches.length}`, display_name, lines))
  }

  /** Answers the calls, at once or when it is not held any more. */
  async #keep(id: string, mark: string, lines: Line[]): Promise<Kept> {
    const kept: Kept = { id, mark, at: new Date().toISOString(), lines, answers: undefined, isCancelled: false }
    this.batches.push(kept)
    if (!this.isHeld) await this.release(kept)
    if (this.loseAnswers-- > 0) throw new Error('the answer is lost')
    return kept
  }

  async release(kept: Kept): Promise<void> {
    const ask = async ({ id, path, body }: Line): Promise<Answered> => {
      const { status, body: answer } = await this.#forward('POST', path, Buffer.from(JSON.stringify(body)))
      return { id, status, body: JSON.parse(answer.toString()) as Json }
    }
    const answers = await Promise.all(kept.lines.map(ask))
    kept.answers ??= answers
  }

  async #forward(method: string, path: string, bytes: Buffer): Promise<Reply & { body: Buffer }> {
    const headers = { 'content-type': 'application/json' }
    const sent = method === 'GET' ? {} : { body: new Uint8Array(bytes) }
    const response = await fetch(new URL(path, this.#model.url), { method, headers, ...sent })
    const type = response.headers.get('content-type') ?? ''
    return { status: response.status, type, body: Buffer.from(await response.arrayBuffer()) }
  }

  #kept(id: string): Kept {
    return this.batches.find((each) => each.id === id) ?? fail()
  }
}

type Reply = { status: number; type: string; body: string | Buffer }
type Handling = { req: IncomingMessage; bytes: Buffer; json(body: unknown): Reply; lines(all: Json[]): Reply }

const fail = (): never => {
  throw new Error('there is no such batch')
}

const openaiBatch = ({ id, mark, answers, isCancelled }: Kept): Json => ({
  ...{ id, object: 'batch', metadata: { agent_engine: mark } },
  status: answers === undefined ? 'in_progress' : isCancelled ? 'cancelled' : 'completed',
  ...(answers && { output_file_id: `file-out-${id}`, error_file_id: null }),
})

const openaiLines = ({ answers = [] }: Kept): Json[] =>
  answers.map(({ id, status, body }) => ({
    ...{ id: `batch_req_${id}`, custom_id: id, error: null },
    response: { status_code: status, request_id: 'r', body },
  }))

const anthropicBatch = ({ id, at, lines, answers }: Kept): Json => ({
  ...{ id, type: 'message_batch', created_at: at, processing_status: answers ? 'ended' : 'in_progress' },
  request_counts: { [answers ? 'succeeded' : 'processing']: lines.length, errored: 0, canceled: 0, expired: 0 },
  results_url: answers ? `/v1/messages/batches/${id}/results` : null,
})

const anthropicLines = ({ lines, answers = [] }: Kept): Json[] =>
  lines.map(({ id }) => {
    const { status, body } = answers.find((each) => each.id === id) ?? { status: 0, body: {} }
    if (status === 0) return { custom_id: id, result: { type: 'canceled' } }
    const result = status === 200 ? { type: 'succeeded', message: body } : { type: 'errored', error: body }
    return { custom_id: id, result }
  })

const googleBatch = ({ id, mark, answers }: Kept): Json => ({
  name: id,
  metadata: { displayName: mark, state: answers ? 'BATCH_STATE_SUCCEEDED' : 'BATCH_STATE_RUNNING' },
  ...(answers && {
    done: true,
    response: {
      inlinedResponses: {
        inlinedResponses: answers.map(({ id: key, status, body }) =>
          status === 200 ? { metadata: { key }, response: body } : { metadata: { key }, error: { code: 3, ...body } },
        ),
      },
    },
  }),
})

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Request, RequestHandler, Response } from 'express'
import type { Files } from '../../../../shared/agent/files/files.ts'
import { invalidRequest } from '../../../../shared/kernel/errors.ts'
import { frameJson } from '../../../../shared/kernel/json.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import type { ApiType } from '../../../../shared/platform/api/api-type.ts'
import type { Bodies } from '../../../../shared/platform/api/bodies.ts'
import { BATCH_STATUSES, type BatchRequest, type BatchStatus } from '../../../../shared/work/flows/batch/batch.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { accept, type ReadBody } from '../../bodies/body.ts'
import { decodeLines, LINES_SCHEMA, MAX_ITEMS } from '../../bodies/lines.ts'
import { subjectOf, tenantOf } from '../../middleware/auth.ts'
import {
  BATCH,
  FLOW,
  idempotencyKeyOf,
  oneOf,
  pageRequestOf,
  pathId,
  queryNumber,
  queryValue,
  type ValueForm,
} from '../../params.ts'
import { requires } from '../requires.ts'
import type { FlowRunSurface } from './flow-runs.ts'
import type { FlowSurface } from './flows.ts'

type Deps = ReadDeps & {
  flows: FlowSurface | undefined
  /** Wraps a handler that begins new work. */
  admit(handle: RequestHandler): RequestHandler
}

type ReadDeps = { readBody: ReadBody; bodies: Bodies; files: { files: Pick<Files, 'get' | 'read'> } | undefined }
type Batches = FlowRunSurface['batches']
type Result = ApiType<'FlowBatchResult'>

const STATUS = oneOf(BATCH_STATUSES)
const FLOW_NAME: ValueForm = { pattern: FLOW.pattern, wanted: 'the name of a flow' }

/** Runs one flow for many inputs, without a client that waits (D55.1). Without a master key all paths answer 503. */
export function batchRoutes({ flows, admit, ...reading }: Deps): RouteTable {
  const withBatches = (create: (batches: Batches) => RequestHandler): RequestHandler =>
    requires('flows', flows)(({ execution }) => requires('config', execution)(({ batches }) => create(batches)))
  const ofBatch = (answer: (batches: Batches, of: Named) => Promise<void>) =>
    withBatches((batches) => (req, res) => answer(batches, { req, res, id: pathId(req, 'id', BATCH) }))
  return {
    '/flows/:name/batch': { post: admit(withBatches(start(createReadBatch(reading)))) },
    '/batches': {
      get: withBatches((batches) => async (req, res) => {
        const status = queryValue(req, 'status', STATUS) as BatchStatus | undefined
        const query = { ...pageRequestOf(req), flow: queryValue(req, 'flow', FLOW_NAME), status }
        res.json(await batches.list(tenantOf(res), query))
      }),
    },
    '/batches/:id': {
      get: ofBatch(async (batches, { res, id }) => void res.json(await batches.get(tenantOf(res), id))),
    },
    '/batches/:id/results': { get: ofBatch(sendResults) },
    '/batches/:id/cancel': {
      post: ofBatch(async (batches, { res, id }) => void res.json(await batches.cancel(tenantOf(res), id))),
    },
  }
}

type Named = { req: Request; res: Response; id: string }

const start =
  (readBatch: ReturnType<typeof createReadBatch>) =>
  (batches: Batches): RequestHandler =>
  async (req, res) => {
    const name = pathId(req, 'name', FLOW)
    const caller = { subject: subjectOf(res), idempotencyKey: idempotencyKeyOf(req) }
    const request = await readBatch(req, res)
    const { batch, isReplayed } = await batches.start(tenantOf(res), name, { request, ...caller })
    if (isReplayed) res.setHeader('Idempotency-Replayed', 'true')
    res.status(202).json(batch)
  }

/** Sends all results as JSON lines, or one page of them to a client that asks for JSON. */
async function sendResults(batches: Batches, { req, res, id }: Named): Promise<void> {
  const { limit } = pageRequestOf(req)
  const results = await batches.results(tenantOf(res), id, queryNumber(req, 'after', [0, MAX_ITEMS]))
  res.vary('Accept')
  if (req.accepts(['application/jsonl', 'application/json']) === 'application/json')
    return void res.json(await pageOf(results, limit))
  res.setHeader('Content-Type', 'application/jsonl')
  if (req.method === 'HEAD') return void res.end()
  await pipeline(Readable.from(linesOf(results), { objectMode: false }), res).catch((cause: unknown) => {
    if (!res.headersSent) throw cause // If headers were sent the connection is closed, so that no client takes a part for the whole.
  })
}

/** Outputs may be long: a page ends with the output that reaches this size. */
const PAGE_CHARS = 4 * 1024 * 1024

async function pageOf(results: AsyncIterable<Result>, limit: number): Promise<ApiType<'FlowBatchResultPage'>> {
  const page: Result[] = []
  let chars = 0
  for await (const result of results) {
    if (page.length === limit || chars > PAGE_CHARS) return { results: page, next_after: page.at(-1)?.item ?? null }
    page.push(result)
    chars += JSON.stringify(result.output).length
  }
  return { results: page, next_after: null }
}

/** Some clients end a line at any of Unicode's line separators, so these are escaped within a line. */
async function* linesOf(results: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const result of results) yield `${frameJson(result)}\n`
}

const MAX_FILE_BYTES = 32 * 1024 * 1024

/** Reads the request of a batch, whose items may be in a stored file. Throws as `ReadBody` does, and `not_found` for an unknown file. */
const createReadBatch =
  ({ readBody, bodies, files }: ReadDeps) =>
  async (req: Request, res: Response): Promise<BatchRequest> => {
    const { file_id: fileId, items, ...rest } = await readBody(req, res, LINES_SCHEMA)
    if ((items === undefined) === (fileId === undefined))
      throw invalidRequest('send either items or file_id', { param: fileId === undefined ? '/items' : '/file_id' })
    if (items !== undefined) return { items, ...rest }
    const bytes = await readLines(files?.files, tenantOf(res), fileId ?? '')
    return accept(res, await decodeLines(bodies, bytes, rest)) as ApiType<typeof LINES_SCHEMA> as BatchRequest
  }

async function readLines(
  files: Pick<Files, 'get' | 'read'> | undefined,
  tenant: TenantId,
  fileId: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const { bytes } = (await files?.get(tenant, fileId)) ?? { bytes: 0 }
  if (bytes > MAX_FILE_BYTES)
    throw invalidRequest(`the file has more than ${MAX_FILE_BYTES} bytes: divide it among several batches`, {
      ...{ status: 413, param: '/file_id' },
    })
  const read = await files?.read(tenant, fileId)
  if (read) return new Uint8Array(read) // A copy with its own buffer, which can be transferred to a thread.
  throw invalidRequest('the file was deleted meanwhile: upload it again', { param: '/file_id' })
}

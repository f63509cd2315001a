import { basename, posix } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Request, RequestHandler, Response } from 'express'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { RunSummary } from '../../../shared/cluster/commands/runs.ts'
import type { FilePiece, FolderFile } from '../../../shared/cluster/commands/sessions.ts'
import { encodeCursor, startOfPage } from '../../../shared/kernel/cursor.ts'
import { hasKind, invalidRequest, notFound } from '../../../shared/kernel/errors.ts'
import { planRunId } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { ApiType } from '../../../shared/platform/api/api-type.ts'
import type { RouteTable } from '../../http/routes.ts'
import { tenantOf } from '../middleware/auth.ts'
import { pageRequestOf, pathId, queryValue, RUN, SESSION } from '../params.ts'
import { type Work, worksOf } from './folder-works.ts'

type Listed = ApiType<'WorkspaceFile'>
type Deps = { broker: Pick<Broker, 'getRun' | 'listRuns' | 'listFiles' | 'readFile'> }
/** The folder of a session, a plan, or a run that has its own. With `run` only the files that this run has changed are listed. */
type Folder = { scopeId: string; run?: RunSummary }

/** Lists and sends what runs have written into their folders, and those of their sessions and plans (D50). */
export function folderFileRoutes({ broker }: Deps): RouteTable {
  const ofSession = async (req: Request): Promise<Folder> => ({ scopeId: pathId(req, 'id', SESSION) })
  const ofRun = (req: Request, res: Response) => folderOfRun(broker, tenantOf(res), pathId(req, 'run_id', RUN))
  const list =
    (folderOf: typeof ofRun): RequestHandler =>
    async (req, res) =>
      void res.json(await listFiles(broker, tenantOf(res), { ...pageRequestOf(req), ...(await folderOf(req, res)) }))
  const send =
    (folderOf: typeof ofRun): RequestHandler =>
    async (req, res) =>
      sendFile(broker, req, { res, ...(await folderOf(req, res)) })
  return {
    '/sessions/:id/files': { get: list(ofSession) },
    '/sessions/:id/files/content': { get: send(ofSession) },
    '/runs/:run_id/files': { get: list(ofRun) },
    '/runs/:run_id/files/content': { get: send(ofRun) },
  }
}

async function folderOfRun(broker: Deps['broker'], tenant: TenantId, runId: string): Promise<Folder> {
  const run = await broker.getRun(tenant, runId)
  const { plan_id: planId, session_id: sessionId = runId } = run
  return { scopeId: planId === undefined ? sessionId : planRunId(planId), run }
}

/** Resolves as `read` does. If the run never had a folder, or no longer has it, the error says so. */
async function inFolder<T>({ run }: Folder, read: Promise<T>): Promise<T> {
  try {
    return await read
  } catch (cause) {
    if (!run || run.session_id !== undefined || !hasKind(cause, 'not_found')) throw cause
    throw notFound(
      `the folder of ${run.run_id} is gone or has no such file. That of a plan is removed at its end, and that of another run soon behind it: let the run deliver what is to last, by its tool Deliver, and see the artifacts of GET /runs/${run.run_id}`,
    )
  }
}

type Listing = Folder & { limit: number; cursor?: string }

async function listFiles(
  broker: Deps['broker'],
  tenant: TenantId,
  { limit, cursor, ...folder }: Listing,
): Promise<ApiType<'ListWorkspaceFilesResponse'>> {
  const [after] = startOfPage(cursor, ['string']) ?? []
  const { scopeId, run } = folder
  const read = broker.listFiles(tenant, scopeId, { limit, ...(after !== undefined && { after }) })
  const page = await inFolder(folder, read)
  const works = page.files.length === 0 ? [] : await worksOf(broker, tenant, { scopeId, run })
  const files = page.files.map((file) => listed(file, works)).filter(({ changed_by }) => !run || changed_by)
  const last = page.files.at(-1)
  return { files, next_cursor: page.has_more && last ? encodeCursor([last.path]) : null }
}

function listed({ modified_ms: at, ...file }: FolderFile, works: readonly Work[]): Listed {
  const isMeant = ({ fromMs, toMs, path }: Work) =>
    fromMs <= at && at <= toMs && (path === undefined || posix.normalize(path) === file.path)
  const meant = works.filter(isMeant)
  const work = meant.find(({ path }) => path !== undefined) ?? meant[0]
  return { ...file, modified_at: new Date(at).toISOString(), changed_by: work?.by ?? null }
}

const PATH = { pattern: /^[^]{1,512}$/u, wanted: 'the path of a file, of at most 512 characters' }

type Sent = Folder & { res: Response }

/** A browser always saves the bytes and never shows them. */
async function sendFile({ readFile }: Deps['broker'], req: Request, { res, ...folder }: Sent): Promise<void> {
  const path = queryValue(req, 'path', PATH)
  if (path === undefined)
    throw invalidRequest('path is required: that of a file as the list has it', { param: '/path' })
  const read = (from: number) => inFolder(folder, readFile(tenantOf(res), folder.scopeId, { path, from }))
  const first = await read(0)
  res.attachment(basename(path))
  res.setHeader('Content-Type', 'application/octet-stream')
  res.setHeader('Content-Length', first.bytes)
  res.setHeader('Cache-Control', 'private, no-cache')
  if (req.method === 'HEAD') return void res.end()
  await pipeline(Readable.from(piecesOf(first, read), { objectMode: false }), res).catch((cause: unknown) => {
    if (!res.headersSent) throw cause // If headers were sent the connection is closed, so that no client takes a part for the whole file.
  })
}

async function* piecesOf(first: FilePiece, read: (from: number) => Promise<FilePiece>): AsyncGenerator<Buffer> {
  let sent = 0
  for (let piece = first; sent < first.bytes; piece = await read(sent)) {
    const part = Buffer.from(piece.base64, 'base64')
    const isSame = piece.bytes === first.bytes && piece.modified_ms === first.modified_ms && part.length > 0
    if (!isSame) throw new Error('the file was changed while it was sent')
    yield part
    sent += part.length
    if (sent >= first.bytes) return
  }
}

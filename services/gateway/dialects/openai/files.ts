import type { FileRecord } from '../../../../shared/agent/files/records.ts'
import type { RouteTable } from '../../../http/routes.ts'
import { tenantOf } from '../../middleware/auth.ts'
import { pathId, queryNumber, queryValue } from '../../params.ts'
import { FILE, keepUpload, sendContent } from '../../routes/files.ts'
import { requires } from '../../routes/requires.ts'
import type { DialectDeps } from '../dialect.ts'

/** OpenAI allows this limit; a page has at most `MAX_LISTED` files here. */
const MAX_LIMIT = 10_000
const MAX_LISTED = 500

/** OpenAI's Files: the same files as at `/files`, by the same ids. `purpose` has no effect. */
export function openaiFileRoutes({ files: surface }: Pick<DialectDeps, 'files'>): RouteTable {
  const withFiles = requires('files', surface)
  return {
    '/openai/v1/files': {
      post: withFiles((present) => async (req, res) => {
        res.json(shown(await keepUpload(present, { req, res })))
      }),
      get: withFiles(({ files }) => async (req, res) => {
        const limit = Math.min(queryNumber(req, 'limit', [1, MAX_LIMIT]) ?? MAX_LIMIT, MAX_LISTED)
        const afterId = queryValue(req, 'after', FILE_ID)
        const last = afterId === undefined ? undefined : await files.get(tenantOf(res), afterId)
        const after = last && ([last.created_at, last.file_id] as const)
        const found = await files.page(tenantOf(res), { after, limit: limit + 1 })
        const data = found.slice(0, limit).map(shown)
        const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
        res.json({ object: 'list', data, ...ends, has_more: found.length > limit })
      }),
    },
    '/openai/v1/files/:file_id': {
      get: withFiles(({ files }) => async (req, res) => {
        res.json(shown(await files.get(tenantOf(res), pathId(req, 'file_id', FILE))))
      }),
      delete: withFiles(({ files }) => async (req, res) => {
        const id = pathId(req, 'file_id', FILE)
        await files.delete(tenantOf(res), id)
        res.json({ id, object: 'file', deleted: true })
      }),
    },
    '/openai/v1/files/:file_id/content': {
      get: withFiles(
        ({ files }) =>
          (req, res) =>
            sendContent(files, { req, res, id: pathId(req, 'file_id', FILE) }),
      ),
    },
  }
}

const FILE_ID = { pattern: FILE.pattern, wanted: 'the id of a file' }

const secondsOf = (time: string): number => Math.floor(Date.parse(time) / 1000)

const shown = ({ file_id: id, name: filename, bytes, created_at, expires_at }: FileRecord) => ({
  ...{ id, object: 'file', bytes, filename, purpose: 'user_data', status: 'processed' },
  ...{ created_at: secondsOf(created_at), expires_at: secondsOf(expires_at) },
})

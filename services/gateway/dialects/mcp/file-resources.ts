import { isUtf8 } from 'node:buffer'
import { buffer } from 'node:stream/consumers'
import {
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type ResourceLink,
  ResourceNotFoundError,
} from '@modelcontextprotocol/server'
import type { FileRecord } from '../../../../shared/agent/files/records.ts'
import { fileKindOf } from '../../../../shared/kernel/attachment.ts'
import { hasKind } from '../../../../shared/kernel/errors.ts'
import type { Artifact } from '../../../../shared/kernel/events.ts'
import type { TenantId } from '../../../../shared/kernel/tenant.ts'
import { FILE, type FileSurface } from '../../routes/files.ts'

/** The address of a file of the tenant as a resource, before its id. */
const FILES = 'agent-engine://files/'
export const FILE_TEMPLATE = {
  uriTemplate: `${FILES}{file_id}`,
  name: 'file',
  description: 'A file that a call has delivered.',
}

/** The largest file that a client gets in one message: the message is held in memory, in base64. */
const MAX_BYTES = 10 * 1024 * 1024

/** A delivered file in the result of a call. */
export const linkTo = ({ file_id, name, title, media_type: mimeType, bytes: size }: Artifact): ResourceLink => ({
  ...{ type: 'resource_link', uri: `${FILES}${file_id}`, name, mimeType, size },
  ...(title !== undefined && { title }),
})

/** Reads a file of the tenant. A file of another tenant is answered like an unknown one. */
export async function readFile(
  files: FileSurface['files'],
  tenant: TenantId,
  uri: string,
): Promise<ReadResourceResult> {
  const record = await recordOf(files, tenant, uri)
  const { file_id: id, media_type: mimeType, bytes: size } = record
  if (size > MAX_BYTES) throw new ProtocolError(ProtocolErrorCode.InvalidParams, tooLarge(record))
  const bytes = await buffer((await files.open(tenant, id)).body)
  const isText = fileKindOf(mimeType) === 'text' && isUtf8(bytes)
  return {
    contents: [{ uri, mimeType, ...(isText ? { text: bytes.toString() } : { blob: bytes.toString('base64') }) }],
  }
}

const tooLarge = ({ file_id, bytes }: FileRecord) =>
  `the file has ${bytes} bytes, and a resource at most ${MAX_BYTES}: get it with GET /files/${file_id}/content`

async function recordOf(files: FileSurface['files'], tenant: TenantId, uri: string): Promise<FileRecord> {
  const id = uri.startsWith(FILES) ? uri.slice(FILES.length) : ''
  if (!FILE.pattern.test(id)) throw new ResourceNotFoundError(uri.slice(0, 200))
  return files.get(tenant, id).catch((cause: unknown) => {
    throw hasKind(cause, 'not_found') ? new ResourceNotFoundError(uri) : cause
  })
}

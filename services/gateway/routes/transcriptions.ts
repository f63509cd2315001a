import { once } from 'node:events'
import type { Request, RequestHandler, Response } from 'express'
import { type Backend, transcribe, type Upload } from '../../../shared/agent/transcription/transcribe.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { Egress, EgressResponse } from '../../../shared/platform/net/port.ts'
import type { StoredInstance } from '../../../shared/tenancy/tenant-config/config.ts'
import { type CredentialReader, resolveInstance } from '../../../shared/tenancy/tenant-config/credentials.ts'
import type { LiveConfigs } from '../../../shared/tenancy/tenant-config/live-configs.ts'
import type { ReceiveUpload } from '../bodies/upload.ts'
import { tenantOf } from '../middleware/auth.ts'
import { requires } from './requires.ts'

export type TranscriptionDeps = {
  configs: LiveConfigs
  credentials: CredentialReader
  /** Throws `rate_limit` or `unavailable` when the tenant's budget allows no model call. */
  assertBudget(tenant: TenantId): Promise<void>
  receive: ReceiveUpload
  egress: Pick<Egress, 'request'>
}

/** A long recording is transcribed for minutes before the first byte of the answer. */
const TIMEOUT_MS = 1_800_000

/**
 * `POST /audio/transcriptions` (D9): the upload goes to disk, and from there to the backend of the named instance; the
 * backend's answer goes to the client.
 */
export const transcribeUpload = (deps: TranscriptionDeps | undefined): RequestHandler =>
  requires('config', deps)((present) => (req, res) => proxy(req, res, present))

async function proxy(req: Request, res: Response, deps: TranscriptionDeps): Promise<void> {
  const left = new AbortController()
  res.once('close', () => left.abort())
  await deps.assertBudget(tenantOf(res))
  const upload = await deps.receive(req, res)
  try {
    const backend = await backendOf(tenantOf(res), upload, deps)
    const forwarded = { ...upload, fields: upload.fields.filter(([name]) => name !== 'provider_instance') }
    const answer = await transcribe(forwarded, backend, { request: deps.egress.request, signal: left.signal })
    await passThrough(answer, res, left.signal)
  } catch (cause) {
    if (!left.signal.aborted) throw cause
  } finally {
    await upload.discard()
  }
}

async function backendOf(
  tenant: TenantId,
  { fields }: Upload,
  { configs, credentials }: TranscriptionDeps,
): Promise<Backend> {
  const nameOrType = required(fields, 'provider_instance')
  required(fields, 'model')
  const config = await configs.get(tenant)
  const instance = resolveInstance(config, nameOrType, '/provider_instance')
  const { key, headers } = credentials.read(tenant, instance, config)
  const timeoutMs = 1_000 * (instance.options?.timeout_secs ?? 0)
  return { instance: instance.name, url: urlOf(instance), key, headers, timeoutMs: timeoutMs || TIMEOUT_MS }
}

function required(fields: Upload['fields'], name: string): string {
  const [value, again] = fields.filter(([each]) => each === name).map(([, each]) => each)
  if (value !== undefined && value.trim() !== '' && again === undefined) return value
  throw invalidRequest(`the form must have the field ${name} once`, { param: `/${name}` })
}

/** D9.1: the types whose API has transcriptions. */
function urlOf({ name, type, url }: StoredInstance): string {
  if (type === 'openai') return url ?? 'https://api.openai.com/v1'
  if (type === 'openai-compatible' && url !== undefined) return url
  throw invalidRequest(
    `instance ${name} is of type ${type}, which does not transcribe: name an openai or openai-compatible one`,
    {
      param: '/provider_instance',
    },
  )
}

/** The backend's status, content type and body; if the body breaks off the connection is closed, so that no client takes it for complete. */
async function passThrough(
  { status, headers, body }: EgressResponse,
  res: Response,
  signal: AbortSignal,
): Promise<void> {
  res.status(status)
  const type = headers['content-type']
  if (typeof type === 'string') res.setHeader('Content-Type', type)
  try {
    for await (const chunk of body) if (!res.write(chunk)) await once(res, 'drain', { signal })
    res.end()
  } catch (cause) {
    if (!res.headersSent) throw cause
    res.destroy()
  }
}

import { join } from 'node:path'
import { openSpool } from '../../shared/agent/transcription/spool.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import type { OpenedTenantConfig } from '../wiring/open-tenant-config.ts'
import { ownProcess } from '../wiring/process.ts'
import type { ReceiveUpload } from './bodies/upload.ts'
import type { TranscriptionDeps } from './routes/transcriptions.ts'

export type OpenedTranscription = { deps: TranscriptionDeps | undefined; close(): Promise<void> }

/** Opens the transcription proxy with its folder for uploads, DATA_DIR/spool. It needs tenants' instances, so it is off without them. */
export async function openTranscription(
  { dataDir, ...limits }: UploadSettings,
  tenantConfig: OpenedTenantConfig | undefined,
): Promise<OpenedTranscription> {
  if (!tenantConfig) return { deps: undefined, close: async () => {} }
  const spool = await openSpool(join(dataDir, 'spool'), ownProcess)
  const { configs, credentials, egress } = tenantConfig
  const receive = createLazyReceiver(spool.dir, limits)
  return {
    deps: { configs, credentials, egress, assertBudget: tenantConfig.limits.assertBudget, receive },
    close: spool.close,
  }
}

type UploadSettings = Settings['http']['uploads']

/** Loads the reader of forms at the first upload: it takes 25 ms and 9 MiB. */
function createLazyReceiver(dir: string, limits: Omit<UploadSettings, 'dataDir'>): ReceiveUpload {
  const { tenantShare, uploadsPerGateway: maxUploads, uploadSpoolBytes: maxSpoolBytes } = limits
  let loading: Promise<ReceiveUpload> | undefined
  return async (req, res) => {
    loading ??= import('./bodies/upload.ts').then(({ createReceiveUpload }) =>
      createReceiveUpload(dir, { tenantShare, maxUploads, maxSpoolBytes }),
    )
    return (await loading)(req, res)
  }
}

import { join } from 'node:path'
import { openSpool } from '../../shared/agent/transcription/spool.ts'
import type { Config } from '../../shared/platform/config/config.ts'
import { ownProcess } from '../wiring/process.ts'
import type { OpenedTenantConfig } from '../wiring/tenant-config.ts'
import type { TranscriptionDeps } from './routes/transcriptions.ts'
import type { ReceiveUpload } from './upload.ts'

export type OpenedTranscription = { deps: TranscriptionDeps | undefined; close(): Promise<void> }

/** Opens the transcription proxy with its folder for uploads, DATA_DIR/spool. It needs tenants' instances, so it is off without them. */
export async function openTranscription(
  { dataDir, ...config }: Pick<Config, 'dataDir' | UploadSettings>,
  tenantConfig: OpenedTenantConfig | undefined,
): Promise<OpenedTranscription> {
  if (!tenantConfig) return { deps: undefined, close: async () => {} }
  const spool = await openSpool(join(dataDir, 'spool'), ownProcess)
  const { configs, credentials, egress, limits } = tenantConfig
  const receive = createLazyReceiver(spool.dir, config)
  return { deps: { configs, credentials, egress, assertBudget: limits.assertBudget, receive }, close: spool.close }
}

type UploadSettings = 'tenantShare' | 'uploadsPerGateway' | 'uploadSpoolBytes'

/** Loads the reader of forms at the first upload: it takes 25 ms and 9 MiB. */
function createLazyReceiver(dir: string, config: Pick<Config, UploadSettings>): ReceiveUpload {
  const { tenantShare, uploadsPerGateway: maxUploads, uploadSpoolBytes: maxSpoolBytes } = config
  let loading: Promise<ReceiveUpload> | undefined
  return async (req, res) => {
    loading ??= import('./upload.ts').then(({ createReceiveUpload }) =>
      createReceiveUpload(dir, { tenantShare, maxUploads, maxSpoolBytes }),
    )
    return (await loading)(req, res)
  }
}

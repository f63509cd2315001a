import { join } from 'node:path'
import type { Config } from '../../shared/config/config.ts'
import { openSpool } from '../../shared/transcription/spool.ts'
import { ownProcess } from '../wiring/process.ts'
import type { OpenedTenantConfig } from '../wiring/tenant-config.ts'
import type { TranscriptionDeps } from './routes/transcriptions.ts'
import type { ReceiveUpload } from './upload.ts'

export type OpenedTranscription = { deps: TranscriptionDeps | undefined; close(): Promise<void> }

/** Opens the transcription proxy with its folder for uploads, DATA_DIR/spool. It needs tenants' instances, so it is off without them. */
export async function openTranscription(
  { dataDir, tenantShare }: Pick<Config, 'dataDir' | 'tenantShare'>,
  tenantConfig: OpenedTenantConfig | undefined,
): Promise<OpenedTranscription> {
  if (!tenantConfig) return { deps: undefined, close: async () => {} }
  const spool = await openSpool(join(dataDir, 'spool'), ownProcess)
  const { configs, credentials, egress } = tenantConfig
  const receive = createLazyReceiver(spool.dir, tenantShare)
  return { deps: { configs, credentials, egress, receive }, close: spool.close }
}

/** Loads the reader of forms at the first upload: it takes 25 ms and 9 MiB. */
function createLazyReceiver(dir: string, tenantShare: number): ReceiveUpload {
  let loading: Promise<ReceiveUpload> | undefined
  return async (req, res) => {
    loading ??= import('./upload.ts').then(({ createReceiveUpload }) => createReceiveUpload(dir, { tenantShare }))
    return (await loading)(req, res)
  }
}
